"""What the times of single calls say: medians, spreads, and how sure a ratio of medians is.

The interval of a ratio comes from a bootstrap over pairs: a call of the baseline and the call of
the candidate beside it are drawn together, so that what slows both down cancels. Pairs are drawn in
blocks of neighbours, so that noise that lasts for several calls counts as what it is, less evidence
(Künsch 1989, the moving block bootstrap; blocks wrap around here). Few blocks make a bootstrap
interval too narrow, as few measurements make the normal distribution's: it is widened by Student's
factor for as many degrees of freedom.

`tests/validators/test_statistics.py` simulates drift, steps and spikes, and how often the interval
covers the truth.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Claim = Literal["faster", "slower", "even"]

RUN_TO_RUN = 0.0
"""How far the logarithm of a speedup moves between runs of the same solution on the same machine,
beyond what the calls of one run show: every interval is made wider by it at both ends."""

RESAMPLES = 1000
"""Resamples of a reported interval."""

_CONFIDENCE = (2.5, 97.5)
_SHORTEST_BLOCK = 4
_BLOCKS = 12
_NORMAL = 1.96


@dataclass(frozen=True)
class Summary:
    """Location and spread of a series, in its own unit."""

    median: float
    """Median."""
    p10: float
    """Tenth percentile."""
    p90: float
    """Ninetieth percentile."""
    mad: float
    """Median of the absolute deviations from the median."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians with its 95 % interval, and the resampled logarithms it comes from."""

    value: float
    """Baseline over candidate: above 1 the candidate is faster."""
    low: float
    """Lower end."""
    high: float
    """Upper end."""
    logs: Floats
    """Logarithms of the ratio in every resample, widened; `combine` draws on them."""

    @property
    def half_width(self) -> float:
        """Half the width of the interval, as a share of the ratio."""
        return math.sqrt(self.high / self.low) - 1.0


def summarise(times: Sequence[float] | Floats) -> Summary:
    """Return location and spread of at least one number."""
    values = np.asarray(times, dtype=np.float64)
    p10, median, p90 = np.percentile(values, [10, 50, 90])
    return Summary(float(median), float(p10), float(p90), mad(values))


def mad(values: Sequence[float] | Floats) -> float:
    """Return the median of absolute deviations from the median; 1.4826 of it estimate a sigma."""
    series = np.asarray(values, dtype=np.float64)
    return float(np.median(np.abs(series - np.median(series))))


def ratio(
    mine: Sequence[float] | Floats,
    base: Sequence[float] | Floats,
    seed: int,
    resamples: int = RESAMPLES,
) -> Ratio:
    """Return the ratio of medians, base over mine, of times that were measured in pairs.

    `mine[i]` and `base[i]` are positive and belong to pair i; pairs are in the order of time.
    """
    own, other = np.asarray(mine, dtype=np.float64), np.asarray(base, dtype=np.float64)
    count = own.size
    length = min(count, max(_SHORTEST_BLOCK, count // _BLOCKS))
    starts = np.random.default_rng(seed).integers(0, count, (resamples, -(-count // length)))
    places = (starts[:, :, None] + np.arange(length)) % count
    places = places.reshape(resamples, -1)[:, :count]
    logs = np.log(np.median(other[places], axis=1) / np.median(own[places], axis=1))
    centre = math.log(float(np.median(other) / np.median(own)))
    return _ratio_of(centre, centre + (logs - centre) * _student(count / length))


def combine(ratios: Sequence[Ratio]) -> Ratio:
    """Return the geometric mean of the ratios of several workloads, whose noise is independent."""
    centre = sum(math.log(r.value) for r in ratios) / len(ratios)
    return _ratio_of(centre, np.mean([r.logs for r in ratios], axis=0))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers, rounded to four decimals."""
    return round(math.exp(sum(map(math.log, values)) / len(values)), 4)


def claims(low: float, high: float) -> Claim:
    """Return what an interval of a speedup allows to be said: even unless it excludes 1."""
    if low > 1.0:
        return "faster"
    return "slower" if high < 1.0 else "even"


def _ratio_of(centre: float, logs: Floats) -> Ratio:
    low, high = np.percentile(logs, _CONFIDENCE)
    # The median of a resample can lie to one side of the median of all: the ratio is always inside.
    low, high = min(float(low), centre) - RUN_TO_RUN, max(float(high), centre) + RUN_TO_RUN
    return Ratio(math.exp(centre), math.exp(low), math.exp(high), logs)


def _student(blocks: float) -> float:
    """Return Student's 97.5 % quantile over the normal one, to first order in the freedoms."""
    return 1.0 + (_NORMAL**2 + 1.0) / (4.0 * max(1.0, blocks - 1.0))
