"""Compare a result with the oracle, in float64, in chunks, on the device that holds the oracle."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

_CHUNK = 1 << 25


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


def compare_floats(result: torch.Tensor, oracle: torch.Tensor, rtol: float) -> Difference:
    """Compare floating results; `oracle` is float64. The shapes must be equal."""
    rms = rms_of(oracle)
    wrong = non_finite = 0
    max_abs = max_scaled = 0.0
    shown: list[tuple[int, str, str]] = []
    for start, y, o in _chunks(result, oracle):
        y = y.double()
        fine, known = torch.isfinite(y), torch.isfinite(o)
        error = (y - o).abs()
        scaled = error / (o.abs() + rms + 1e-300)
        bad = ~(scaled <= rtol)
        # Where the oracle itself is infinite or undefined the candidate has to be the same.
        bad = torch.where(known, bad, ~((y == o) | (y.isnan() & o.isnan())))
        wrong += int(bad.sum())
        non_finite += int((~fine & known).sum())
        usable = fine & known
        zero = torch.zeros((), dtype=torch.float64, device=y.device)
        max_abs = max(max_abs, float(torch.where(usable, error, zero).max()))
        max_scaled = max(max_scaled, float(torch.where(usable, scaled, zero).max()))
        shown += _first(bad, y, o, start, 4 - len(shown))
    return Difference(oracle.numel(), wrong, non_finite, max_abs, max_scaled, tuple(shown))


def compare_exactly(result: torch.Tensor, oracle: torch.Tensor) -> Difference:
    """Compare integer or boolean results of one type."""
    wrong = 0
    largest = 0.0
    shown: list[tuple[int, str, str]] = []
    for start, y, o in _chunks(result, oracle):
        bad = y != o
        count = int(bad.sum())
        if count:
            wrong += count
            largest = max(largest, float((y.double() - o.double()).abs().max()))
            shown += _first(bad, y, o, start, 4 - len(shown))
    return Difference(oracle.numel(), wrong, 0, largest, 1.0 if wrong else 0.0, tuple(shown))


def rms_of(values: torch.Tensor) -> float:
    """Return the root mean square of the finite elements, 0 where there are none."""
    total, count = 0.0, 0
    flat = values.reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        wide = flat[start : start + _CHUNK].double()
        finite = torch.isfinite(wide)
        total += float(torch.where(finite, wide, torch.zeros_like(wide)).square().sum())
        count += int(finite.sum())
    return float((total / count) ** 0.5) if count else 0.0


def _chunks(a: torch.Tensor, b: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    for start in range(0, flat_b.numel(), _CHUNK):
        part = flat_a[start : start + _CHUNK].to(b.device)
        yield start, part, flat_b[start : start + _CHUNK]


def _first(
    bad: torch.Tensor, y: torch.Tensor, o: torch.Tensor, start: int, count: int
) -> list[tuple[int, str, str]]:
    if count <= 0 or not bool(bad.any()):
        return []
    places = bad.nonzero()[:count, 0].tolist()
    return [(start + i, f"{y[i].item():.9g}", f"{o[i].item():.9g}") for i in places]
