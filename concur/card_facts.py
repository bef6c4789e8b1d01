"""What a card says about its data set, gathered from the rows in one pass."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from concur.manifest import Tally
from concur.rows import CONFIGS, RowStore
from concur.shards import Shard


@dataclass
class Device:
    """A device that verdicts were made on."""

    name: str
    """Its name."""
    first: str
    """Date of its first verdict."""
    last: str
    """Date of its last verdict."""
    count: int = 0
    """Verdicts made on it."""


@dataclass
class CardFacts:
    """Everything that the card says."""

    version: str
    """Version of the content."""
    shards: Sequence[Shard]
    """Every file."""
    accounting: Mapping[str, Tally]
    """By kind of record."""
    rows: dict[str, dict[str, int]]
    """Rows by config and split."""
    tasks: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Tasks by family and forms (joined by +)."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Decided solutions and attempts by status."""
    origins: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """Decided solutions and attempts by method, writer, model and kind of reasoning."""
    licenses: set[str] = field(default_factory=set)
    """SPDX expressions of tasks, solutions and attempts."""
    devices: list[Device] = field(default_factory=list)
    """Sorted by name."""
    lengths: dict[str, list[int]] = field(default_factory=dict)
    """Token counts by what was counted, sorted."""

    @property
    def configs(self) -> tuple[str, ...]:
        """Configs that have rows, the default first."""
        return tuple(c for c in CONFIGS if self.rows[c])

    @classmethod
    def gather(
        cls,
        rows: RowStore,
        shards: Sequence[Shard],
        accounting: Mapping[str, Tally],
        version: str,
    ) -> Self:
        """Read every row once."""
        facts = cls(version, shards, accounting, {c: rows.counts(c) for c in CONFIGS})
        for task in _all(rows, "tasks"):
            facts.tasks[task["family"], "+".join(task["forms"])] += 1
            facts.licenses.add(task["provenance"]["license"])
        for solution in _all(rows, "solutions"):
            origin = solution["origin"]
            facts.statuses[solution["status"]] += 1
            facts.licenses.add(origin["license"])
            kind = solution["reasoning_kind"]
            facts.origins[origin["method"], origin["writer"], origin["model"], kind] += 1
        facts._take_devices(rows)
        facts._take_lengths(rows)
        return facts

    def _take_devices(self, rows: RowStore) -> None:
        found: dict[str, Device] = {}
        for verdict in _all(rows, "verdicts"):
            name, day = verdict["environment"]["device"], verdict["judged_on"]
            device = found.setdefault(name, Device(name, day, day))
            device.first, device.last = min(device.first, day), max(device.last, day)
            device.count += 1
        self.devices = [found[name] for name in sorted(found)]

    def _take_lengths(self, rows: RowStore) -> None:
        reasoning, kernels = [], []
        for triplet in _all(rows, "triplets"):
            reasoning.append(triplet["reasoning_tokens"])
            kernels.append(triplet["kernel_tokens"])
        totals = [t["total_tokens"] for t in _all(rows, "trajectories")]
        self.lengths = {
            "reasoning of a triplet": sorted(reasoning),
            "kernel of a triplet": sorted(kernels),
            "all messages of a trajectory": sorted(totals),
        }


def _all(rows: RowStore, config: str) -> Iterator[dict[str, Any]]:
    for split in rows.counts(config):
        yield from rows.rows(config, split)
