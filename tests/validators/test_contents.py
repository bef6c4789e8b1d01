"""Contents of probes: where they change, and that they stay in their distribution."""

from typing import Any

import pytest
import torch

from concur.schemas.tensors import Distribution
from concur.validators.contents import EDGE, heavy_block, places, with_window


def test_places_are_in_the_middle_and_irregular() -> None:
    found = places(100_000, 3)
    assert len(set(found)) == 32 and found[0] >= EDGE and found[-1] < 100_000 - EDGE
    assert all(place % step for place in found for step in (2, 3, 5, 7, 64))
    assert found != places(100_000, 4)
    for elements in (1, 2, 3, 40):
        assert all(0 <= place < elements for place in places(elements, 3))


@pytest.mark.parametrize(
    ("dtype", "how"),
    [
        (torch.int64, {"kind": "integers", "low": "0", "high": "N"}),
        (torch.int8, {"kind": "integers", "low": "-128", "high": "128"}),
        (torch.bool, {"kind": "bernoulli"}),
        (torch.float32, {"kind": "uniform", "low": "0", "high": "1"}),
        (torch.float32, {"kind": "normal", "mean": 3.0}),
        (torch.int64, {"kind": "permutation"}),
    ],
)
def test_a_window_stays_in_the_distribution(dtype: torch.dtype, how: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(5)
    drawn = torch.rand(40, 1000, generator=generator)
    kind = how["kind"]
    if kind == "permutation":
        values = drawn.argsort(-1)
    elif kind == "integers":
        values = (drawn * 256 - 128).to(dtype) if dtype is torch.int8 else (drawn * 1000).to(dtype)
    else:
        values = drawn < 0.5 if kind == "bernoulli" else drawn
    changed = with_window(values, Distribution.from_plain(how), {"N": 1000}, 0.0, 9)
    assert changed is not None and changed.dtype is values.dtype
    different = (changed != values).reshape(-1).nonzero()[:, 0]
    assert 0 < len(different) <= 64
    assert different.min() >= EDGE and different.max() < 40_000 - EDGE
    if kind == "permutation":
        assert torch.equal(changed.sort(-1).values, torch.arange(1000).expand(40, 1000))
    if kind == "uniform" or dtype is torch.int64:
        assert changed.min() >= 0 and changed.max() <= values.max() + 1
    if kind == "normal":
        grown = with_window(values, Distribution.from_plain(how), {}, 10.0, 9)
        assert grown is not None and grown.max() == 50 and grown.min() == -50


def test_offsets_have_no_window() -> None:
    offsets = torch.arange(1000)
    assert with_window(offsets, Distribution(kind="offsets"), {}, 0.0, 1) is None


def test_a_heavy_block_is_late() -> None:
    values = torch.ones(6400)
    for seed in range(40):
        places_of = (heavy_block(values, seed) != 1).nonzero()[:, 0]
        assert len(places_of) == 100 and places_of.min() >= 4800
    assert float(heavy_block(torch.ones(1, dtype=torch.float16), 3)) == 16
