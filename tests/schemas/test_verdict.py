"""Fields that verdicts got later do not change the ids of those that were given before."""

import json
from typing import Any

import pytest

from concur.schemas import Baseline, Clocks, Verdict

LATER: list[dict[str, Any]] = [
    {"level": "full"},
    {"speedup_low": 1.4, "speedup_high": 1.6},
    {"claim": "faster"},
    {"baselines": [{"kind": "compile", "workload": "typical", "median_us": 12.0}]},
    {"clocks": [{"workload": "typical", "moment": "before", "throttle": ["idle"]}]},
]
LATER_TIMES: list[dict[str, Any]] = [
    {"mad_us": 0.1, "baseline_mad_us": 0.2, "wall_median_us": 200.0},
    {"baseline_wall_median_us": 210.0, "clock": "wall", "verified": 4},
    {"floor_us": 8.0, "result_floor_us": 0.0},
]


def test_a_verdict_of_before_keeps_its_id(make_verdict: Any) -> None:
    verdict: Verdict = make_verdict()
    plain = verdict.to_plain()
    assert {"level", "claim"} < plain.keys()
    for field in ("level", "speedup_low", "speedup_high", "claim", "baselines", "clocks"):
        del plain[field]
    for field in [name for change in LATER_TIMES for name in change]:
        del plain["timings"][0][field]
    old = Verdict.from_plain(plain)
    assert old.id == plain["id"] and old == verdict


@pytest.mark.parametrize("change", LATER, ids=lambda change: next(iter(change)))
def test_later_fields_count_where_they_say_something(
    make_verdict: Any, change: dict[str, Any]
) -> None:
    changed: Verdict = make_verdict(**change)
    assert changed.id != make_verdict().id
    assert Verdict.from_plain(json.loads(json.dumps(changed.to_plain()))) == changed


@pytest.mark.parametrize("change", LATER_TIMES, ids=lambda change: next(iter(change)))
def test_later_fields_of_times_count_too(make_verdict: Any, change: dict[str, Any]) -> None:
    plain = make_verdict().to_plain()
    changed = make_verdict(timings=[plain["timings"][0] | change])
    assert changed.id != make_verdict().id


def test_unknown_figures_of_the_device_are_left_open() -> None:
    told = Clocks.from_plain({"workload": "w", "moment": "after"})
    assert told.power_w is None and told.throttle == ()
    assert Baseline.from_plain({"kind": "eager", "workload": "w", "median_us": 3.0}).kind == "eager"
