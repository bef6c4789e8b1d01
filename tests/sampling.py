"""Solutions whose verdict is known beforehand: what is right, what is mistaken, what cheats.

`tests/samples/tasks/TASK` holds a task without solutions, `tests/samples/KIND/TASK/SLUG` one
solution of it, and `tests/samples/KIND.json` what the judge has to say about each. All of it is
read by the library's own readers, so that a sample is what a contributor could hand in.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concur.builders.folder import read_sample
from concur.builders.sample_files import Reader
from concur.builders.solution_folder import read_solution
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Finding, Status

SAMPLES = Path(__file__).parent / "samples"
KINDS = ("good", "pairs", "faults", "cheats")
"""good and pairs pass; faults are honest mistakes; cheats are not."""
_FIELDS = {"status", "rule", "family", "mechanism"}


class SampleError(Exception):
    """A sample, or what is expected of it, is missing or cannot be read."""


@dataclass(frozen=True)
class Expectation:
    """What the judge has to say about a sample."""

    status: tuple[str, ...]
    """Statuses of which one must be the verdict's."""
    rule: tuple[str, ...] = ()
    """Rules of which one must be among the errors found; empty for any."""
    family: str = ""
    """Family of a cheat, A to F."""
    mechanism: str = ""
    """How it goes wrong, in one line."""

    def mismatch(self, verdict: Mapping[str, Any]) -> str:
        """Return what differs in a verdict's plain form, for people; empty when nothing does."""
        errors = [f for f in verdict["findings"] if f["severity"] == "error"]
        said = f"{verdict['status']} at {(verdict['gates'] or ['no gate'])[-1]}"
        if errors:
            said += f", {errors[0]['rule']}: {errors[0]['message']}"
        if verdict["status"] not in self.status:
            return f"{said} (expected {' or '.join(self.status)})"
        if self.rule and not {f["rule"] for f in errors} & set(self.rule):
            return f"{said} (expected the rule {' or '.join(self.rule)})"
        return ""


@dataclass(frozen=True)
class SampleCase:
    """One solution with its task and what is expected of it."""

    kind: str
    """One of KINDS."""
    key: str
    """`task/slug`."""
    task: Task
    """The task that it solves."""
    solution: Solution
    """The solution."""
    expectation: Expectation
    """What the judge has to say."""

    def runs_on(self, device: str) -> bool:
        """Return whether this can be judged on `cpu` or `cuda`."""
        on_cpu = self.solution.contract is Contract.CPP_FUNCTION
        return on_cpu == (device == "cpu")


def cases(kind: str) -> list[SampleCase]:
    """Return every sample of a kind, sorted by key.

    Raises SampleError, which names it, for a sample that cannot be read, one without expectation,
    and an expectation without sample.
    """
    # Git knows no empty folders, but leaves them where it moved the files out.
    paths = [p for p in (SAMPLES / kind).glob("*/*/") if any(p.iterdir())]
    folders = {f"{p.parent.name}/{p.name}": p for p in paths}
    expected = _expectations(SAMPLES / f"{kind}.json")
    for key in sorted(folders.keys() - expected.keys()):
        raise SampleError(f"{kind}/{key} has no expectation in {kind}.json")
    for key in sorted(expected.keys() - folders.keys()):
        raise SampleError(f"{kind}.json expects something of {key}, which is not in {kind}/")
    found = []
    for key, folder in sorted(folders.items()):
        task = task_of(folder.parent.name)
        found.append(SampleCase(kind, key, task, _solution(folder, task), expected[key]))
    return found


@functools.cache
def task_of(name: str) -> Task:
    """Return a task of tests/samples/tasks. Raises SampleError when it cannot be used."""
    read = read_sample(SAMPLES / "tasks" / name)
    if read.sample is None:
        raise SampleError(f"task {name}: {_told(read.findings)}")
    return read.sample.task


def _solution(folder: Path, task: Task) -> Solution:
    reader = Reader()
    solution = read_solution(reader, folder, task.id)
    if solution is None:
        name = folder.relative_to(SAMPLES).as_posix()
        raise SampleError(f"{name}: {_told(reader.findings)}")
    return solution


def _told(findings: tuple[Finding, ...] | list[Finding]) -> str:
    return "; ".join(f.message for f in findings if f.severity == "error") or "cannot be read"


def _expectations(path: Path) -> dict[str, Expectation]:
    if not path.is_file():
        return {}
    plain: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return {key: _expectation(f"{path.name}: {key}", fields) for key, fields in plain.items()}


def _expectation(where: str, fields: dict[str, Any]) -> Expectation:
    unknown = fields.keys() - _FIELDS
    status = tuple(fields.get("status", ()))
    wrong = [s for s in status if s not in {known.value for known in Status}]
    if unknown or wrong or not status:
        said = ", ".join([*sorted(unknown), *wrong]) or "no status"
        raise SampleError(f"{where}: {said} cannot be expected")
    return Expectation(
        status,
        tuple(fields.get("rule", ())),
        fields.get("family", ""),
        fields.get("mechanism", ""),
    )
