"""The tolerance, tried on products of matrices that are computed well, badly and not quite.

Honest orders of float32 sums need less than a fifth of the bound. What the bound sees, and what it
cannot tell apart from honest rounding, is stated in `concur.validators.tolerance`; here:

* seen at K = 4096: one term left out (float32 in any case; half types for terms of mean zero), the
  last element never written, TF32 (terms of mean zero), an accumulator in float16 or bfloat16;
* not seen at K = 4096: TF32 for terms of one sign; one term of one sign left out in half types; at
  K = 32: an accumulator in float16 for results in float16. Whole numbers show all of them.
"""

import math

import numpy as np
import pytest
import torch

from concur.schemas.tensors import DType
from concur.validators.compare import compare_floats
from concur.validators.contents import density, widened, zeros_and_ones
from concur.validators.tolerance import CEILING, reference_cap, relative_tolerance

N = 32
LONG = 4096
TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
Pair = tuple[torch.Tensor, torch.Tensor]


def operands(dtype: DType, terms: int, one_sign: bool) -> Pair:
    generator = torch.Generator().manual_seed(terms + one_sign)
    a = torch.randn(N, terms, generator=generator) / 4
    b = torch.randn(terms, N, generator=generator)
    kind = getattr(torch, dtype.value)
    a, b = a.to(kind).float(), b.to(kind).float()
    return (a.abs(), b.abs()) if one_sign else (a, b)


