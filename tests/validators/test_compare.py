"""Comparing: what counts as equal, what a finding shows, and how much memory it takes."""

import math
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from concur.schemas.task import Tolerance
from concur.validators import compare as comparing
from concur.validators.compare import (
    BYTES_PER_ELEMENT,
    Difference,
    absolute_floor,
    angle,
    chunk_elements,
    compare,
    compare_exactly,
    compare_floats,
    everywhere,
    rms_of,
)

CHUNK = 1024


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(comparing, "SMALLEST_CHUNK", CHUNK)
    yield


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of tensors that operations make, while they live."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known: dict[int, int] = {}
        self.held = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not func.is_view:
            self._count(out)
        return out

    def _count(self, out: torch.Tensor) -> None:
        storage = out.untyped_storage()
        if storage.data_ptr() in self.known:
            return
        self.known[storage.data_ptr()] = storage.nbytes()
        self.held += storage.nbytes()
        self.peak = max(self.peak, self.held)
        weakref.finalize(out, self._forget, storage.data_ptr())

    def _forget(self, address: int) -> None:
        self.held -= self.known.pop(address, 0)


def test_no_temporary_is_as_large_as_a_tensor(small_chunks: None) -> None:
    oracle = torch.randn(64 * CHUNK, dtype=torch.float64)
    right, wrong = oracle.float(), torch.full((64 * CHUNK,), math.nan)
    whole = torch.arange(64 * CHUNK)
    other = whole + 1
    for work in (
        lambda: compare_floats(right, oracle, 1e-6),
        lambda: compare_floats(wrong, oracle, 1e-6),
        lambda: compare(Tolerance(rule="cosine", cosine=0.99), wrong, oracle, 1e-6),
        lambda: compare_exactly(whole, other),
        lambda: rms_of(oracle),
        lambda: angle(right, oracle),
        lambda: everywhere(oracle, torch.isfinite),
    ):
        with Watch() as watch:
            work()
        assert 0 < watch.peak <= CHUNK * BYTES_PER_ELEMENT


def test_chunks_follow_from_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    device = torch.device("cuda", 0)
    free = 0
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 1 << 37))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 1 << 20)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 1 << 20)
    assert chunk_elements(device) == 1 << 20
    free = 300 << 20
    assert 1 << 20 <= chunk_elements(device) < 1 << 21
    free = 1 << 36
    assert chunk_elements(device) == 1 << 25


def test_all_chunks_are_looked_at(small_chunks: None) -> None:
    oracle = torch.randn(3 * CHUNK + 5, dtype=torch.float64)
    scale = float(oracle.square().mean().sqrt())
    assert rms_of(oracle) == pytest.approx(scale, rel=1e-12)
    for place in (0, CHUNK - 1, CHUNK, 3 * CHUNK + 4):
        y = oracle.float()
        y[place] += 1
        difference = compare_floats(y, oracle, 1e-5)
        assert (difference.wrong, difference.first_wrong[0][0]) == (1, place)
    y = oracle.float()
    y[CHUNK - 2 : CHUNK + 9] += 1
    shown = compare_floats(y, oracle, 1e-5).first_wrong
    assert [place for place, _, _ in shown] == [CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1]


def test_undefined_and_infinite_elements_have_to_be_where_the_oracle_has_them() -> None:
    oracle = torch.tensor([1.0, 2.0, math.inf, -math.inf, math.nan], dtype=torch.float64)
    same = compare_floats(oracle.float(), oracle, 1e-6)
    assert (same.wrong, same.non_finite, same.accepted) == (0, 0, True)
    for place, value, lost in (
        (0, math.nan, 1),
        (1, math.inf, 1),
        (2, -math.inf, 0),
        (2, 3e38, 0),
        (2, math.nan, 0),
        (3, math.inf, 0),
        (4, 0.0, 0),
        (4, math.inf, 0),
    ):
        y = oracle.float()
        y[place] = value
        difference = compare_floats(y, oracle, 0.03)
        assert (difference.wrong, difference.non_finite) == (1, lost), (place, value)
        assert math.isfinite(difference.max_scaled_error)


def test_values_beyond_the_type_become_infinite() -> None:
    oracle = torch.tensor([70000.0, -1e6, 1.0], dtype=torch.float64)
    y = torch.tensor([math.inf, -math.inf, 1.0], dtype=torch.float16)
    assert compare_floats(y, oracle, 1e-3).accepted
    assert not compare_floats(-y, oracle, 1e-3).accepted


def test_no_oracle_element_makes_the_bound_infinite() -> None:
    oracle = torch.ones(1000, dtype=torch.float64)
    oracle[0] = 1e200
    y = torch.zeros(1000)
    y[0] = math.inf
    assert rms_of(oracle) == 1.0
    assert compare_floats(y, oracle, 0.03).wrong == 999


