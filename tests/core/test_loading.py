"""Loading what was built, as users do: every config, streamed or not, and never stale rows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import (
    get_dataset_config_names,
    get_dataset_default_config_name,
    load_dataset,
    load_dataset_builder,
)

import concur
from concur import manifest
from concur.errors import ConcurError, IntegrityError
from concur.pipeline import BuildOptions, build
from concur.rows import CONFIGS, RECORDS
from concur.schemas import Admission, Task, Triplet
from concur.schemas.arrow import features, from_row

Factory = Callable[..., Any]


def never(task: Task) -> Admission:
    raise AssertionError(f"{task.name}: no admission is due")


@pytest.fixture
def make(tmp_path: Path, write_corpus: Factory) -> Factory:
    """`make(count, out="out", name="corpus") -> Path` of a built data set."""

    def run(count: int, out: str = "out", name: str = "corpus") -> Path:
        corpus = write_corpus(count, name)
        folder = tmp_path / out
        options = BuildOptions(folder, sources=(corpus,), trust_recorded=True)
        build(options, admit=never)
        return folder

    return run


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_loads_with_its_features(make: Factory, cache: str, config: str) -> None:
    folder = make(3)
    plain = load_dataset(str(folder), config, cache_dir=cache)
    known = manifest.read(folder)
    assert {s: plain[s].num_rows for s in plain} == known.rows(config)
    for split in plain:
        assert plain[split].features == features(RECORDS[config])
        for row in plain[split]:
            assert from_row(RECORDS[config], row).id == row["id"]
    streamed = load_dataset(str(folder), config, split="train", streaming=True, cache_dir=cache)
    assert list(streamed) == list(plain["train"])


def test_the_default_config_is_triplets(make: Factory, cache: str) -> None:
    folder = str(make(3))
    assert get_dataset_default_config_name(folder) == "triplets"
    assert sorted(get_dataset_config_names(folder)) == sorted(CONFIGS)
    assert load_dataset(folder, split="train", cache_dir=cache)[0]["speedup"] == 1.5


def test_card_says_what_loads(make: Factory, cache: str) -> None:
    folder = make(3)
    known = manifest.read(folder)
    info = load_dataset_builder(str(folder), "triplets", cache_dir=cache).info
    assert str(info.version) == known.version
    assert {n: s.num_examples for n, s in info.splits.items()} == known.rows("triplets")
    assert info.features == features(Triplet)


def test_load_passes_options_on(make: Factory, cache: str) -> None:
    folder = make(3)
    columns = ["id", "speedup"]
    loaded: Any = concur.load(folder, columns=columns, split="train", cache_dir=cache)
    assert loaded.column_names == columns and loaded.num_rows == 1
    none: Any = concur.load(
        folder, split="train", filters=[("speedup", ">", 2.0)], streaming=True, cache_dir=cache
    )
    assert list(none) == []
    every: Any = concur.load(
        folder, split="train", filters=[("speedup", ">", 1.2)], streaming=True, cache_dir=cache
    )
    assert len(list(every)) == 1
    assert len(concur.load(folder, "verdicts", cache_dir=cache)) == 3  # splits


def test_a_rebuild_is_never_answered_from_the_cache(make: Factory, cache: str) -> None:
    folder = make(3)
    first = load_dataset(str(folder), "triplets", split="train", cache_dir=cache)
    make(6, name="other")
    second = load_dataset(str(folder), "triplets", split="train", cache_dir=cache)
    assert (len(first), len(second)) == (1, 2)
    assert not set(first["id"]) & set(second["id"])


def test_folders_of_the_same_name_are_kept_apart(make: Factory, cache: str) -> None:
    one, two = make(3, "a/same", "one"), make(3, "b/same", "two")
    ids = [
        load_dataset(str(f), "triplets", split="train", cache_dir=cache)["id"] for f in (one, two)
    ]
    assert set(ids[0]) != set(ids[1])


def test_a_changed_file_is_named(make: Factory, cache: str) -> None:
    folder = make(3)
    path = folder / "data" / "triplets" / "train-00000-of-00001.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(IntegrityError, match=r"triplets/train-00000-of-00001\.parquet is not"):
        concur.load(folder, cache_dir=cache)
    assert concur.load(folder, "tasks", split="train", cache_dir=cache)  # another config is whole
    path.unlink()
    with pytest.raises(IntegrityError, match=r"train-00000-of-00001\.parquet is missing"):
        concur.load(folder, cache_dir=cache)


def test_rows_other_than_the_manifest_says_are_refused(make: Factory, cache: str) -> None:
    folder = make(3)
    path = folder / manifest.NAME
    plain = json.loads(path.read_text())
    for entry in plain["files"]:
        entry["rows"] += 1
    path.write_text(json.dumps(plain))
    with pytest.raises(IntegrityError, match="but the manifest says"):
        concur.load(folder, cache_dir=cache)


@pytest.mark.parametrize("verify", [True, False])
def test_a_local_folder_has_no_revision(make: Factory, cache: str, verify: bool) -> None:
    folder = make(3)
    with pytest.raises(ConcurError, match="local folder, which has no revision"):
        concur.load(folder, revision="v1", verify=verify, cache_dir=cache)


def test_what_is_no_data_set_is_refused(make: Factory, tmp_path: Path, cache: str) -> None:
    with pytest.raises(IntegrityError, match="manifest.json cannot be read"):
        concur.load(tmp_path, cache_dir=cache)
    folder = make(3)
    with pytest.raises(IntegrityError, match="no config 'nonsense'; it has solutions, tasks"):
        concur.load(folder, "nonsense", cache_dir=cache)
    (folder / manifest.NAME).write_text("{}")
    with pytest.raises(IntegrityError, match="is not a manifest"):
        concur.load(folder, cache_dir=cache)