def one_after_the_other(a: torch.Tensor, b: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    terms = (a.T[:, :, None] * b[:, None]).to(kind)
    if kind is not torch.bfloat16:
        return torch.from_numpy(np.cumsum(terms.numpy(), axis=0)[-1].copy(order="C"))
    total = torch.zeros_like(terms[0])
    for term in terms:
        total += term
    return total


def blocked(a: torch.Tensor, b: torch.Tensor, size: int) -> torch.Tensor:
    starts = range(0, a.shape[1], size)
    return torch.stack([a[:, k : k + size] @ b[k : k + size] for k in starts]).sum(0)


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Round to eleven bits, ties to even, as tensor cores' operands are."""
    bits = x.view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


def use(y: torch.Tensor, pair: Pair, dtype: DType) -> float:
    """Return the largest error of a result in bounds, the reference being torch's product."""
    kind = getattr(torch, dtype.value)
    a, b = pair
    oracle = a.double() @ b.double()
    reference = compare_floats((a @ b).to(kind), oracle, 1.0).max_scaled_error
    rtol = relative_tolerance(dtype, a.shape[1], reference)
    difference = compare_floats(y.to(kind), oracle, rtol)
    assert difference.accepted == (difference.max_scaled_error <= rtol)
    return difference.max_scaled_error / rtol


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("one_sign", [False, True])
@pytest.mark.parametrize("terms", [64, LONG])
def test_honest_orders_pass_with_margin(dtype: DType, one_sign: bool, terms: int) -> None:
    a, b = pair = operands(dtype, terms, one_sign)
    orders = {
        "one after the other": one_after_the_other(a, b, torch.float32),
        "backwards": one_after_the_other(a.flip(1), b.flip(0), torch.float32),
        "blocks of 32": blocked(a, b, 32),
        "tree": (a[:, :, None] * b[None]).sum(1),
        "float64": (a.double() @ b.double()).float(),
    }
    used = {name: use(y, pair, dtype) for name, y in orders.items()}
    assert max(used.values()) < 0.2, used


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_an_intermediate_in_the_half_type_passes(dtype: DType) -> None:
    a, b = operands(dtype, LONG, one_sign=False)
    kind = getattr(torch, dtype.value)
    bias = torch.randn(N, generator=torch.Generator().manual_seed(1)).to(kind)
    oracle = a.double() @ b.double() + bias.double()
    stored = ((a @ b).to(kind).float() + bias.float()).to(kind)
    assert compare_floats(stored, oracle, relative_tolerance(dtype, LONG, 0.0)).accepted


@pytest.mark.parametrize("dtype", TYPES)
def test_a_missing_term_fails(dtype: DType) -> None:
    a, b = pair = operands(dtype, LONG, one_sign=False)
    assert use(a[:, 1:] @ b[1:], pair, dtype) > 2
    assert use(a[:, :-1] @ b[:-1], pair, dtype) > 2


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("unwritten", [0.0, math.nan, 1e-3])
def test_a_missing_last_element_fails(dtype: DType, unwritten: float) -> None:
    a, b = operands(dtype, LONG, one_sign=True)
    oracle = a.double() @ b.double()
    y = oracle.to(getattr(torch, dtype.value))
    y[-1, -1] = unwritten
    assert compare_floats(y, oracle, CEILING).wrong == 1


@pytest.mark.parametrize("one_sign", [False, True])
def test_narrow_accumulators_fail(one_sign: bool) -> None:
    for dtype in TYPES:
        a, b = pair = operands(dtype, LONG, one_sign)
        assert use(one_after_the_other(a, b, torch.bfloat16), pair, dtype) > 4
        if dtype is not DType.BFLOAT16:
            assert use(one_after_the_other(a, b, torch.float16), pair, dtype) > 4


def test_tf32_in_a_float32_product_fails() -> None:
    a, b = pair = operands(DType.FLOAT32, LONG, one_sign=False)
    assert use(tf32(a) @ tf32(b), pair, DType.FLOAT32) > 4
    # Three products of split operands are as good as float32, and pass.
    low = (tf32(a) @ (b - tf32(b))) + ((a - tf32(a)) @ tf32(b))
    assert use(tf32(a) @ tf32(b) + low, pair, DType.FLOAT32) < 0.5


def test_what_the_bound_cannot_tell_apart() -> None:
    a, b = pair = operands(DType.FLOAT32, LONG, one_sign=True)
    assert use(tf32(a) @ tf32(b), pair, DType.FLOAT32) < 1
    for dtype in (DType.FLOAT16, DType.BFLOAT16):
        a, b = pair = operands(dtype, LONG, one_sign=True)
        assert use(a[:, 1:] @ b[1:], pair, dtype) < 1
    a, b = pair = operands(DType.FLOAT16, 32, one_sign=True)
    assert use(one_after_the_other(a, b, torch.float16), pair, DType.FLOAT16) < 1


@pytest.mark.parametrize("dtype", TYPES)
def test_whole_numbers_show_missing_terms_and_narrow_accumulators(dtype: DType) -> None:
    kind = getattr(torch, dtype.value)
    share = density((dtype,), LONG, 2)
    a = zeros_and_ones(torch.empty(N, LONG), share, 1)
    b = zeros_and_ones(torch.empty(LONG, N), share, 2)
    oracle = a.double() @ b.double()
    assert oracle.max() > 0 and compare_floats(blocked(a, b, 32).to(kind), oracle, 0.0).accepted
    missing = int((a.sum(0) * b.sum(1)).argmax())
    kept = [k for k in range(LONG) if k != missing]
    assert not compare_floats((a[:, kept] @ b[kept]).to(kind), oracle, 0.0).accepted
    if dtype is DType.FLOAT32:
        narrow = one_after_the_other(a, b, torch.float16).float()
        assert compare_floats(narrow, oracle, 0.0).wrong > N * N / 4


@pytest.mark.parametrize("rounded", [torch.float16, torch.bfloat16, "tf32"])
def test_wide_whole_numbers_show_rounded_operands(rounded: torch.dtype | str) -> None:
    share = density((DType.FLOAT32,), LONG * 2.0**12, 2)
    a = widened(zeros_and_ones(torch.empty(N, LONG), share, 1), 3)
    b = zeros_and_ones(torch.empty(LONG, N), share, 2)
    oracle = a.double() @ b.double()
    assert oracle.max() < 2**24 and compare_floats(blocked(a, b, 32), oracle, 0.0).accepted
    narrow = a.to(rounded).float() if isinstance(rounded, torch.dtype) else tf32(a)
    assert compare_floats(narrow @ b, oracle, 0.0).wrong > N * N / 2


def test_the_measure_does_not_depend_on_the_scale() -> None:
    a, b = operands(DType.FLOAT32, 64, one_sign=False)
    y, oracle = a @ b, a.double() @ b.double()
    plain = compare_floats(y, oracle, 1.0).max_scaled_error
    for factor in (2.0**-10, 2.0**6, 2.0**-60):
        scaled = compare_floats(y * factor, oracle * factor, 1.0).max_scaled_error
        assert scaled == pytest.approx(plain, rel=1e-6)
        zeros = compare_floats(torch.zeros_like(y), oracle * factor, CEILING)
        assert not zeros.accepted and zeros.max_scaled_error >= 0.5


def test_underflow_is_granted_a_few_denormals() -> None:
    rtol = relative_tolerance(DType.FLOAT32, 1, 0.0)
    oracle = torch.full((8,), 1e-39, dtype=torch.float64)
    assert compare_floats(torch.zeros(8), oracle, rtol).accepted
    assert not compare_floats(torch.zeros(8), oracle * 100, rtol).accepted
    half = torch.full((8,), 3.3e-6, dtype=torch.float64)
    limit = relative_tolerance(DType.FLOAT16, 1, 0.0)
    assert compare_floats(half.half(), half, limit).accepted
    assert not compare_floats(torch.zeros(8, dtype=torch.float16), half, limit).accepted


def test_one_outlier_of_the_reference_is_capped() -> None:
    usual, worst = (relative_tolerance(DType.FLOAT32, 64, error) for error in (1e-6, math.inf))
    assert worst == 4 * reference_cap(DType.FLOAT32, 64) < 130 * usual
    a, b = operands(DType.FLOAT32, 64, one_sign=False)
    oracle = a.double() @ b.double()
    missed = compare_floats(a[:, 1:] @ b[1:], oracle, worst)
    assert missed.wrong > N * N / 2


def test_the_bound_grows_with_the_root_of_the_sum() -> None:
    one = relative_tolerance(DType.FLOAT32, 1, 0.0)
    assert one == 8 * 2.0**-23
    assert relative_tolerance(DType.FLOAT32, 4096, 0.0) == 64 * one
    # Half types accumulate in float32.
    assert 2 * 2.0**-7 < relative_tolerance(DType.BFLOAT16, 4096, 0.0) < 3 * 2.0**-7
    assert relative_tolerance(DType.FLOAT32, 64, 0.0, ("tf32",)) > 2.0**-8


def test_the_bound_follows_the_reference_up_to_a_cap() -> None:
    assert relative_tolerance(DType.FLOAT32, 1, 5e-6) == 2e-5
    assert relative_tolerance(DType.FLOAT32, 1, math.inf) < 2e-4
    assert relative_tolerance(DType.FLOAT32, 1e12, math.inf) == CEILING
