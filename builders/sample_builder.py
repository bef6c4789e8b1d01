"""What the three `datasets` builders of this package share: samples in, rows of one kind out.

They read the files of samples and what is recorded beside them, and decide as `concur build`
does, except that they run no check and no admission. `concur build` makes what is to be kept.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import datasets

from concur.builders.decisions import Admissions, Verdicts, counting_verdict, rule_task
from concur.builders.folder import CORPUS, SampleRead, find_samples, read_samples
from concur.schemas.arrow import features, to_row
from concur.schemas.base import Record
from concur.schemas.rules import RULES_VERSION
from concur.schemas.sample import Sample
from concur.schemas.verdict import Outcome
from concur.splits import SPLITS, split_of


@dataclass
class SamplesConfig(datasets.BuilderConfig):  # type: ignore[misc]  # datasets is untyped
    """Which samples to read."""

    paths: tuple[str, ...] = (str(CORPUS),)
    """Sample folders, JSON files or directories of them."""
    trust_recorded: bool = False
    """Believe verdicts and admissions that are recorded outside our own corpus."""


class SampleBuilder(datasets.GeneratorBasedBuilder):  # type: ignore[misc]  # datasets is untyped
    """Reads samples and yields the rows of one config, in the order of the samples."""

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = SamplesConfig
    RECORD: ClassVar[type[Record]]
    """Class of the rows."""

    def __init__(self, *args: Any, dataset_name: str = "concur", **kwargs: Any) -> None:
        """Take what `datasets.DatasetBuilder` takes, and `paths` and `trust_recorded`.

        The cache is keyed by the content of the samples: `datasets` would not notice a change.
        """
        if kwargs.get("hash") is None:
            kwargs["hash"] = _fingerprint(kwargs.get("paths", (str(CORPUS),)))
        super().__init__(*args, dataset_name=dataset_name, **kwargs)

    @abstractmethod
    def rows_of(
        self, sample: Sample, admissions: Admissions, verdicts: Verdicts
    ) -> Iterator[Record]:
        """Yield the records of an admitted sample; `verdicts` holds only those that count."""

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=features(self.RECORD))

    def _split_generators(
        self, _manager: datasets.DownloadManager
    ) -> list[datasets.SplitGenerator]:
        places = [str(place) for path in self.config.paths for place in find_samples(Path(path))]
        # `datasets` cannot load a split without rows, so that one is left out, as a build does.
        filled = [split for split in SPLITS if self._has_rows(places, split)]
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"places": places, "split": split})
            for split in filled or SPLITS[:1]
        ]

    def _has_rows(self, places: list[str], split: str) -> bool:
        reads = (read for place in places for read in read_samples(Path(place)))
        return any(True for read in reads for _ in self._records(read, split))

    def _generate_examples(
        self, places: list[str], split: str
    ) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        for shard, place in enumerate(places):
            records = (
                record
                for read in read_samples(Path(place))
                for record in self._records(read, split)
            )
            for index, record in enumerate(records):
                yield datasets.builder.Key(shard, index), to_row(record)

    def _records(self, read: SampleRead, split: str) -> Iterator[Record]:
        sample = read.sample
        if sample is None or split_of(sample.task.provenance.group) != split:
            return
        if not self.config.trust_recorded and not is_ours(read.path):
            return
        recorded = read.recorded
        if rule_task(sample.task, recorded.admissions).outcome is not Outcome.ACCEPTED:
            return
        counting = {s.id: counting_verdict(s, recorded.verdicts) for s in sample.candidates}
        verdicts = {name: verdict for name, verdict in counting.items() if verdict is not None}
        yield from self.rows_of(sample, recorded.admissions, verdicts)


def is_ours(path: Path) -> bool:
    """Return whether a sample is of our own corpus, whose recorded verdicts are believed."""
    return path.resolve().is_relative_to(CORPUS.resolve())


def _fingerprint(paths: tuple[str, ...]) -> str:
    """Return a hash of the rules and of the names and contents of every file at the paths."""
    digest = hashlib.sha256(str(RULES_VERSION).encode())
    for path in map(Path, paths):
        for file in sorted([path] if path.is_file() else path.rglob("*")):
            if file.is_file():
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(path).as_posix()}\n{content}\n".encode())
    return digest.hexdigest()[:32]
