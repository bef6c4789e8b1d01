"""Timed calls of candidate and baseline on one workload, pair after pair.

Calls alternate one by one, A B B A or B A A B as a secret coin says, each a round trip of its own:
fresh inputs for every pair, the same for both sides and never seen before; other addresses for
every call; poisoned results; the L2 cache flushed. Weights are set before the first call of a
workload and stay, as they do where a model is used. The warm-up is made of the same calls, so that
nothing tells a call that counts from one that does not. Some secret calls come with a short lead,
so that work outside the events has no time to be done in: they count for their results only.

Every few pairs an empty launcher is called in the same way, which shows what the host itself takes
(`twoclocks`). At the end the solution's process is stopped and the baseline called alone, to see
whether it was slowed down before.

A run of a workload ends when the interval of the ratio is narrow or its time is up; it is looked at
for its width alone, never for its place.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch

from concur.schemas.task import Task, Workload
from concur.schemas.verdict import Fault, Status
from concur.validators.calls import Called, Request
from concur.validators.draw import Case, case_of, derive, draw
from concur.validators.ended import Ended, finding
from concur.validators.environment import Device
from concur.validators.evidence import Evidence, Kept
from concur.validators.options import Level
from concur.validators.statistics import ratio
from concur.validators.twoclocks import Readings

_NARROW = 0.01
_SHORT_SHARE = 0.15
_HOST_EVERY = 4
_ALONE = 10
_SETTLE_S = 0.03
_QUICK_RESAMPLES = 200
_LONGEST_US = 1e9


SLOT = "candidate"
"""Slot of a child that holds a solution, or the empty launcher."""


@dataclass(frozen=True)
class Plan:
    """How many pairs of calls a workload gets."""

    least: int
    """Pairs in any case, unless they take longer than `patience_s`."""
    most: int
    """Pairs at the most."""
    block: int
    """Pairs after each of which a run may end; even, and under a quarter of `least`."""
    kept: int
    """Calls at secret positions whose results the oracle decides on."""
    budget_s: float = 0.6
    """Seconds after which a run ends that has its `least` pairs."""
    patience_s: float = 20.0
    """Seconds after which a run ends in any case, at the end of a block."""


PLANS: dict[Level, Plan] = {
    "quick": Plan(least=30, most=30, block=6, kept=2),
    "full": Plan(least=40, most=200, block=8, kept=3),
    "audit": Plan(least=100, most=200, block=10, kept=3, budget_s=2.0),
}
"""Plans by level."""


class Caller(Protocol):
    """The solution: a loaded `Candidate`."""

    def call(self, request: Request) -> Called:
        """Call once. Raises Ended, also where a call writes what it must not."""

    def stop(self) -> None:
        """Stop its process until `go_on`."""

    def go_on(self) -> None:
        """Let it go on."""


class Host(Protocol):
    """An empty launcher in a host like the solution's."""

    def call(self, request: Request) -> Called:
        """Call once. Raises Ended."""


class Baseline(Protocol):
    """What is timed beside it: a `Reference`."""

    def timed(
        self, case: Case, tensors: dict[str, torch.Tensor], layout: int, guard: int
    ) -> Called:
        """Return one timed call, with weights set where they are new. Raises Ended."""


@dataclass
class Run:
    """What the calls of one workload left."""

    workload: Workload
    """The workload."""
    evidence: Evidence
    """Calls whose results are compared with the oracle."""
    argument_bytes: int = 0
    """Bytes of the arguments of a call."""
    result_bytes: int = 0
    """Bytes of its results."""
    alone: list[float] = field(default_factory=list)
    """Microseconds of the baseline while the solution's process is stopped."""
    _host: list[tuple[float, float]] = field(default_factory=list)
    _mine: list[tuple[float, float]] = field(default_factory=list)
    _base: list[tuple[float, float]] = field(default_factory=list)

    @property
    def mine(self) -> Readings:
        """Times of the candidate."""
        return _readings(self._mine)

    @property
    def base(self) -> Readings:
        """Times of the baseline, of the same pairs."""
        return _readings(self._base)

    @property
    def host(self) -> Readings:
        """Times of an empty launcher; those of the baseline where there is none."""
        return _readings(self._host) if self._host else self.base

    def add_host(self, host: Called) -> None:
        """Take the times of a call of the empty launcher. Raises Ended."""
        self._host.append(_times(host, self.workload.name, Status.UNDECIDED, Fault.JUDGE))

    def add(self, mine: Called, base: Called) -> int:
        """Take the times of a pair; return how many pairs there are. Raises Ended."""
        blamed = (Status.RUNTIME_ERROR, Fault.CANDIDATE)
        self._mine.append(_times(mine, self.workload.name, *blamed))
        self._base.append(_times(base, self.workload.name, Status.UNDECIDED, Fault.JUDGE))
        return len(self._mine)


