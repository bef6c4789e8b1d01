"""The committed corpus: how much there is, that its verdicts count, and that it builds."""

import json
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from concur.builders.decisions import ACCEPTED as ADMITTED
from concur.builders.decisions import admission_fault, rule_trajectory, verdict_fault
from concur.builders.folder import CORPUS, SampleRead, find_samples, read_sample
from concur.schemas import Contract, Outcome, Sample, Solution, Status

FORMS = ("language", "program", "mathematics")
DEVICE = "NVIDIA H200"
BUILD_WITHOUT_TORCH = """
import sys

class WithoutTorch:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            return None
        return self.finder.find_spec(name, path, target)

sys.meta_path[:] = [WithoutTorch(finder) for finder in sys.meta_path]
from pathlib import Path
from concur import BuildOptions, build

def never(task):
    raise AssertionError(f"{task.name}: no admission is due")

report = build(BuildOptions(Path(sys.argv[1])), admit=never)
print(sum(report.rows["triplets"].values()))
try:
    import torch
except ModuleNotFoundError:
    print("no torch")
"""


@pytest.fixture(scope="module")
def reads() -> list[SampleRead]:
    return [read_sample(path) for path in find_samples(CORPUS)]


@pytest.fixture(scope="module")
def samples(reads: list[SampleRead]) -> list[Sample]:
    broken = {r.path.name: r.findings for r in reads if r.sample is None or r.findings}
    assert broken == {}
    return [r.sample for r in reads if r.sample is not None]


def judged_fault(read: SampleRead, solution: Solution) -> str:
    """Why a solution has no verdict of the GPU that counts; empty when it has."""
    verdict = read.recorded.verdicts.get(solution.id)
    if verdict is None:
        return "not judged"
    device = verdict.environment.device
    return verdict_fault(verdict, solution) or ("" if device == DEVICE else f"judged on {device}")


def test_tasks_cover_families_and_forms(samples: list[Sample]) -> None:
    assert len(samples) >= 24
    families = Counter(s.task.family for s in samples)
    assert len(families) == 8 and min(families.values()) >= 3, families
    forms = Counter(tuple(f.value for f in s.task.forms) for s in samples)
    assert set(forms) == {c for n in (1, 2, 3) for c in combinations(FORMS, n)}
    assert forms[FORMS] >= 8


def test_every_solution_passed_on_the_gpu(reads: list[SampleRead], samples: list[Sample]) -> None:
    solutions = [
        (read, solution)
        for read, sample in zip(reads, samples, strict=True)
        for solution in sample.solutions
    ]
    assert len(solutions) >= 32
    faults = {f"{r.path.name}/{s.name}": judged_fault(r, s) for r, s in solutions}
    assert {place: fault for place, fault in faults.items() if fault} == {}
    statuses = {
        f"{r.path.name}/{s.name}": r.recorded.verdicts[s.id].status.value for r, s in solutions
    }
    assert {k: v for k, v in statuses.items() if v != Status.PASSED.value} == {}
    contracts = {s.contract for _, s in solutions}
    assert contracts == {Contract.CUDA_FUNCTION, Contract.MODEL_NEW}
    assert sum(len(s.solutions) >= 2 for s in samples) >= 8


def test_every_attempt_has_a_verdict_of_the_gpu(
    reads: list[SampleRead], samples: list[Sample]
) -> None:
    whole, repaired = 0, 0
    for read, sample in zip(reads, samples, strict=True):
        for log in sample.trajectories:
            solutions = [attempt.solution for attempt in log.attempts]
            faults = {s.name: judged_fault(read, s) for s in solutions}
            assert not any(faults.values()), f"{sample.task.name}/{log.name}: {faults}"
            assert rule_trajectory(log, read.recorded.verdicts, ADMITTED) == ADMITTED
            passed = [read.recorded.verdicts[s.id].status is Status.PASSED for s in solutions]
            whole += 1
            repaired += sum(
                attempt.phase == "repair" and not before
                for attempt, before in zip(log.attempts[1:], passed, strict=False)
            )
    assert whole >= 8
    assert repaired >= 1


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_task_is_admitted(reads: list[SampleRead], samples: list[Sample], kind: str) -> None:
    faults = {}
    for read, sample in zip(reads, samples, strict=True):
        admission = read.recorded.admissions.get(kind)
        if admission is None or admission.environment.device_kind != kind:
            faults[sample.task.name] = "not admitted"
        elif admission.outcome is not Outcome.ACCEPTED:
            faults[sample.task.name] = admission.outcome.value
        else:
            faults[sample.task.name] = admission_fault(admission, sample.task)
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_the_corpus_builds_where_there_is_no_torch(tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = subprocess.run(
        [sys.executable, "-P", "-c", BUILD_WITHOUT_TORCH, str(out)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    triplets, torch = told.stdout.splitlines()
    assert torch == "no torch"
    assert int(triplets) >= 32
    report = json.loads((out / ".concur" / "report.json").read_text())
    assert (report["stale"], report["no_triplet"], report["notes"]) == (0, {}, [])
