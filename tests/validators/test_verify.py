"""What a wrong result is told: which elements, what stands around them, and by which rule."""

import math

import pytest
import torch

from concur.schemas.task import Task
from concur.schemas.verdict import Status
from concur.validators.draw import case_of
from concur.validators.reference import Expected
from concur.validators.verify import WrongResult, check

RTOL = 1e-5


def stats(rule: dict[str, object]) -> Task:
    """A task with a floating and an integer result."""
    sizes = {"M": 3, "N": 4}
    return Task.from_plain(
        {
            "name": "twice",
            "title": "Twice the input, and its signs",
            "family": "elementwise",
            "operations": ["mul", "sign"],
            "arguments": [{"name": "x", "role": "input", "dtype": "float32", "shape": ["M", "N"]}],
            "results": [
                {"name": "y", "dtype": "float32", "shape": ["M", "N"]},
                {"name": "positive", "dtype": "bool", "shape": ["M", "N"]},
            ],
            "workloads": [{"name": "w", "role": "boundary", "axes": sizes, "twin": sizes}],
            "tolerance": rule,
            "description": "Twice x, and whether x is above zero.",
            "oracle": "def oracle(x, **_):\n    return 2 * x, x > 0\n",
            "provenance": {"source": "concur", "license": "Apache-2.0", "group": "twice"},
        }
    )


def checked(
    change: str,
    value: float,
    rule: str = "",
    rtol: float = RTOL,
    tolerance: dict[str, object] | None = None,
) -> WrongResult | None:
    """Return how a result is refused whose element [1, 2] has another value, if it is."""
    task = stats(tolerance or {})
    case = case_of(task, task.workloads[0], "cpu", "trial-0", 1)
    y = torch.arange(12.0).reshape(3, 4) - 5
    expected = Expected((y.double(), y > 0), (rtol, 0.0), (0.1, 0.0))
    results = [y.clone(), (y > 0).clone()]
    if change == "y":
        results[0][1, 2] = value
    else:
        results[1].view(torch.uint8)[1, 2] = int(value)
    try:
        comparisons = check(task, case, 0, results, expected, rule)
    except WrongResult as wrong:
        assert [c.result for c in wrong.comparisons] == ["y", "positive"]
        return wrong
    assert [c.wrong for c in comparisons][1] == 0
    return None


def test_the_first_wrong_element_comes_with_its_place_and_neighbours() -> None:
    wrong = checked("y", 1.5)
    assert wrong is not None and wrong.status is Status.WRONG_VALUES
    (found,) = wrong.findings
    assert (found.rule, found.where) == ("values.tolerance", "w/trial-0")
    assert found.evidence.splitlines() == [
        "y[1, 2] = 1.5, oracle 1",
        "around the first:",
        "y[1, 0] = -1, oracle -1",
        "y[1, 1] = 0, oracle 0",
        "y[1, 2] = 1.5, oracle 1",
        "y[1, 3] = 2, oracle 2",
        "y[2, 0] = 3, oracle 3",
    ]


@pytest.mark.parametrize(
    ("change", "value", "rtol", "status", "rule"),
    [
        ("y", float("nan"), RTOL, Status.NON_FINITE, "values.finite"),
        ("y", 1.0000005, 0.0, Status.WRONG_VALUES, "values.exact"),
        ("positive", 0, RTOL, Status.WRONG_VALUES, "values.exact"),
        ("positive", 2, RTOL, Status.WRONG_VALUES, "values.exact"),
    ],
)
def test_rules(change: str, value: float, rtol: float, status: Status, rule: str) -> None:
    wrong = checked(change, value, rtol=rtol)
    assert wrong is not None and (wrong.status, wrong.findings[0].rule) == (status, rule)
    named = checked(change, value, "values.influence", rtol)
    assert named is not None and (named.status, named.findings[0].rule) == (
        status,
        "values.influence",
    )
    position = 0 if change == "y" else 1
    assert named.comparisons[position].wrong == 1
    assert named.comparisons[position].max_bound_ratio == (0.0 if math.isnan(value) else 2.0)


def test_the_rule_of_the_task_decides() -> None:
    ratio: dict[str, object] = {"rule": "matched_ratio", "matched_ratio": 0.9, "cap": 100.0}
    cosine: dict[str, object] = {"rule": "cosine", "cosine": 0.999, "cap": 100.0}
    assert checked("y", 1.0000005) is None
    for tolerance in (ratio, cosine):
        assert checked("y", 1.0002) is not None
        assert checked("y", 1.0002, tolerance=tolerance) is None
        wrong = checked("y", 1.1, tolerance=tolerance)
        assert wrong is not None and wrong.findings[0].rule == "values.tolerance"
    assert wrong is not None and "the cosine is 0.99" in wrong.findings[0].message
    assert checked("y", 1.0002, rtol=0.0, tolerance=ratio) is not None
