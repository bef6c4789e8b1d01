"""What timing a solution shows: times, further baselines, and the state of the device meanwhile."""

from typing import Literal

from concur.schemas.base import Record


class Timing(Record):
    """Time of one call on one workload. All in microseconds; medians over `calls` calls."""

    workload: str
    """Name of the workload."""
    calls: int
    """Timed calls of the candidate, and of the baseline."""
    median_us: float
    """Median time of the candidate."""
    p10_us: float
    """Tenth percentile."""
    p90_us: float
    """Ninetieth percentile."""
    baseline_median_us: float
    """Median time of the baseline, measured in the same run."""
    baseline_p10_us: float
    """Its tenth percentile."""
    baseline_p90_us: float
    """Its ninetieth percentile."""
    speedup: float
    """Baseline median over candidate median."""
    speedup_low: float
    """Lower end of the 95 % bootstrap interval of that ratio."""
    speedup_high: float
    """Upper end of it."""
    mad_us: float | None = None
    """Median absolute deviation of the candidate's times; none before rules version 2."""
    baseline_mad_us: float | None = None
    """The same of the baseline's times."""
    wall_median_us: float | None = None
    """Median time of a call of the candidate on the judge's own clock, from command to answer."""
    baseline_wall_median_us: float | None = None
    """The same of the baseline: what it exceeds the baseline's median by is overhead of a call."""
    clock: Literal["events", "wall"] = "events"
    """Where the candidate's times come from. events: the device's own events. wall: the judge's
    clock less the baseline's overhead, because the events claimed less than that clock allows."""
    floor_us: float | None = None
    """Time that moving every byte of arguments and results once takes at the measured bandwidth."""
    result_floor_us: float | None = None
    """Time that writing the results alone takes, less what fits into the L2 cache."""
    verified: int = 0
    """Timed calls whose results were compared with the oracle; all are compared with the
    baseline's."""


class Baseline(Record):
    """Time of another way to compute the task on one workload."""

    kind: Literal["eager", "eager-tf32", "compile"]
    """eager: PyTorch as it is. eager-tf32: with TF32 allowed. compile: torch.compile, defaults."""
    workload: str
    """Name of the workload."""
    median_us: float
    """Median time of a call in microseconds."""


class Clocks(Record):
    """State of the GPU beside the timing of one workload, by NVML; none where it is not told."""

    workload: str
    """Name of the workload."""
    moment: Literal["before", "after"]
    """Whether it was read before or after the timed calls."""
    sm_mhz: int | None = None
    """Clock of the multiprocessors in MHz."""
    memory_mhz: int | None = None
    """Clock of the memory in MHz."""
    temperature_c: int | None = None
    """Temperature in degrees Celsius."""
    power_w: float | None = None
    """Power draw in watts."""
    throttle: tuple[str, ...] = ()
    """Reasons for clocks below the highest, such as software-power-cap."""
