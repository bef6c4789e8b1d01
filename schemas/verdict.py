"""Verdicts: what one run of the judge found, with its evidence and environment. Immutable.

Only a run of the judge writes a verdict. One that was made on a CPU says so
(`environment.device_kind`) and is refused by corpus, curation and publishing.
"""

from enum import StrEnum
from typing import Any, ClassVar, Literal

from concur.schemas.base import Identified, Record
from concur.schemas.timing import Baseline, Clocks, Timing


class Status(StrEnum):
    """How a run of the judge ended. Only `passed` is accepted."""

    PASSED = "passed"
    UNSUPPORTED = "unsupported"
    SCHEMA_INVALID = "schema_invalid"
    SCREENED_OUT = "screened_out"
    COMPILE_ERROR = "compile_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    WRONG_STRUCTURE = "wrong_structure"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    NON_FINITE = "non_finite"
    WRONG_VALUES = "wrong_values"
    INPUT_MUTATED = "input_mutated"
    LIBRARY_WORK = "library_work"
    CHEATING = "cheating"
    INVALID_TASK = "invalid_task"
    UNDECIDED = "undecided"


class Fault(StrEnum):
    """Who is to blame for a status other than passed."""

    NONE = "none"
    CANDIDATE = "candidate"
    TASK = "task"
    JUDGE = "judge"
    INFRASTRUCTURE = "infrastructure"


class Outcome(StrEnum):
    """The three outcomes of every stage."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


class Finding(Record):
    """One thing that a check or the judge noticed."""

    rule: str
    """Rule id, such as `values.tolerance`."""
    severity: Literal["error", "warning", "info"]
    """error rejects; warning and info do not."""
    message: str
    """A plain sentence."""
    path: str = ""
    """File or record that it is about."""
    line: int = 0
    """Line in that file, from 1; 0 when there is none."""
    where: str = ""
    """JSON path, workload or result that it is about."""
    remedy: str = ""
    """What to do about it."""
    evidence: str = ""
    """Excerpt that proves it: compiler output, first wrong elements."""


class Environment(Record):
    """The machine and software that a run took place on."""

    device_kind: Literal["cuda", "cpu"]
    """Where the computation ran."""
    device: str
    """Name of the GPU, or of the processor."""
    compute_capability: str = ""
    """Of the GPU, such as 9.0."""
    driver: str = ""
    """Version of the GPU's driver."""
    cuda: str = ""
    """Version of CUDA that nvcc reports."""
    compiler: str = ""
    """First line of the host compiler's version."""
    torch: str
    """Version of PyTorch."""
    python: str
    """Version of Python."""
    os: str
    """Kernel name and release."""


class Comparison(Record):
    """How one result of one trial of one workload compared with the oracle."""

    workload: str
    """Name of the workload."""
    trial: int
    """Number of the trial, from 0; each has fresh inputs."""
    result: str
    """Name of the result."""
    elements: int
    """Elements compared."""
    wrong: int
    """Elements outside the tolerance."""
    max_abs_error: float
    """Largest absolute error against the oracle."""
    max_bound_ratio: float
    """Largest error as a share of what the tolerance allows there; above 1 is wrong."""
    reference_bound_ratio: float
    """The same for the reference in its own dtype: how much of the tolerance it needs itself."""


