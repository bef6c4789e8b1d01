"""Compare a result with the oracle, in float64, in chunks, on the device that holds the oracle.

Nothing here makes a temporary of a whole tensor: at most `BYTES_PER_ELEMENT` times the elements of
a chunk are held beside result and oracle. On CUDA the chunk follows from the memory that is free
(64 MiB of it are enough), since result and oracle may fill the device together.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from concur.schemas.task import Tolerance

BYTES_PER_ELEMENT = 64
"""Upper limit of the temporaries of one element; measured are 21 on both kinds of device."""
SMALLEST_CHUNK = 1 << 20
"""Elements of a chunk where memory is short, and on a CPU, whose caches it suits."""
_LARGEST_CHUNK = 1 << 25
_SHOWN = 4
_LARGEST_FLOAT32 = 2.0**128 - 2.0**104
# Where the oracle is zero throughout, a result has to be zero but for underflow.
_NOT_ZERO = 1e-300
# Under the rules that let single elements off, none may be wrong by more than this share of itself
# and the rms: an element that was never computed is, wherever the oracle is as large as a third
# of its rms.
_WIDEST_CAP = 0.25


@dataclass(frozen=True)
class Difference:
    """How a result differs from the oracle."""

    elements: int
    """Elements compared."""
    wrong: int
    """Elements outside the bound, non-finite ones included."""
    non_finite: int
    """Elements that are not finite where the oracle is."""
    max_abs_error: float
    """Largest absolute error among finite elements."""
    max_scaled_error: float
    """Largest |y - o| / (|o| + rms(o)) among finite elements; 0 or 1 for integers."""
    first_wrong: tuple[tuple[int, str, str], ...] = ()
    """Up to four wrong elements: flat index, the candidate's value, the oracle's."""
    around: tuple[tuple[int, str, str], ...] = ()
    """The first wrong element and up to two on either side of it, in the same form."""
    accepted: bool = True
    """Whether the task's rule accepts the result."""
    cosine: float = 1.0
    """Cosine of the angle to the oracle; measured under the rule cosine only."""


def compare(
    tolerance: Tolerance, result: torch.Tensor, oracle: torch.Tensor, rtol: float
) -> Difference:
    """Compare a result by a task's rule. Floating results need a float64 oracle.

    `rtol` is 0 for results that have to be met exactly; the task's rule is not asked then. Raises
    ValueError for shapes that differ and for tensors that are not contiguous.
    """
    if not oracle.is_floating_point():
        return compare_exactly(result, oracle)
    difference = compare_floats(result, oracle, rtol)
    if tolerance.rule == "elementwise" or not rtol or not difference.wrong:
        return difference
    limit = min(tolerance.cap * rtol, _WIDEST_CAP)
    capped = not difference.non_finite and difference.max_scaled_error <= limit
    if tolerance.rule == "matched_ratio":
        share = 1.0 - difference.wrong / difference.elements
        return replace(difference, accepted=capped and share >= tolerance.matched_ratio)
    cosine, stretch = angle(result, oracle)
    alike = cosine >= tolerance.cosine and abs(stretch - 1.0) <= limit
    return replace(difference, accepted=capped and alike, cosine=cosine)


def compare_floats(result: torch.Tensor, oracle: torch.Tensor, rtol: float) -> Difference:
    """Compare floating results; `oracle` is float64. Raises ValueError as `compare` does.

    An element is right within the bound, and where it equals the oracle rounded to the result's
    type: infinite with the same sign where the oracle is infinite or out of range, undefined where
    the oracle is. An `rtol` of 0 leaves only that.
    """
    scale = rms_of(oracle)
    floor = absolute_floor(result.dtype) if rtol else 0.0
    wrong = non_finite = 0
    max_abs = max_scaled = 0.0
    shown: list[tuple[int, str, str]] = []
    for start, y, o in _chunks(result, oracle):
        bad, lost, largest = _compare_chunk(y, o, scale, (rtol, floor))
        count = int(torch.count_nonzero(bad))
        wrong, non_finite = wrong + count, non_finite + lost
        max_abs, max_scaled = max(max_abs, largest[0]), max(max_scaled, largest[1])
        if count and len(shown) < _SHOWN:
            shown += _first(bad, (y, o), start, _SHOWN - len(shown))
    around = _around(result, oracle, shown)
    numbers = (oracle.numel(), wrong, non_finite, max_abs, max_scaled)
    return Difference(*numbers, tuple(shown), around, accepted=not wrong)


def _compare_chunk(
    y: torch.Tensor, o: torch.Tensor, scale: float, bound: tuple[float, float]
) -> tuple[torch.Tensor, int, tuple[float, float]]:
    """Return which elements are wrong, how many got lost, the largest absolute and scaled error."""
    rtol, floor = bound
    rounded = o.to(y.dtype)
    right = (y == rounded) | (y.isnan() & o.isnan())
    lost = int(torch.count_nonzero(rounded.isfinite() & ~y.isfinite()))
    del rounded
    error = (y.double() - o).abs_()
    usable = error.isfinite()
    max_abs = float(torch.where(usable, error, 0.0).max())
    scaled = error.sub_(floor).clamp_(min=0.0)
    scaled = scaled.div_(o.abs().add_(scale + _NOT_ZERO))
    right |= scaled <= rtol
    return ~right, lost, (max_abs, float(torch.where(usable, scaled, 0.0).max()))


