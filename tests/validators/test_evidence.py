"""Which timed calls are compared with the oracle: some secret ones, and the odd one out."""

import types

import pytest
import torch

from concur.schemas.task import Workload
from concur.validators.draw import Case
from concur.validators.evidence import Evidence, Kept, distance

WORKLOAD = Workload(name="w", role="typical", axes={"N": 4}, twin={"N": 4})
VALUES = torch.arange(1.0, 5.0)


def kept(index: int, values: torch.Tensor = VALUES) -> Kept:
    return Kept(Case(WORKLOAD, {"N": 4}, f"timed-{index}", index, 0), [values])


def positions(secret: int, count: int, odd: int = -1) -> set[int]:
    evidence = Evidence(number=3, least=50, block=10, secret=secret)
    for index in range(count):
        values = VALUES * 1.001 if index == odd else VALUES
        evidence.add(index, kept(index, values), [VALUES])
    return {int(call.case.label.partition("-")[2]) for call in evidence.calls()}


@pytest.mark.parametrize("count", [50, 60, 120, 200])
def test_one_kept_call_is_always_among_the_last(count: int) -> None:
    chosen = [positions(secret, count) for secret in range(60)]
    assert all(len(c) == 3 for c in chosen)
    assert all(max(c) >= count * 3 / 4 for c in chosen)
    assert len({tuple(sorted(c)) for c in chosen}) > 50, "positions are secret"


def test_the_call_that_lies_farthest_from_the_baseline_is_kept_too() -> None:
    for odd in range(0, 60, 7):
        assert odd in positions(3, 60, odd=odd)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_distance_of_floats_is_relative_to_element_and_rms(dtype: torch.dtype) -> None:
    base = torch.tensor([0.0, 3.0, 4.0, 5.0], dtype=dtype)
    rms = 12.5**0.5
    other = base.clone()
    other[0] = 0.5
    assert distance([other], [base]) == pytest.approx(0.5 / rms, rel=1e-3)
    assert distance([base], [base.clone()]) == 0.0


def test_what_is_no_number_is_infinitely_far_unless_the_baseline_says_so_too() -> None:
    numbers = torch.tensor([1.0, -torch.inf, torch.nan, torch.inf])
    assert distance([numbers], [numbers.clone()]) == 0.0
    for place, poison in ((0, torch.nan), (1, 0.0), (2, 0.0), (3, -torch.inf), (0, torch.inf)):
        changed = numbers.clone()
        changed[place] = poison
        assert distance([changed], [numbers]) == torch.inf, (place, poison)
    # Infinities in the baseline do not hide a finite error elsewhere.
    changed = numbers.clone()
    changed[0] = 2.0
    assert 0.0 < distance([changed], [numbers]) < 10.0


def test_other_types_count_elements_that_differ_and_nothing_is_at_no_distance() -> None:
    base = torch.arange(10)
    assert distance([base + (base == 3)], [base]) == pytest.approx(0.1)
    assert distance([torch.empty(0)], [torch.empty(0)]) == 0.0
    assert distance([], []) == 0.0


def test_long_results_are_looked_at_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    module: types.ModuleType = __import__(Evidence.__module__, fromlist=["_CHUNK"])
    monkeypatch.setattr(module, "_CHUNK", 3)
    base = torch.ones(10)
    other = base.clone()
    other[-1] = 3.0
    assert distance([other], [base]) == pytest.approx(1.0)
