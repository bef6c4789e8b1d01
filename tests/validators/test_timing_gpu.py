"""What the device itself says: bandwidth, cache, clocks, and floors that honest code keeps to."""

from typing import Any

import pytest
import torch

from concur.validators.clocks import sample
from concur.validators.roofline import Floors, ceiling, flush_cache

pytestmark = pytest.mark.gpu
Event: Any = torch.cuda.Event


def fastest(do: Any) -> float:
    times = []
    for _ in range(30):
        flush_cache("cuda")
        begin, end = Event(enable_timing=True), Event(enable_timing=True)
        begin.record()
        do()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) * 1000.0)
    return min(times)


def test_the_memory_is_as_fast_as_memory_can_be() -> None:
    speed = ceiling("cuda")
    assert speed is not None and speed is ceiling("cuda"), "it is measured once"
    assert 1e5 < speed.bytes_per_us < 2e7, "between 0.1 and 20 TB/s"
    assert speed.l2_bytes >= 1 << 20


@pytest.mark.parametrize("times_l2", [2.2, 3.0, 8.0])
def test_the_fastest_way_to_write_keeps_to_the_floor(times_l2: float) -> None:
    """A fill is all that can be done with results: what it is accused of, everything would be."""
    speed = ceiling("cuda")
    assert speed is not None
    size = int(times_l2 * speed.l2_bytes) // 4
    target = torch.empty(size, dtype=torch.float32, device="cuda")
    limits = Floors.of(0, 4 * size, speed)
    assert limits.results_us > 0.0
    assert fastest(target.zero_) >= 0.9 * limits.results_us


def test_a_copy_keeps_to_the_floor_of_all_bytes() -> None:
    speed = ceiling("cuda")
    assert speed is not None
    source = torch.ones(3 * speed.l2_bytes // 4, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    size = 4 * source.numel()
    assert fastest(lambda: target.copy_(source)) >= 0.9 * Floors.of(size, size, speed).all_us


def test_clocks_are_told_or_left_open() -> None:
    told = sample("w", "before", "cuda")
    assert told is None or told.sm_mhz is None or 100 < told.sm_mhz < 5000
