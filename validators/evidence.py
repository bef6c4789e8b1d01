"""Which timed calls have their results compared with the oracle, and how all others are watched.

The oracle is too slow for every call, and its values must not exist before the candidate has run.
So a few secret calls are kept, one of them always among the last; and every call is compared at
once with the baseline's results for the same inputs: the call that lies farthest from them is kept
too. A call that skips work, returns what it returned before, or leaves poison behind lies farther
than any honest one, wherever it is, and the oracle decides on it; no threshold does.
"""

import random
from dataclasses import dataclass

import torch

from concur.validators.draw import Case

_CHUNK = 1 << 25


@dataclass(frozen=True)
class Kept:
    """One timed call whose results are compared with the oracle."""

    case: Case
    """Its inputs."""
    results: list[torch.Tensor]
    """The judge's copies of its results."""


class Evidence:
    """The kept calls of one workload. Calls come in blocks; a run may end after any block."""

    def __init__(self, number: int, least: int, block: int, secret: int) -> None:
        """Choose the positions of `number` calls: the first ones among `least - block` calls that
        come in any case, and one in the last block, whichever that will be."""
        self._random = random.Random(secret)
        self._early = set(self._random.sample(range(least - block), number - 1))
        self._block = block
        self._position = -1
        self._kept: list[Kept] = []
        self._late: Kept | None = None
        self._odd: Kept | None = None
        self._farthest = 0.0

    def add(self, index: int, kept: Kept, baseline: list[torch.Tensor]) -> None:
        """Take a call by its number and the baseline's results for the same inputs."""
        if index % self._block == 0:
            self._position = index + self._random.randrange(self._block)
        if index in self._early:
            self._kept.append(kept)
        if index == self._position:
            self._late = kept
        apart = distance(kept.results, baseline)
        if apart > self._farthest:
            self._farthest, self._odd = apart, kept

    def calls(self) -> list[Kept]:
        """Return the kept calls, each once."""
        found = [*self._kept, *(k for k in (self._late, self._odd) if k is not None)]
        return list({kept.case.label: kept for kept in found}.values())


def distance(results: list[torch.Tensor], baseline: list[torch.Tensor]) -> float:
    """Return how far results lie from the baseline's: 0 where every value is the same.

    For floats the largest |y - b| / (|b| + rms(b)), infinite where only one of both is a number;
    for others the share of elements that differ.
    """
    return max((_apart(y, b) for y, b in zip(results, baseline, strict=True)), default=0.0)


def _apart(result: torch.Tensor, baseline: torch.Tensor) -> float:
    y, b = result.reshape(-1), baseline.reshape(-1)
    if not b.numel():
        return 0.0
    if not b.is_floating_point():
        return float((y != b).sum()) / b.numel()
    squares = torch.zeros((), dtype=torch.float64, device=b.device)
    for begin in range(0, b.numel(), _CHUNK):
        squares += b[begin : begin + _CHUNK].double().nan_to_num(0.0, 0.0, 0.0).square().sum()
    scale = (squares / b.numel()).sqrt()
    worst = torch.zeros((), dtype=torch.float64, device=b.device)
    for begin in range(0, b.numel(), _CHUNK):
        own, other = (x[begin : begin + _CHUNK].double() for x in (y, b))
        errors = (own - other).abs() / (other.abs() + scale)
        same = (own == other) | (own.isnan() & other.isnan())
        worst = torch.maximum(
            worst, errors.nan_to_num(torch.inf, torch.inf).masked_fill(same, 0.0).max()
        )
    return float(worst)
