"""Say a verdict in words: what a model reads as the answer to its attempt, and people too."""

from concur.schemas.timing import Timing
from concur.schemas.verdict import Comparison, Fault, Finding, Status, Verdict

_MEANING = {
    Status.PASSED: "The solution is right on every workload.",
    Status.UNSUPPORTED: "This machine has not got the device that the solution needs.",
    Status.SCHEMA_INVALID: "The solution does not say what its schema demands.",
    Status.SCREENED_OUT: "The source cannot be accepted as it stands; nothing was run.",
    Status.COMPILE_ERROR: "The source does not compile.",
    Status.LOAD_ERROR: "The compiled solution cannot be loaded.",
    Status.RUNTIME_ERROR: "A call failed.",
    Status.TIMEOUT: "A step did not end in time.",
    Status.OUT_OF_MEMORY: "The device ran out of memory.",
    Status.WRONG_STRUCTURE: "Results or parameters are not what the task declares.",
    Status.WRONG_SHAPE: "A result has the wrong shape.",
    Status.WRONG_DTYPE: "A result has the wrong element type.",
    Status.NON_FINITE: "A result holds NaN or infinity where a finite value is due.",
    Status.WRONG_VALUES: "A result is wrong.",
    Status.INPUT_MUTATED: "The call writes to its inputs.",
    Status.LIBRARY_WORK: "The results are right, but a library did most of the work.",
    Status.CHEATING: "The solution interferes with the judge.",
    Status.INVALID_TASK: "The task itself is broken.",
    Status.UNDECIDED: "No verdict was reached.",
}


def render(verdict: Verdict) -> str:
    """Return what the judge says to whoever wrote the solution, as plain text."""
    lines = [f"Status: {verdict.status.value}. {_MEANING[verdict.status]}"]
    if verdict.fault not in (Fault.NONE, Fault.CANDIDATE):
        lines.append(f"The fault lies with the {verdict.fault.value}, not with the solution.")
    if verdict.status is not Status.PASSED and verdict.gates:
        lines.append(f"Stopped at: {verdict.gates[-1]}.")
    for found in verdict.findings:
        lines += _finding(found)
    wrong = [c for c in verdict.comparisons if c.wrong]
    right = sorted({c.workload for c in verdict.comparisons} - {c.workload for c in wrong})
    if wrong:
        lines += ["", "Results outside the tolerance:", *map(_comparison, wrong[:6])]
        if right:
            lines.append(f"Right so far: {', '.join(right)}.")
    if verdict.timings:
        lines += ["", f"Times on {verdict.environment.device}, median of single calls:"]
        lines += [_timing(t, verdict.baseline) for t in verdict.timings]
    if verdict.speedup is not None:
        lines.append(f"Geometric mean of the speedups: {verdict.speedup:.2f}x.")
    return "\n".join(lines)


def _finding(found: Finding) -> list[str]:
    where = f" [{found.where}]" if found.where else ""
    lines = ["", f"{found.severity}: {found.message}{where}"]
    if found.evidence:
        lines += [f"  {line}" for line in found.evidence.splitlines()]
    if found.remedy:
        lines.append(f"  {found.remedy}")
    return lines


def _comparison(comparison: Comparison) -> str:
    return (
        f"  {comparison.workload}, trial {comparison.trial}, {comparison.result}: "
        f"{comparison.wrong} of {comparison.elements} elements, "
        f"largest error {comparison.max_abs_error:.3g}"
    )


def _timing(timing: Timing, baseline: str) -> str:
    return (
        f"  {timing.workload}: {timing.median_us:.1f} us, eager {baseline} "
        f"{timing.baseline_median_us:.1f} us, {timing.speedup:.2f}x "
        f"({timing.speedup_low:.2f} to {timing.speedup_high:.2f})"
    )
