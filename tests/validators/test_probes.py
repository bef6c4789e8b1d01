"""Probes: what each changes and leaves alone, when it is unfit, and what it unmasks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from concur.schemas.task import Task
from concur.schemas.tensors import DType
from concur.validators.compare import compare
from concur.validators.contents import EDGE
from concur.validators.probes import EVERY, Probe, exactly, probe_cases, probes_of, unfit
from concur.validators.reference import Expected
from concur.validators.tolerance import relative_tolerance

Tensors = dict[str, torch.Tensor]
Candidate = Callable[[Tensors], torch.Tensor]
SEED = 11


def product(**changes: Any) -> Task:
    """A task: y = x w + bias, with an integer column permutation that is applied to y."""
    sizes = {"M": 24, "K": 2048, "N": 16}
    task = {
        "name": "permuted-product",
        "title": "Product with permuted columns",
        "family": "matmul",
        "operations": ["matmul", "add"],
        "arguments": [
            {"name": "x", "role": "input", "dtype": "float32", "shape": ["M", "K"]},
            {
                "name": "order",
                "role": "input",
                "dtype": "int64",
                "shape": ["N"],
                "distribution": {"kind": "permutation"},
            },
            {"name": "w", "role": "parameter", "dtype": "float32", "shape": ["K", "N"]},
            {"name": "bias", "role": "parameter", "dtype": "float32", "shape": ["N"]},
        ],
        "results": [{"name": "y", "dtype": "float32", "shape": ["M", "N"]}],
        "workloads": [
            {"name": "plain", "role": "typical", "axes": sizes, "twin": sizes},
            {"name": "odd", "role": "boundary", "axes": sizes, "twin": sizes | {"M": 23, "N": 13}},
            {"name": "big", "role": "boundary", "axes": sizes, "twin": sizes | {"M": 67}},
        ],
        "tolerance": {"reduction": "K", "linear": ["x", "w", "bias"]},
        "description": "The product of x and w plus bias, columns in the given order.",
        "oracle": "def oracle(x, order, w, bias, **_):\n    return (x @ w + bias)[:, order]\n",
        "provenance": {"source": "concur", "license": "Apache-2.0", "group": "matmul"},
    }
    return Task.from_plain(task | changes)


def right(tensors: Tensors) -> torch.Tensor:
    y = tensors["x"] @ tensors["w"] + tensors["bias"]
    return y[:, tensors["order"]].contiguous()


def expected_of(task: Task, probe: Probe) -> Expected:
    wide = {n: t.double() if t.is_floating_point() else t for n, t in probe.tensors.items()}
    rtol = relative_tolerance(DType.FLOAT32, 2048, 1e-7)
    return Expected((right(wide),), (rtol,), (1e-7 / rtol,))


def caught(candidate: Candidate, probes: list[Probe], task: Task) -> set[str]:
    """Return the labels of the probes at which a candidate is wrong, called in their order."""
    labels = set()
    for probe in probes:
        expected = expected_of(task, probe)
        assert not unfit(task, probe, expected), probe.case.label
        if probe.expect == "exact":
            expected = exactly(expected)
        y = candidate(probe.tensors)
        if not compare(task.tolerance, y, expected.results[0], expected.rtol[0]).accepted:
            labels.add(probe.case.label.removeprefix("probe-"))
    return labels


@pytest.fixture(scope="module")
def task() -> Task:
    return product()


@pytest.fixture(scope="module")
def probes(task: Task) -> list[Probe]:
    return list(probe_cases(task, task.workloads[0], "cpu", SEED, EVERY))


def labels(found: list[Probe]) -> list[str]:
    return [probe.case.label.removeprefix("probe-") for probe in found]


def test_the_kinds_come_in_order(probes: list[Probe]) -> None:
    influence = [f"influence-{name}" for name in ("x", "order", "w", "bias")]
    exact = ["exact", "exact-x", "exact-w", "exact-bias"]
    expected = ["small", "large", "heavy", *exact, "plain", *influence, "window"]
    assert labels(probes) == expected
    rules = {probe.case.label.removeprefix("probe-"): probe.rule for probe in probes}
    assert rules["influence-w"] == "values.parameters" and rules["plain"] == ""
    assert rules["influence-x"] == rules["window"] == "values.influence"
    assert rules["small"] == rules["heavy"] == "values.scaled"
    assert rules["exact-x"] == "values.exact-probe"
    assert [p.in_place for p in probes] == [False] * 8 + [True] * 5


def test_levels(task: Task) -> None:
    quick = list(probes_of(task, "cpu", SEED, "quick"))
    assert labels(quick) == ["combined"] and quick[0].case.workload.name == "odd"
    full = list(probes_of(task, "cpu", SEED, "full"))
    assert [p.case.workload.name for p in full] == ["odd"] * 13 + ["big"] * 7
    assert not any("exact" in label or "heavy" in label for label in labels(full[13:]))
    audit = list(probes_of(task, "cpu", SEED, "audit"))
    assert [p.case.workload.name for p in audit] == ["odd"] * 13 + ["plain"] * 13 + ["big"] * 13


def test_probes_follow_from_the_seed(task: Task, probes: list[Probe]) -> None:
    again = list(probe_cases(task, task.workloads[0], "cpu", SEED, EVERY))
    other = list(probe_cases(task, task.workloads[0], "cpu", SEED + 1, EVERY))
    for one, two, three in zip(probes, again, other, strict=True):
        assert all(torch.equal(one.tensors[n], two.tensors[n]) for n in one.tensors)
        assert not torch.equal(one.tensors["x"], three.tensors["x"])


def test_each_step_changes_one_argument(probes: list[Probe]) -> None:
    row = probes[labels(probes).index("plain") :]
    for before, after in zip(row, row[1:], strict=False):
        changed = [n for n in after.tensors if not torch.equal(before.tensors[n], after.tensors[n])]
        name = after.case.label.removeprefix("probe-influence-")
        assert changed == ["x" if name == "probe-window" else name]


def test_scaled_inputs_are_scaled_exactly(probes: list[Probe]) -> None:
    small, large, plain = (probes[labels(probes).index(n)] for n in ("small", "large", "plain"))
    assert torch.equal(small.tensors["x"] * 2**16, large.tensors["x"])
    assert torch.equal(small.tensors["x"] * 2**10, plain.tensors["x"])
    for name in ("order", "w", "bias"):
        assert torch.equal(small.tensors[name], plain.tensors[name])


def test_arguments_can_be_left_unscaled() -> None:
    unscaled = product(tolerance={"reduction": "K", "unscaled": ["x"]})
    small, _ = probe_cases(unscaled, unscaled.workloads[0], "cpu", SEED, ("scaled",))
    plain, _ = probe_cases(unscaled, unscaled.workloads[0], "cpu", SEED, ("window",))
    assert torch.equal(small.tensors["x"], plain.tensors["x"])
    assert torch.equal(small.tensors["w"] * 1024, plain.tensors["w"])
    none = product(tolerance={"reduction": "K", "unscaled": ["x", "w", "bias"]})
    found = list(probe_cases(none, none.workloads[0], "cpu", SEED, EVERY))
    assert not {"small", "large", "heavy", "exact"} & set(labels(found))
    with pytest.raises(ValueError, match="not declared"):
        product(tolerance={"unscaled": ["z"]})


def test_exact_probes_are_whole_numbers(task: Task, probes: list[Probe]) -> None:
    for probe in probes:
        if probe.expect == "exact":
            y = expected_of(task, probe).results[0]
            assert torch.equal(y, y.round()) and 0 < float(y.max()) <= 2**24
    zero_one, wide = (probes[labels(probes).index(n)] for n in ("exact", "exact-x"))
    assert set(zero_one.tensors["x"].reshape(-1).tolist()) == {0.0, 1.0}
    values = wide.tensors["x"][wide.tensors["x"] > 0]
    assert (
        bool((values % 2 == 1).all()) and 2048 < float(values.min()) <= float(values.max()) < 4096
    )


def test_the_right_candidate_passes_every_probe(task: Task, probes: list[Probe]) -> None:
    assert caught(right, probes, task) == set()


def ignores(name: str) -> Candidate:
    """Right but for an argument whose first contents are kept for ever."""
    kept: Tensors = {}

    def run(tensors: Tensors) -> torch.Tensor:
        kept.setdefault(name, tensors[name].clone())
        return right({**tensors, name: kept[name]})

    return run


def remembers(key: Callable[[Tensors], Any]) -> Candidate:
    """Right, but the last result is given again while a key stays the same."""
    last: dict[Any, torch.Tensor] = {}

    def run(tensors: Tensors) -> torch.Tensor:
        found = key(tensors)
        if found not in last:
            last.clear()
            last[found] = right(tensors)
        return last[found]

    return run


def ends_of(tensor: torch.Tensor) -> Any:
    flat = tensor.reshape(-1)
    return tuple(torch.cat([flat[:EDGE], flat[-EDGE:], flat[::64]]).tolist())


def in_half(tensors: Tensors, sniffed: int = 0) -> torch.Tensor:
    """Compute in float16 where the first values of x look harmless."""
    head = tensors["x"].reshape(-1)[: sniffed or 1]
    if sniffed and float(head.abs().max()) > 100:
        return right(tensors)
    half = {n: t.half().float() if t.is_floating_point() else t for n, t in tensors.items()}
    return right(half)


def cut(tensors: Tensors) -> torch.Tensor:
    return right({**tensors, "x": tensors["x"][:, 1:], "w": tensors["w"][1:]})


def test_candidates_that_ignore_changes_are_caught(task: Task, probes: list[Probe]) -> None:
    row = probes[labels(probes).index("plain") :]
    for name in ("x", "order", "w", "bias"):
        assert f"influence-{name}" in caught(ignores(name), row, task)
    by_input = remembers(lambda t: tuple(t["x"].reshape(-1).tolist()))
    assert caught(by_input, row, task) == {f"influence-{n}" for n in ("order", "w", "bias")}


def test_a_fingerprint_of_ends_and_strides_is_caught(task: Task, probes: list[Probe]) -> None:
    row = probes[labels(probes).index("plain") :]
    fingerprint = remembers(lambda t: tuple(ends_of(t[n]) for n in ("x", "order", "w", "bias")))
    assert caught(fingerprint, row, task) == {"window"}


def test_low_precision_and_missing_terms_are_caught(task: Task, probes: list[Probe]) -> None:
    assert {"exact-x", "exact-w", "exact-bias"} <= caught(in_half, probes, task)
    assert "exact" in caught(cut, probes, task)
    assert "heavy" in caught(lambda t: in_half(t, 8192), probes, task)


def test_a_floor_on_magnitudes_is_caught(task: Task, probes: list[Probe]) -> None:
    def floored(tensors: Tensors) -> torch.Tensor:
        x = tensors["x"]
        return right({**tensors, "x": torch.where(x.abs() < 1e-4, 0.0, x)})

    assert "small" in caught(floored, probes, task)


def test_unfit_probes_are_named(task: Task, probes: list[Probe]) -> None:
    large = probes[labels(probes).index("large")]
    good = expected_of(task, large)
    assert not unfit(task, large, good)
    too_large = Expected((good.results[0] * 1e38,), good.rtol, good.reference_ratio)
    assert "range" in unfit(task, large, too_large)
    undefined = Expected((good.results[0] * float("nan"),), good.rtol, good.reference_ratio)
    assert "range" in unfit(task, large, undefined)
    assert "reference" in unfit(task, large, Expected(good.results, good.rtol, (0.5,)))
    exact = probes[labels(probes).index("exact")]
    halves = Expected((good.results[0].round() + 0.5,), good.rtol, (0.0,))
    assert "whole" in unfit(task, exact, halves)
    plain = probes[labels(probes).index("plain")]
    assert not unfit(task, plain, Expected(good.results, good.rtol, (0.9,)))
