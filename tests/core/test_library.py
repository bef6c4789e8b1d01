"""The `datasets` builders of the package yield exactly the rows that a build writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from concur.builders.sample_builder import SampleBuilder
from concur.builders.tasks import Tasks
from concur.builders.trajectories import Trajectories
from concur.builders.triplets import Triplets
from concur.pipeline import BuildOptions, build

Factory = Callable[..., Any]


def prepared(cls: type[SampleBuilder], corpus: Path, cache: Path, **options: Any) -> Any:
    builder = cls(cache_dir=str(cache), paths=(str(corpus),), trust_recorded=True)
    builder.download_and_prepare(**options)
    return builder.as_dataset()


@pytest.mark.parametrize(
    ("cls", "config"), [(Tasks, "tasks"), (Triplets, "triplets"), (Trajectories, "trajectories")]
)
def test_rows_are_those_of_a_build(
    tmp_path: Path, write_corpus: Factory, cls: type[SampleBuilder], config: str
) -> None:
    corpus = write_corpus(5)
    build(BuildOptions(tmp_path / "out", sources=(corpus,), trust_recorded=True))
    built = load_dataset(str(tmp_path / "out"), config, cache_dir=str(tmp_path / "loaded"))
    made = prepared(cls, corpus, tmp_path / "cache", num_proc=2)
    assert set(made) == set(built) == {"train", "validation", "test"}
    for split in built:
        assert made[split].features == built[split].features
        assert sorted(made[split], key=lambda row: str(row["id"])) == list(built[split])


def test_a_changed_sample_is_not_answered_from_the_cache(
    tmp_path: Path, write_corpus: Factory
) -> None:
    corpus = write_corpus(4)
    assert len(prepared(Triplets, corpus, tmp_path / "cache")["train"]) == 2
    kernel = corpus / "add-vectors-0" / "solutions" / "plain-loop" / "kernel.cu"
    kernel.write_text(kernel.read_text() + "// edited, so its verdict is stale\n")
    assert len(prepared(Triplets, corpus, tmp_path / "cache")["train"]) == 1


def test_recorded_verdicts_of_others_are_not_believed(
    tmp_path: Path, write_corpus: Factory
) -> None:
    builder = Triplets(cache_dir=str(tmp_path / "cache"), paths=(str(write_corpus(3)),))
    assert list(builder.as_streaming_dataset()["train"]) == []


def test_a_split_without_rows_is_left_out(tmp_path: Path, write_corpus: Factory) -> None:
    assert set(prepared(Triplets, write_corpus(2), tmp_path / "cache")) == {"train", "validation"}


def test_streaming_needs_no_preparation(tmp_path: Path, write_corpus: Factory) -> None:
    builder = Tasks(cache_dir=str(tmp_path), paths=(str(write_corpus(3)),), trust_recorded=True)
    assert [row["name"] for row in builder.as_streaming_dataset()["test"]] == ["add-vectors-2"]
