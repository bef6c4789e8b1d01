"""Time a right solution beside the baseline, on a GPU that nobody else uses meanwhile.

CUDA events around single calls, the L2 cache flushed before each; fresh copies of one of several
input sets for every call; blocks of baseline and candidate in the order A B B A. One timed call, at
a position that the judge chose, has its results compared with the oracle. The times themselves are
measured, and could be forged, inside the candidate's process: this form has no second clock.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.schemas.task import Task, Workload
from concur.schemas.verdict import Fault, Status, Timing
from concur.validators.candidate import SLOT, Candidate
from concur.validators.draw import Case, case_of, derive, draw
from concur.validators.ended import Ended, finding
from concur.validators.jobs import call_job, discard, expect, send
from concur.validators.lock import DeviceLock
from concur.validators.reference import Expected, Reference
from concur.validators.verify import check

WARM_UP_S = 0.2
"""Seconds of calls before the first block of each side, on the first workload."""

SHORT_WARM_UP_S = 0.05
"""The same on further workloads, where the device is at its clocks already."""

_RING = 3
_RING_BYTES = 1 << 30
_RESAMPLES = 1000


@dataclass(frozen=True)
class _Run:
    """What timing one workload needs."""

    case: Case
    expected: Expected
    targets: list[dict[str, Any]]
    keep: int
    secret: int


class Stopwatch:
    """Times one solution on all workloads of a task."""

    def __init__(self, candidate: Candidate, reference: Reference, lock: DeviceLock, seed: int):
        """Take both children and the run's seed."""
        self.candidate, self.reference, self.lock, self.seed = candidate, reference, lock, seed
        self.task: Task = candidate.task
        self.options = candidate.options

    def measure(self) -> list[Timing]:
        """Return the times of every workload, a timed result of each verified. Raises Ended.

        Inputs of all workloads are handed over first, so that the device is taken only once: every
        taking waits for all others to finish what they are at.
        """
        runs = []
        try:
            for workload in self.task.workloads:
                with self.lock.shared():
                    runs.append(self._prepare(workload))
            with self.lock.exclusive():
                times = [self._blocks(run, first=run is runs[0]) for run in runs]
            self._ask_reference("free")
            return [self._conclude(run, *both) for run, both in zip(runs, times, strict=True)]
        finally:
            for run in runs:
                discard(run.targets)

    def _prepare(self, workload: Workload) -> _Run:
        cases = self._cases(workload)
        secret = derive(self.seed, self.candidate.solution.id, workload.name, "kept")
        keep = secret % max(1, self.options.timed_calls // 2)
        case = cases[keep % len(cases)]
        expected = self.reference.expected(case)
        self._hand_over(cases)
        targets = expect(self.task, case, self.candidate.folder, f"timed-{workload.name}")
        return _Run(case, expected, targets, keep, secret)

    def _blocks(self, run: _Run, *, first: bool) -> tuple[list[float], list[float]]:
        """Return times of the candidate and of the baseline, in blocks A B B A."""
        half = self.options.timed_calls // 2
        block = {"calls": half, "first": 0, "ring": run.case.workload.name, "keep": -1}
        warm = block | {"warm_s": WARM_UP_S if first else SHORT_WARM_UP_S}
        again = block | {"warm_s": 0.02}
        results = {"results": run.targets, "guard": self.candidate.guard}
        base = self._time_reference(warm)
        mine = self._time_candidate(run.case, warm | results | {"keep": run.keep})
        mine += self._time_candidate(run.case, again | results)
        base += self._time_reference(again)
        return mine, base

    def _conclude(self, run: _Run, mine: list[float], base: list[float]) -> Timing:
        results = self.candidate.results_of(run.case, run.targets)
        check(self.task, run.case, self.options.trials, results, run.expected, "values.timed")
        return summarize(run.case.workload.name, mine, base, run.secret)

    def _cases(self, workload: Workload) -> list[Case]:
        device = self.options.device
        first = case_of(self.task, workload, device, "timed-0", self.seed)
        size = sum(t.numel() * t.element_size() for t in draw(self.task, first, device).values())
        number = _RING if size * _RING <= _RING_BYTES else _RING - 1
        labels = [f"timed-{i}" for i in range(number)]
        return [case_of(self.task, workload, device, label, self.seed) for label in labels]

    def _hand_over(self, cases: list[Case]) -> None:
        drawn = [draw(self.task, case, self.options.device) for case in cases]
        job = call_job(self.task, cases[0]) | {"ring": cases[0].workload.name}
        folder = self.reference.folder
        sets = [send(self.task, t, folder, f"ring-{i}") for i, t in enumerate(drawn)]
        results = expect(self.task, cases[0], folder)
        slot = self.reference.baseline
        try:
            self._ask_reference("prepare", slot=slot, sets=sets, results=results, **job)
        finally:
            discard([item for items in sets for item in items])
        folder = self.candidate.folder
        sets = [send(self.task, t, folder, f"ring-{i}") for i, t in enumerate(drawn)]
        del drawn
        job |= {"args": sets[0], "guard": self.candidate.guard}
        results = expect(self.task, cases[0], folder)
        try:
            self.candidate.ask("prepare", cases[0], slot=SLOT, sets=sets, results=results, **job)
        finally:
            discard([item for items in sets for item in items])

    def _ask_reference(self, do: str, **job: Any) -> dict[str, Any]:
        return self.reference.ask(do, (self.reference.baseline, "timing"), **job)

    def _time_reference(self, job: dict[str, Any]) -> list[float]:
        times = _plausible(self._ask_reference("time", **job), job["calls"])
        if times is None:
            found = finding("timing.failed", "the baseline gave no usable times")
            raise Ended(Status.UNDECIDED, Fault.JUDGE, found)
        return times

    def _time_candidate(self, case: Case, job: dict[str, Any]) -> list[float]:
        times = _plausible(self.candidate.ask("time", case, **job), job["calls"])
        if times is None:
            found = finding("timing.failed", f"{job['calls']} usable times were due, fewer came")
            raise Ended(Status.RUNTIME_ERROR, Fault.CANDIDATE, found)
        return times


def summarize(workload: str, mine: list[float], base: list[float], seed: int) -> Timing:
    """Return medians, percentiles and the bootstrap interval of the ratio of medians."""
    rng = np.random.default_rng(seed)
    own, other = np.asarray(mine), np.asarray(base)
    drawn_own = np.median(rng.choice(own, (_RESAMPLES, own.size)), axis=1)
    drawn_other = np.median(rng.choice(other, (_RESAMPLES, other.size)), axis=1)
    low, high = np.percentile(drawn_other / drawn_own, [2.5, 97.5])
    own_10, own_50, own_90 = np.percentile(own, [10, 50, 90])
    base_10, base_50, base_90 = np.percentile(other, [10, 50, 90])
    return Timing(
        workload=workload,
        calls=own.size,
        median_us=round(float(own_50), 3),
        p10_us=round(float(own_10), 3),
        p90_us=round(float(own_90), 3),
        baseline_median_us=round(float(base_50), 3),
        baseline_p10_us=round(float(base_10), 3),
        baseline_p90_us=round(float(base_90), 3),
        speedup=round(float(base_50 / own_50), 4),
        speedup_low=round(float(low), 4),
        speedup_high=round(float(high), 4),
    )


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean of positive numbers, rounded to four decimals."""
    return round(math.exp(sum(map(math.log, values)) / len(values)), 4)


def _plausible(answer: dict[str, Any], calls: int) -> list[float] | None:
    times = answer.get("times")
    if not isinstance(times, list):
        return None
    numbers = [t for t in times if isinstance(t, float) and 0 < t < 1e9]
    return numbers if len(numbers) == calls else None
