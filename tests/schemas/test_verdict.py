"""Verdicts: every field counts for the id, and what a device does not tell is left open."""

from typing import Any

import pytest

from concur.schemas import Baseline, Clocks, Verdict


@pytest.mark.parametrize(
    "change",
    [
        {"level": "audit"},
        {"speedup_low": 1.4, "speedup_high": 1.6},
        {"claim": "faster"},
        {"baselines": [{"kind": "compile", "workload": "typical", "median_us": 12.0}]},
        {"clocks": [{"workload": "typical", "moment": "before", "throttle": ["idle"]}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_field_counts(make_verdict: Any, change: dict[str, Any]) -> None:
    changed: Verdict = make_verdict(**change)
    assert changed.id != make_verdict().id
    assert Verdict.from_plain(changed.to_plain()) == changed


def test_unknown_figures_of_the_device_are_left_open() -> None:
    told = Clocks.from_plain({"workload": "w", "moment": "after"})
    assert told.power_w is None and told.throttle == ()
    assert Baseline.from_plain({"kind": "eager", "workload": "w", "median_us": 3.0}).kind == "eager"
