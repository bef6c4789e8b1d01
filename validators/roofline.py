"""What the device's memory allows: bandwidth as the judge measures it, floors of a call's time.

No code moves bytes faster than the memory does, so that a time below the floor of its results is
impossible (verification.md, E 88). Two effects keep honest code below a naive floor, and are
allowed for: results that are written last stay in the L2 cache when a call ends, so that as many
bytes are free; and pure writing can be faster than copying, so that the larger of both bandwidths
counts. Arguments are cold, but need not be read in full (a gather, a mask): falling below the floor
of all bytes is a warning and no more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.ended import Ended, finding
from concur.validators.environment import Device

_Event: Any = torch.cuda.Event
_COPIED_BYTES = 512 << 20
_SMALLEST_FLUSH = 64 << 20
_REPEATS = 10
_SHARE = 0.9
"""Share of a floor that a time has to reach, since bandwidths are measured with some error."""


@dataclass(frozen=True)
class Ceiling:
    """How fast the device's memory is."""

    bytes_per_us: float
    """The larger bandwidth of copying (reads and writes counted) and of filling."""
    l2_bytes: int
    """Size of the L2 cache."""


@dataclass(frozen=True)
class Floors:
    """Shortest times that memory allows for one call, in microseconds."""

    all_us: float
    """For moving every byte of arguments and results once, but results that stay in the L2."""
    results_us: float
    """For writing the results, but what stays in the L2; 0 where they are under twice its size."""

    @classmethod
    def of(cls, arguments: int, results: int, ceiling: Ceiling) -> "Floors":
        """Return the floors of a call with so many bytes of arguments and of results."""
        beyond = max(0, results - ceiling.l2_bytes)
        written = beyond if results > 2 * ceiling.l2_bytes else 0
        return cls((arguments + beyond) / ceiling.bytes_per_us, written / ceiling.bytes_per_us)


def ceiling(device: Device) -> Ceiling | None:
    """Return how fast the memory is, measured once in a process; None on a CPU."""
    return _measure() if device == "cuda" else None


def flush_cache(device: Device) -> None:
    """Queue the judge's own flush of the L2 cache: twice its size is written, then read.

    Reading leaves clean lines, so that the next call need not write ours back first.
    """
    if device == "cuda":
        memory = _flush_memory()
        memory.fill_(1)
        memory.sum()


def check_floors(median_us: float, baseline_us: float, limits: Floors, where: str) -> list[Finding]:
    """Return warnings about a median below a floor.

    Raises Ended (cheating) for one that writing the results alone excludes, unless the baseline is
    below that floor too: the floor itself is wrong then.
    """
    if median_us < _SHARE * limits.results_us <= baseline_us:
        message = (
            f"{median_us:.1f} us is less than writing the results takes, {limits.results_us:.1f} us"
        )
        raise Ended(Status.CHEATING, Fault.CANDIDATE, finding("timing.floor", message, where=where))
    if median_us < _SHARE * limits.all_us:
        message = (
            f"{median_us:.1f} us is less than moving all arguments and results once takes, "
            f"{limits.all_us:.1f} us"
        )
        return [finding("timing.floor", message, where=where, severity="warning")]
    return []


@lru_cache(maxsize=1)
def _measure() -> Ceiling:
    source = torch.empty(_COPIED_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copied = 2 * _COPIED_BYTES / _fastest(lambda: target.copy_(source))
    filled = _COPIED_BYTES / _fastest(lambda: target.zero_())
    return Ceiling(max(copied, filled), _l2_bytes())


def _fastest(do: Callable[[], object]) -> float:
    """Return the shortest of several times in microseconds."""
    times = []
    for _ in range(_REPEATS):
        begin, end = (_Event(enable_timing=True) for _ in range(2))
        begin.record()
        do()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) * 1000.0)
    return min(times)


def _l2_bytes() -> int:
    return int(torch.cuda.get_device_properties(0).L2_cache_size)


@lru_cache(maxsize=1)
def _flush_memory() -> torch.Tensor:
    size = max(2 * _l2_bytes(), _SMALLEST_FLUSH)
    return torch.empty(size // 4, dtype=torch.int32, device="cuda")
