"""Compare the results of one call with what was expected, and end the run where they are wrong."""

import torch

from concur.schemas.task import Task
from concur.schemas.verdict import Comparison, Fault, Status
from concur.validators.compare import Difference, compare_exactly, compare_floats
from concur.validators.draw import Case
from concur.validators.ended import Ended, finding
from concur.validators.reference import Expected

_LARGEST = 1e300


class WrongResult(Ended):
    """The results are wrong; `comparisons` are those of the call."""

    comparisons: tuple[Comparison, ...] = ()


def check(
    task: Task,
    case: Case,
    trial: int,
    results: list[torch.Tensor],
    expected: Expected,
    rule: str = "",
) -> list[Comparison]:
    """Return one comparison per result. Raises WrongResult (a rule other than the values' own)."""
    comparisons, wrong = [], None
    for position, (result, y) in enumerate(zip(task.results, results, strict=True)):
        oracle, rtol = expected.results[position], expected.rtol[position]
        if result.dtype.is_floating:
            difference = compare_floats(y, oracle, rtol)
            ratio = difference.max_scaled_error / rtol
        else:
            difference = compare_exactly(y, oracle)
            ratio = 2.0 if difference.wrong else 0.0
        comparisons.append(
            Comparison(
                workload=case.workload.name,
                trial=trial,
                result=result.name,
                elements=difference.elements,
                wrong=difference.wrong,
                max_abs_error=min(difference.max_abs_error, _LARGEST),
                max_bound_ratio=min(ratio, _LARGEST),
                reference_bound_ratio=expected.reference_ratio[position],
            )
        )
        if difference.wrong and wrong is None:
            wrong = _wrong(result.name, case, difference, tuple(oracle.shape), rtol, rule)
    if wrong is not None:
        wrong.comparisons = tuple(comparisons)
        raise wrong
    return comparisons


def _wrong(
    name: str, case: Case, difference: Difference, shape: tuple[int, ...], rtol: float, rule: str
) -> WrongResult:
    share = f"{difference.wrong} of {difference.elements} elements"
    if difference.non_finite:
        status, own = Status.NON_FINITE, "values.finite"
        message = (
            f"{name}: {difference.non_finite} of {difference.elements} elements are not finite"
        )
    elif rtol:
        status, own = Status.WRONG_VALUES, "values.tolerance"
        times = f"{difference.max_scaled_error / rtol:.3g} times what is allowed"
        largest = f"the largest error is {difference.max_abs_error:.3g}, {times}"
        message = f"{name}: {share} are outside the tolerance; {largest}"
    else:
        status, own = Status.WRONG_VALUES, "values.exact"
        message = f"{name}: {share} differ"
    shown = [
        f"{name}[{', '.join(map(str, _place(flat, shape)))}] = {got}, oracle {wanted}"
        for flat, got, wanted in difference.first_wrong
    ]
    where = f"{case.workload.name}/{case.label}"
    found = finding(rule or own, message, where=where, evidence="\n".join(shown))
    return WrongResult(status, Fault.CANDIDATE, found)


def _place(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        flat, index = divmod(flat, size)
        place.append(index)
    return tuple(reversed(place))