def compare_exactly(result: torch.Tensor, oracle: torch.Tensor) -> Difference:
    """Compare integer or boolean results of one type. Raises ValueError as `compare` does.

    A boolean is one byte, 0 or 1; a result with any other byte is wrong there, since what reads it
    next may take the byte for a number.
    """
    if result.dtype is torch.bool and oracle.dtype is torch.bool:
        result, oracle = result.view(torch.uint8), oracle.view(torch.uint8)
    wrong = 0
    largest = 0.0
    shown: list[tuple[int, str, str]] = []
    for start, y, o in _chunks(result, oracle):
        bad = y != o
        count = int(torch.count_nonzero(bad))
        if count:
            wrong += count
            largest = max(largest, float((y.double() - o).abs_().max()))
            shown += _first(bad, (y, o), start, _SHOWN - len(shown))
    around = _around(result, oracle, shown)
    scaled = 1.0 if wrong else 0.0
    numbers = (oracle.numel(), wrong, 0, largest, scaled)
    return Difference(*numbers, tuple(shown), around, accepted=not wrong)


def rms_of(values: torch.Tensor) -> float:
    """Return the root mean square of the elements in the range of float32, 0 where there are none.

    Larger ones fit into no result; their squares could make the bound of all others infinite.
    """
    total, count = 0.0, 0
    for part in parts(values):
        usable = part.abs() <= _LARGEST_FLOAT32
        total += float(torch.where(usable, part, 0.0).double().square().sum())
        count += int(torch.count_nonzero(usable))
    return float((total / count) ** 0.5) if count else 0.0


def angle(result: torch.Tensor, oracle: torch.Tensor) -> tuple[float, float]:
    """Return the cosine of the angle between result and oracle, and the ratio of their lengths.

    Both are 1 where both are zero, 0 where one is, and NaN where an element is not finite.
    """
    mine = theirs = product = 0.0
    for _, y, o in _chunks(result, oracle):
        wide = y.double()
        mine += float((wide * wide).sum())
        theirs += float((o * o).sum())
        product += float((wide * o).sum())
    if not mine or not theirs:
        same = 1.0 if mine == theirs else 0.0
        return same, same
    return product / (mine * theirs) ** 0.5, float((mine / theirs) ** 0.5)


def everywhere(values: torch.Tensor, holds: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Return whether a mask is set in every element, asked chunk by chunk."""
    return all(bool(holds(part).all()) for part in parts(values))


def absolute_floor(dtype: torch.dtype) -> float:
    """Return the absolute error that underflow alone may cause in a type.

    float16 results are rounded to multiples of 2**-24. In the others numbers below the smallest
    normal one (2**-126) may be flushed to zero, which single instructions of a GPU do.
    """
    kind = torch.finfo(dtype)
    smallest = kind.smallest_normal
    return float(smallest * kind.eps if dtype is torch.float16 else smallest)


def parts(values: torch.Tensor) -> Iterator[torch.Tensor]:
    """Return flat chunks of a contiguous tensor, as views."""
    flat = _flat(values)
    step = chunk_elements(values.device)
    for start in range(0, flat.numel(), step):
        yield flat[start : start + step]


def chunk_elements(device: torch.device) -> int:
    """Return how many elements to look at in one go.

    On CUDA the temporaries take up to a quarter of the memory that is free, or that the allocator
    would free; others share the device, so that all of it is not there to be taken.
    """
    if device.type != "cuda":
        return SMALLEST_CHUNK
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(SMALLEST_CHUNK, min(_LARGEST_CHUNK, free // 4 // BYTES_PER_ELEMENT))


def _chunks(
    result: torch.Tensor, oracle: torch.Tensor
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    if result.shape != oracle.shape:
        raise ValueError(f"shapes differ: {tuple(result.shape)} and {tuple(oracle.shape)}")
    flat, start = _flat(result), 0
    for part in parts(oracle):
        yield start, flat[start : start + part.numel()].to(oracle.device), part
        start += part.numel()


def _flat(values: torch.Tensor) -> torch.Tensor:
    # reshape would copy the whole tensor where it is not contiguous.
    if not values.is_contiguous():
        raise ValueError("a tensor to compare has to be contiguous")
    return values.view(-1)


def _first(
    bad: torch.Tensor, both: tuple[torch.Tensor, torch.Tensor], start: int, count: int
) -> list[tuple[int, str, str]]:
    if count <= 0:
        return []
    first = int(bad.view(torch.uint8).argmax())
    # The indices of all wrong elements would take eight bytes each.
    near = bad[first : first + (1 << 16)].nonzero()[:count, 0].tolist()
    y, o = both
    return [(start + first + i, _text(y[first + i]), _text(o[first + i])) for i in near]


def _around(
    result: torch.Tensor, oracle: torch.Tensor, shown: list[tuple[int, str, str]]
) -> tuple[tuple[int, str, str], ...]:
    if not shown:
        return ()
    y, o = _flat(result), _flat(oracle)
    middle = shown[0][0]
    places = range(max(0, middle - 2), min(o.numel(), middle + 3))
    return tuple((place, _text(y[place]), _text(o[place])) for place in places)


def _text(value: torch.Tensor) -> str:
    number = value.item()
    return f"{number:.9g}" if isinstance(number, float) else str(int(number))
