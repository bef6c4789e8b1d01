"""Time a right solution beside the baseline, on a GPU that nobody else uses meanwhile.

How the calls are made is told in `pairs`. Which times count is decided by two clocks (`twoclocks`)
and by what memory allows (`roofline`); that the timed calls computed what they had to, by their own
results (`evidence`), whose expected values are computed after the last timed call; how sure the
speedup is, by a bootstrap over pairs (`statistics`).
"""

from dataclasses import dataclass
from typing import Literal

from concur.schemas.timing import Baseline, Clocks, Timing
from concur.schemas.verdict import Finding
from concur.validators.baselines import further_baselines
from concur.validators.clocks import sample, throttled
from concur.validators.draw import derive, release
from concur.validators.ended import finding
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions
from concur.validators.pairs import PLANS, Caller, Host, Pairs, Run
from concur.validators.reference import Reference
from concur.validators.roofline import Floors, ceiling, check_floors
from concur.validators.statistics import Ratio, Summary, claims, combine, ratio, summarise
from concur.validators.twoclocks import Agreed, agree, undisturbed
from concur.validators.verify import check

WARM_UP_S = 0.2
"""Seconds of calls before the first pair that counts, on the first workload."""

SHORT_WARM_UP_S = 0.05
"""The same on further workloads, where the device is at its clocks already."""

_UNSTABLE = 0.05


@dataclass(frozen=True)
class TimingReport:
    """What timing a solution gave: what the fields of the same name in a verdict say."""

    timings: tuple[Timing, ...] = ()
    """One for each workload."""
    clocks: tuple[Clocks, ...] = ()
    """Two for each workload, where the device tells."""
    baselines: tuple[Baseline, ...] = ()
    """The baseline that was timed here, as `eager`, and further ones."""
    findings: tuple[Finding, ...] = ()
    """Warnings and notes; errors are raised."""
    speedup: float | None = None
    """Geometric mean of the workloads' speedups."""
    speedup_low: float | None = None
    """Lower end of its 95 % interval."""
    speedup_high: float | None = None
    """Upper end of it."""
    claim: Literal["faster", "slower", "even", ""] = ""
    """What the interval allows to be said."""


class Stopwatch:
    """Times one solution on all workloads of a task."""

    def __init__(
        self,
        candidate: Caller,
        reference: Reference,
        lock: DeviceLock,
        seed: int,
        options: JudgeOptions,
        host: Host | None = None,
    ) -> None:
        """Take both sides, the lock of the device, the secret seed of the run, and an empty
        launcher in a host like the candidate's."""
        self._candidate, self._reference, self._lock = candidate, reference, lock
        self._seed, self._options, self._task = seed, options, reference.task
        self._host = host
        self._clocks: list[Clocks] = []

    def measure(self) -> TimingReport:
        """Return the times of every workload. Raises Ended for wrong results and impossible times.

        The device is taken once for all of them: every taking waits for all others to finish what
        they are at.
        """
        with self._lock.exclusive():
            runs = self._runs()
        self._reference.free()
        found = throttled(self._clocks)
        timings, ratios = [], []
        for run in runs:
            with self._lock.shared():
                verified = self._verify(run)
            timing, speed, noticed = self._conclude(run, verified)
            timings.append(timing)
            ratios.append(speed)
            found += noticed
        others, noticed = further_baselines(self._task, self._options, self._lock, self._seed)
        eager = [
            Baseline(kind="eager", workload=t.workload, median_us=t.baseline_median_us)
            for t in timings
        ]
        whole = combine(ratios)
        return TimingReport(
            timings=tuple(timings),
            clocks=tuple(self._clocks),
            baselines=(*eager, *others),
            findings=(*found, *noticed),
            speedup=round(whole.value, 4),
            speedup_low=round(whole.low, 4),
            speedup_high=round(whole.high, 4),
            claim=claims(whole.low, whole.high),
        )

    def _runs(self) -> list[Run]:
        ceiling(self._options.device)
        task, device = self._task, self._options.device
        pairs = Pairs(task, self._candidate, self._reference, self._host, device)
        runs: list[Run] = []
        for workload in task.workloads:
            before = sample(workload.name, "before", device)
            warm_up = SHORT_WARM_UP_S if runs else WARM_UP_S
            runs.append(pairs.run(workload, PLANS[self._options.level], self._seed, warm_up))
            after = sample(workload.name, "after", device)
            self._clocks += [told for told in (before, after) if told is not None]
        return runs

    def _verify(self, run: Run) -> int:
        """Compare the kept calls with the oracle. Returns their number. Raises WrongResult."""
        calls = run.evidence.calls()
        for kept in calls:
            expected = self._reference.expected(kept.case)
            trial = self._options.trials
            check(self._task, kept.case, trial, kept.results, expected, "values.timed")
            release(self._options.device)
        return len(calls)

    def _conclude(self, run: Run, verified: int) -> tuple[Timing, Ratio, list[Finding]]:
        """Return times, speedup and warnings of a workload. Raises Ended for what cannot be."""
        name, mine, base = run.workload.name, run.mine, run.base
        agreed = agree(mine, run.host, name)
        baseline_us, noticed = undisturbed(base, run.alone, name)
        own, other = summarise(agreed.us), summarise(baseline_us)
        found = [*agreed.findings, *noticed]
        speed = ceiling(self._options.device)
        limits = None
        if speed is not None:
            limits = Floors.of(run.argument_bytes, run.result_bytes, speed)
            found += check_floors(own.median, other.median, limits, name)
        gained = ratio(agreed.us, baseline_us, derive(self._seed, name, "bootstrap"))
        if gained.half_width > _UNSTABLE:
            message = f"the speedup is known to {gained.half_width:.0%} only"
            found.append(finding("timing.unstable", message, where=name, severity="warning"))
        timing = _timing(run, agreed, (own, other), gained, limits)
        return timing.model_copy(update={"verified": verified}), gained, found


def _timing(
    run: Run, agreed: Agreed, both: tuple[Summary, Summary], gained: Ratio, limits: Floors | None
) -> Timing:
    own, other = both
    return Timing(
        workload=run.workload.name,
        calls=agreed.us.size,
        median_us=round(own.median, 3),
        p10_us=round(own.p10, 3),
        p90_us=round(own.p90, 3),
        mad_us=round(own.mad, 3),
        wall_median_us=round(summarise(run.mine.wall).median, 3),
        baseline_median_us=round(other.median, 3),
        baseline_p10_us=round(other.p10, 3),
        baseline_p90_us=round(other.p90, 3),
        baseline_mad_us=round(other.mad, 3),
        baseline_wall_median_us=round(summarise(run.base.wall).median, 3),
        clock=agreed.clock,
        floor_us=None if limits is None else round(limits.all_us, 3),
        result_floor_us=None if limits is None else round(limits.results_us, 3),
        speedup=round(gained.value, 4),
        speedup_low=round(gained.low, 4),
        speedup_high=round(gained.high, 4),
    )


def disagreements(first: TimingReport, second: TimingReport) -> list[Finding]:
    """Return a warning for each workload whose speedup another measurement puts elsewhere."""
    found = []
    for one, two in zip(first.timings, second.timings, strict=True):
        if one.speedup_high < two.speedup_low or two.speedup_high < one.speedup_low:
            message = (
                f"{one.speedup:.3f} times the baseline's speed ({one.speedup_low:.3f} to "
                f"{one.speedup_high:.3f}), and {two.speedup:.3f} when measured again"
            )
            where = one.workload
            found.append(finding("timing.unstable", message, where=where, severity="warning"))
    return found
