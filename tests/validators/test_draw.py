"""Drawing inputs: from the seed alone, in the distributions that a task declares."""

import pytest
import torch

from concur.schemas.task import Task
from concur.validators.draw import case_of, derive, draw

from .conftest import task_of


@pytest.fixture(scope="module")
def column_sum() -> Task:
    return task_of("scaled-column-sum")


def changed(task: Task, **argument: object) -> Task:
    """The task with another first argument."""
    plain = task.to_plain()
    plain.pop("id")
    plain["arguments"][0] |= argument
    return Task.from_plain(plain)


def test_drawing_repeats_and_differs(column_sum: Task) -> None:
    workload = column_sum.workloads[0]
    cases = [case_of(column_sum, workload, "cpu", label, 7) for label in ("trial-0", "trial-1")]
    first, again, other = (draw(column_sum, c, "cpu") for c in (cases[0], cases[0], cases[1]))
    assert torch.equal(first["x"], again["x"])
    assert not torch.equal(first["x"], other["x"])
    assert not torch.equal(first["scale"], other["scale"])
    assert case_of(column_sum, workload, "cpu", "trial-0", 8).seed != cases[0].seed
    assert 0 <= derive(1, "a") < 1 << 63


def test_sets_of_the_timing_ring_share_parameters(column_sum: Task) -> None:
    workload = column_sum.workloads[0]
    one, two = (
        draw(column_sum, case_of(column_sum, workload, "cpu", label, 7), "cpu")
        for label in ("timed-0", "timed-1")
    )
    assert torch.equal(one["scale"], two["scale"]) and not torch.equal(one["x"], two["x"])


@pytest.mark.parametrize(
    ("dtype", "distribution"),
    [
        ("int8", {"kind": "integers", "low": "-128", "high": "128"}),
        ("float32", {"kind": "uniform", "low": "-0.25", "high": "0.5"}),
        ("bool", {"kind": "bernoulli", "probability": 0.25}),
        ("int64", {"kind": "permutation"}),
        ("int64", {"kind": "offsets", "low": "0", "high": "M*N"}),
        ("bfloat16", {"kind": "normal", "mean": 3.0, "std": 0.5}),
    ],
)
def test_distributions(column_sum: Task, dtype: str, distribution: dict[str, object]) -> None:
    task = changed(column_sum, dtype=dtype, distribution=distribution)
    case = case_of(task, task.workloads[0], "cpu", "trial-0", 3)
    x = draw(task, case, "cpu")["x"]
    assert x.shape == (40, 40) and str(x.dtype) == f"torch.{dtype}"
    match distribution["kind"]:
        case "integers":
            assert int(x.min()) < -100 and int(x.max()) > 100
        case "uniform":
            assert -0.25 <= float(x.min()) < -0.2 and 0.45 < float(x.max()) < 0.5
        case "bernoulli":
            assert 0.15 < float(x.double().mean()) < 0.35
        case "permutation":
            assert torch.equal(x.sort(dim=-1).values, torch.arange(40).expand(40, 40))
        case "offsets":
            assert bool((x.diff(dim=-1) >= 0).all())
            assert x[:, 0].eq(0).all() and x[:, -1].eq(1600).all()
        case _:
            assert 2.8 < float(x.double().mean()) < 3.2
