"""Compare the results of one call with what was expected, and end the run where they are wrong."""

import torch

from concur.schemas.task import Task
from concur.schemas.verdict import Comparison, Fault, Status
from concur.validators.compare import Difference, compare
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
    """Return one comparison per result, each by the task's own rule of comparing.

    `rule` is what the finding names, in place of the rule that the values themselves broke; a probe
    passes its own. Raises WrongResult with the first wrong result and the comparisons of all.
    """
    comparisons, wrong = [], None
    for position, (result, y) in enumerate(zip(task.results, results, strict=True)):
        oracle, rtol = expected.results[position], expected.rtol[position]
        difference = compare(task.tolerance, y, oracle, rtol)
        comparisons.append(
            Comparison(
                workload=case.workload.name,
                trial=trial,
                result=result.name,
                elements=difference.elements,
                wrong=difference.wrong,
                max_abs_error=min(difference.max_abs_error, _LARGEST),
                max_bound_ratio=min(_ratio(difference, rtol), _LARGEST),
                reference_bound_ratio=expected.reference_ratio[position],
            )
        )
        if not difference.accepted and wrong is None:
            status, own = _status(difference, rtol)
            message = _message(result.name, difference, rtol)
            where = f"{case.workload.name}/{case.label}"
            shown = _shown(result.name, difference, tuple(oracle.shape))
            found = finding(rule or own, message, where=where, evidence=shown)
            wrong = WrongResult(status, Fault.CANDIDATE, found)
    if wrong is not None:
        wrong.comparisons = tuple(comparisons)
        raise wrong
    return comparisons


def _ratio(difference: Difference, rtol: float) -> float:
    """Return the largest error in bounds; 2 stands for a wrong result that had to be exact."""
    if not rtol:
        return 2.0 if difference.wrong else 0.0
    return difference.max_scaled_error / rtol


def _status(difference: Difference, rtol: float) -> tuple[Status, str]:
    """Return the status of a wrong result and the rule of its own."""
    if difference.non_finite:
        return Status.NON_FINITE, "values.finite"
    return Status.WRONG_VALUES, "values.tolerance" if rtol else "values.exact"


def _message(name: str, difference: Difference, rtol: float) -> str:
    elements = difference.elements
    if difference.non_finite:
        return f"{name}: {difference.non_finite} of {elements} elements are not finite"
    share = f"{difference.wrong} of {elements} elements"
    if not rtol:
        return f"{name}: {share} differ from values that have to be met exactly"
    times = f"{difference.max_scaled_error / rtol:.3g} times what is allowed"
    largest = f"the largest error is {difference.max_abs_error:.3g}, {times}"
    turned = f"; the cosine is {difference.cosine:.9g}" if difference.cosine < 1.0 else ""
    return f"{name}: {share} are outside the tolerance; {largest}{turned}"


def _shown(name: str, difference: Difference, shape: tuple[int, ...]) -> str:
    """Return the first wrong elements by multi-index, and the neighbours of the very first."""

    def line(flat: int, got: str, wanted: str) -> str:
        place = ", ".join(map(str, _place(flat, shape)))
        return f"{name}[{place}] = {got}, oracle {wanted}"

    lines = [line(*element) for element in difference.first_wrong]
    lines += ["around the first:", *(line(*element) for element in difference.around)]
    return "\n".join(lines)


def _place(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        flat, index = divmod(flat, size)
        place.append(index)
    return tuple(reversed(place))
