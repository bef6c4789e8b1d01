"""Intervals cover the truth as often as they say, whatever drifts meanwhile (numpy alone)."""

import numpy as np
import pytest

from concur.validators import statistics
from concur.validators.statistics import claims, combine, geometric_mean, ratio, summarise

RUNS = 250
TRUTH = 2.0


def _series(draw: np.random.Generator, count: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return times of candidate and baseline, whose medians are 100 and 200 before the drift."""
    mine, base = (draw.lognormal(0.0, 0.02, count) for _ in range(2))
    drift = np.ones(count)
    if kind == "rising":
        drift = 1.0 + 0.1 * np.arange(count) / count
    if kind == "step":
        drift = np.where(np.arange(count) < draw.integers(count), 1.0, 1.05)
    if kind == "wandering":
        steps, walk = draw.normal(0.0, 0.01, count), np.zeros(count)
        for i in range(1, count):
            walk[i] = 0.9 * walk[i - 1] + steps[i]
        drift = np.exp(walk)
    if kind == "spikes":
        mine *= np.where(draw.random(count) < 0.1, 2.0, 1.0)
        base *= np.where(draw.random(count) < 0.1, 2.0, 1.0)
    return 100.0 * mine * drift, 100.0 * TRUTH * base * drift


@pytest.mark.parametrize("count", [30, 50, 100])
@pytest.mark.parametrize("kind", ["steady", "rising", "step", "wandering", "spikes"])
def test_the_interval_covers_the_truth(kind: str, count: int) -> None:
    draw = np.random.default_rng(7)
    covered = 0
    for run in range(RUNS):
        found = ratio(*_series(draw, count, kind), seed=run, resamples=300)
        covered += found.low <= TRUTH <= found.high
        assert found.low <= found.value <= found.high
    # 95 % less three standard errors of a share of 250.
    assert covered / RUNS >= 0.95 - 3 * (0.95 * 0.05 / RUNS) ** 0.5


def test_a_difference_within_the_noise_is_seldom_claimed() -> None:
    draw = np.random.default_rng(11)
    claimed = 0
    for run in range(RUNS):
        mine, base = _series(draw, 50, "wandering")
        found = ratio(mine, base / TRUTH, seed=run, resamples=300)
        claimed += claims(found.low, found.high) != "even"
    assert claimed / RUNS <= 0.09


def test_noise_that_lasts_makes_the_interval_wider() -> None:
    """The same values in an order that clusters them are less evidence."""
    draw = np.random.default_rng(3)
    base = np.full(96, 200.0)
    clustered = np.repeat(draw.lognormal(0.0, 0.05, 16), 6) * 100.0
    mixed = draw.permutation(clustered)
    assert ratio(clustered, base, 1).half_width > 1.3 * ratio(mixed, base, 1).half_width


def test_the_mean_of_workloads_has_an_interval_of_its_own() -> None:
    draw = np.random.default_rng(5)
    covered = 0
    for run in range(RUNS):
        pairs = [_series(draw, 50, kind) for kind in ("steady", "rising", "wandering")]
        whole = combine([ratio(*pair, seed=run, resamples=300) for pair in pairs])
        covered += whole.low <= TRUTH <= whole.high
        single = ratio(*pairs[0], seed=run, resamples=300)
        assert whole.half_width < 1.5 * single.half_width
    assert covered / RUNS >= 0.91


def test_equal_times_make_a_point_and_a_run_to_run_allowance_widens_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = ratio([10.0] * 20, [25.0] * 20, seed=1)
    assert (found.value, found.low, found.high) == pytest.approx((2.5, 2.5, 2.5))
    monkeypatch.setattr(statistics, "RUN_TO_RUN", 0.02)
    found = ratio([10.0] * 20, [25.0] * 20, seed=1)
    assert found.low == pytest.approx(2.5 * np.exp(-0.02))
    assert found.half_width == pytest.approx(np.expm1(0.02))
    assert combine([found, found]).half_width == pytest.approx(np.expm1(0.02))


def test_only_an_interval_without_one_is_a_claim() -> None:
    assert claims(1.01, 1.2) == "faster"
    assert claims(0.8, 0.99) == "slower"
    assert claims(0.99, 1.2) == claims(1.0, 1.2) == claims(0.9, 1.0) == "even"


def test_a_summary_holds_percentiles_and_the_median_deviation() -> None:
    summary = summarise([float(i) for i in range(101)])
    assert (summary.median, summary.p10, summary.p90, summary.mad) == (50.0, 10.0, 90.0, 25.0)
    assert geometric_mean([1.0, 4.0]) == 2.0