class Pairs:
    """Runs workloads of a task."""

    def __init__(
        self,
        task: Task,
        candidate: Caller,
        baseline: Baseline,
        host: Host | None,
        device: Device,
    ) -> None:
        """Take all sides; without `host` the baseline shows what a host takes."""
        self._task, self._device = task, device
        self._candidate, self._baseline, self._host = candidate, baseline, host

    def run(self, workload: Workload, plan: Plan, seed: int, warm_up_s: float) -> Run:
        """Call in pairs until the plan is met. Raises Ended."""
        secret = derive(seed, workload.name, "kept")
        run = Run(workload, Evidence(plan.kept, plan.least, plan.block, secret))
        begin = time.monotonic()
        for index, candidate_first in enumerate(_orders(seed, workload, "warm-up")):
            self._call(run, f"timed-warm-{index}", seed, candidate_first, fresh=index == 0)
            if index and time.monotonic() - begin >= warm_up_s:
                break
        begin = time.monotonic()
        coin = np.random.default_rng(derive(seed, workload.name, "lead"))
        count = 0
        for index, candidate_first in enumerate(_orders(seed, workload, "pairs")):
            short = bool(coin.random() < _SHORT_SHARE)
            told = (f"timed-{index}", seed, candidate_first)
            case, mine, base = self._call(run, *told, short=short)
            run.evidence.add(index, Kept(case, mine.results), base.results)
            if short:
                continue
            count = run.add(mine, base)
            if count % _HOST_EVERY == 1:
                self._call_host(run, case, seed)
            if count % plan.block == 0 and _enough(run, plan, count, time.monotonic() - begin):
                break
        self._call_alone(run, seed)
        return run

    def _call_host(self, run: Run, case: Case, seed: int) -> None:
        if self._host is not None:
            tensors = draw(self._task, case, self._device)
            layout, guard = _places(seed, case, "host")
            run.add_host(
                self._host.call(
                    Request(
                        self._task, case, tensors, SLOT, layout=layout, guard=guard, lead="long"
                    )
                )
            )

    def _call_alone(self, run: Run, seed: int) -> None:
        self._candidate.stop()
        try:
            time.sleep(_SETTLE_S)  # what its process queued on the device comes to its end
            for index in range(_ALONE):
                label = f"timed-alone-{index}"
                case = case_of(self._task, run.workload, self._device, label, seed)
                tensors = draw(self._task, case, self._device)
                base = self._baseline.timed(case, tensors, *_places(seed, case, "baseline"))
                blamed = (Status.UNDECIDED, Fault.JUDGE)
                run.alone.append(_times(base, run.workload.name, *blamed)[0])
        finally:
            self._candidate.go_on()

    def _call(
        self,
        run: Run,
        label: str,
        seed: int,
        candidate_first: bool,
        *,
        fresh: bool = False,
        short: bool = False,
    ) -> tuple[Case, Called, Called]:
        """Call both sides with the same fresh inputs. Returns the case, candidate, baseline."""
        case = case_of(self._task, run.workload, self._device, label, seed)
        tensors = draw(self._task, case, self._device)
        layout, guard = _places(seed, case, "candidate")
        request = Request(
            self._task,
            case,
            tensors,
            SLOT,
            layout=layout,
            guard=guard,
            lead="short" if short else "long",
            parameters="set" if fresh else "keep",
        )
        places = _places(seed, case, "baseline")
        if candidate_first:
            mine = self._candidate.call(request)
            base = self._baseline.timed(case, tensors, *places)
        else:
            base = self._baseline.timed(case, tensors, *places)
            mine = self._candidate.call(request)
        run.argument_bytes = sum(t.numel() * t.element_size() for t in tensors.values())
        run.result_bytes = sum(t.numel() * t.element_size() for t in mine.results)
        return case, mine, base


def _enough(run: Run, plan: Plan, count: int, spent_s: float) -> bool:
    if count >= plan.most or spent_s >= plan.patience_s:
        return True
    if count < plan.least:
        return False
    if spent_s >= plan.budget_s:
        return True
    return ratio(run.mine.us, run.base.us, count, _QUICK_RESAMPLES).half_width <= _NARROW


def _orders(seed: int, workload: Workload, what: str) -> Iterator[bool]:
    """Yield whether the candidate comes first: a secret for every two pairs, then the reverse."""
    coin = np.random.default_rng(derive(seed, workload.name, what, "order"))
    while True:
        first = bool(coin.integers(2))
        yield first
        yield not first


def _places(seed: int, case: Case, side: str) -> tuple[int, int]:
    """Return the seed of a call's memory layout, and the byte that fills its gaps."""
    number = derive(seed, case.workload.name, case.label, side)
    return number, 0xFF if number & 1 else 1 + number % 253


def _times(called: Called, where: str, status: Status, fault: Fault) -> tuple[float, float]:
    """Return a call's microseconds by the events and by the judge. Raises Ended for no time."""
    us = called.us
    if us is None or not math.isfinite(us) or not 0.0 < us < _LONGEST_US:
        side = "the baseline" if fault is Fault.JUDGE else "the solution"
        found = finding("timing.failed", f"a timed call of {side} gave no time", where=where)
        raise Ended(status, fault, found)
    return us, called.wall_us


def _readings(times: list[tuple[float, float]]) -> Readings:
    both = np.asarray(times, dtype=np.float64).reshape(-1, 2)
    return Readings(both[:, 0], both[:, 1])