class Verdict(Identified):
    """What one run of the judge on one solution found."""

    ID_PREFIX: ClassVar[str] = "verdict"

    task_id: str
    """Id of the task."""
    solution_id: str
    """Id of the solution."""
    rules_version: int
    """Version of the judge's rules, raised by hand when a verdict could change."""
    level: Literal["quick", "full", "audit", ""] = ""
    """How thorough the run was; only full and audit pass. Empty before rules version 2."""
    status: Status
    """How it ended."""
    fault: Fault
    """Whose fault that is."""
    gates: tuple[str, ...]
    """Gates that the solution went through, in order; the last one is where it ended."""
    findings: tuple[Finding, ...] = ()
    """Everything that was noticed."""
    comparisons: tuple[Comparison, ...] = ()
    """Numerics, one per workload, trial and result."""
    timings: tuple[Timing, ...] = ()
    """Times, one per workload; only for right results on a GPU."""
    baseline: Literal["reference", "oracle", ""] = ""
    """What was timed beside the candidate, in eager PyTorch."""
    speedup: float | None = None
    """Geometric mean of the workloads' speedups; none without timings."""
    speedup_low: float | None = None
    """Lower end of the 95 % interval of that mean."""
    speedup_high: float | None = None
    """Upper end of it."""
    claim: Literal["faster", "slower", "even", ""] = ""
    """What that interval allows to be said: even unless it excludes 1. Empty without timings."""
    baselines: tuple[Baseline, ...] = ()
    """Times of further baselines, measured once for a task on a device."""
    clocks: tuple[Clocks, ...] = ()
    """State of the GPU before and after the timing of each workload."""
    environment: Environment
    """Where it ran."""
    isolation: tuple[str, ...] = ()
    """Layers between candidate and machine that were active."""
    seed: int
    """Secret seed of this run, told afterwards so that it can be repeated."""
    judged_on: str
    """Date of the run in UTC, YYYY-MM-DD."""

    @classmethod
    def compute_id(cls, plain: dict[str, Any]) -> str:
        """Return the content id.

        In a verdict by rules version 1, fields that came later do not count where they are by
        default, so that it keeps the id that it had before they existed.
        """
        if plain["rules_version"] > 1:
            return super().compute_id(plain)
        timings = [_without_defaults(Timing, timing) for timing in plain["timings"]]
        return super().compute_id({**_without_defaults(cls, plain), "timings": timings})

    @property
    def outcome(self) -> Outcome:
        """accepted when passed; undecided when judge or infrastructure are to blame."""
        if self.status is Status.PASSED:
            return Outcome.ACCEPTED
        if self.status is Status.UNDECIDED or self.fault in (Fault.JUDGE, Fault.INFRASTRUCTURE):
            return Outcome.UNDECIDED
        return Outcome.REJECTED


_LATER: dict[type[Record], frozenset[str]] = {
    Verdict: frozenset({"level", "speedup_low", "speedup_high", "claim", "baselines", "clocks"}),
    Timing: frozenset({"mad_us", "baseline_mad_us", "wall_median_us", "baseline_wall_median_us"})
    | {"clock", "floor_us", "result_floor_us", "verified"},
}
"""Fields that records did not have at first."""


def _without_defaults(cls: type[Record], plain: dict[str, Any]) -> dict[str, Any]:
    """Return plain data without the later fields of a record class that are by default."""
    defaults = {name: cls.model_fields[name].default for name in _LATER[cls]}
    return {
        key: value
        for key, value in plain.items()
        if key not in defaults
        or (tuple(value) if isinstance(value, list) else value) != defaults[key]
    }


class Measurement(Record):
    """A figure that a gate of admission looked at."""

    gate: str
    """Name of the gate."""
    workload: str
    """Name of the workload."""
    subject: str
    """Argument, result or candidate that it is about."""
    value: float
    """What was measured."""
    limit: float
    """What it is compared with."""
    passed: bool
    """Whether the gate let it through."""


class Admission(Identified):
    """Whether a task is fit to be judged on, with every measurement."""

    ID_PREFIX: ClassVar[str] = "admission"

    task_id: str
    """Id of the task."""
    rules_version: int
    """Version of the judge's rules."""
    sizes: Literal["twin", "full"]
    """twin: the small workloads, on a CPU. full: the real ones, on a GPU."""
    outcome: Outcome
    """Whether the task is admitted."""
    findings: tuple[Finding, ...] = ()
    """Everything that was noticed."""
    measurements: tuple[Measurement, ...] = ()
    """Every figure that a gate looked at."""
    environment: Environment
    """Where it ran."""
    seed: int
    """Seed of this run."""
    judged_on: str
    """Date of the run in UTC, YYYY-MM-DD."""