def test_without_a_tolerance_only_the_rounded_oracle_is_right() -> None:
    oracle = torch.tensor([1 / 3, 2.0, 0.0], dtype=torch.float64)
    y = oracle.float()
    assert compare_floats(y, oracle, 0.0).accepted
    for place in range(3):
        off = y.clone()
        off[place] = torch.nextafter(off[place], torch.tensor(9.0))
        assert compare_floats(off, oracle, 0.0).wrong == 1


def test_booleans_are_one_byte_of_zero_or_one() -> None:
    oracle = torch.tensor([True, False, True])
    assert compare_exactly(oracle.clone(), oracle).accepted
    y = torch.tensor([2, 0, 1], dtype=torch.uint8).view(torch.bool)
    difference = compare_exactly(y, oracle)
    assert (difference.wrong, difference.first_wrong) == (1, ((0, "2", "1"),))


def test_large_integers_are_shown_and_compared_exactly() -> None:
    oracle = torch.tensor([2**62, 5, -(2**62)])
    y = oracle.clone()
    y[0] += 1
    difference = compare_exactly(y, oracle)
    assert difference.first_wrong == ((0, str(2**62 + 1), str(2**62)),)
    assert [place for place, _, _ in difference.around] == [0, 1, 2]


def test_shapes_are_equal_and_nothing_is_broadcast() -> None:
    with pytest.raises(ValueError, match="shapes differ"):
        compare_floats(torch.zeros(1), torch.zeros(4, dtype=torch.float64), 1e-3)
    with pytest.raises(ValueError, match="contiguous"):
        compare_floats(torch.zeros(4, 2).T, torch.zeros(2, 4, dtype=torch.float64), 1e-3)
    assert compare_floats(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.float64), 1e-3).accepted


def many_right(share: float, error: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A result with a share of its elements off by an error, in units of the rms."""
    oracle = torch.ones(10000, dtype=torch.float64)
    y = oracle.float()
    y[torch.randperm(10000, generator=torch.Generator().manual_seed(1))[: round(share * 1e4)]] += (
        2 * error
    )
    return y, oracle


@pytest.mark.parametrize(
    ("share", "error", "accepted"),
    [(0.0, 0.0, True), (0.009, 5e-3, True), (0.011, 5e-3, False), (0.0001, 0.02, False)],
)
def test_matched_ratio_lets_few_elements_off_a_little(
    share: float, error: float, accepted: bool
) -> None:
    tolerance = Tolerance(rule="matched_ratio", matched_ratio=0.99, cap=10.0)
    difference = compare(tolerance, *many_right(share, error), 1e-3)
    assert difference.accepted is accepted
    assert compare(Tolerance(), *many_right(share, error), 1e-3).accepted is (share == 0)


def test_the_cap_never_admits_an_element_that_was_not_computed() -> None:
    tolerance = Tolerance(rule="matched_ratio", matched_ratio=0.99, cap=1000.0)
    y, oracle = many_right(0.0, 0.0)
    y[-1] = 0
    assert not compare(tolerance, y, oracle, 0.03).accepted
    y[-1] = math.nan
    assert not compare(tolerance, y, oracle, 0.03).accepted


def test_cosine_needs_direction_length_and_no_outlier() -> None:
    generator = torch.Generator().manual_seed(2)
    oracle = torch.randn(20000, dtype=torch.float64, generator=generator)
    noise = torch.randn(20000, dtype=torch.float64, generator=generator)
    tolerance = Tolerance(rule="cosine", cosine=0.999, cap=10.0)

    def at(y: torch.Tensor) -> Difference:
        return compare(tolerance, y.float(), oracle, 0.01)

    near = at(oracle + 0.01 * noise)
    assert near.accepted and near.wrong and 0.999 < near.cosine < 1
    assert not at(oracle * 1.2).accepted
    assert not at(oracle + 0.2 * noise).accepted
    outlier = oracle + 0.01 * noise
    outlier[7] += 3
    assert not at(outlier).accepted
    assert angle(torch.zeros(3), torch.zeros(3, dtype=torch.float64)) == (1.0, 1.0)


def test_an_exact_result_is_not_let_off_by_the_rule() -> None:
    tolerance = Tolerance(rule="matched_ratio", matched_ratio=0.9)
    assert not compare(tolerance, *many_right(0.01, 1e-4), 0.0).accepted


@pytest.mark.parametrize(
    "plain",
    [
        {"rule": "matched_ratio"},
        {"matched_ratio": 0.95},
        {"rule": "matched_ratio", "matched_ratio": 0.5},
        {"cosine": 0.999},
        {"rule": "cosine"},
        {"rule": "cosine", "cosine": 0.5},
        {"rule": "cosine", "cosine": 0.999, "cap": 1e6},
    ],
)
def test_a_rule_comes_with_its_limit(plain: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"matched_ratio|cosine|cap"):
        Tolerance.from_plain(plain)


def test_floors_are_denormals() -> None:
    assert absolute_floor(torch.float16) == 2.0**-24
    assert absolute_floor(torch.bfloat16) == absolute_floor(torch.float32) == 2.0**-126
