"""Timing as the judge sees it, with both sides and their clock simulated."""

import itertools
from typing import Any

import pytest

from concur.schemas.task import Task
from concur.validators import pairs, timing
from concur.validators.ended import Ended
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions, Level
from concur.validators.roofline import Ceiling
from concur.validators.timing import Stopwatch, TimingReport
from tests.validators import timed
from tests.validators.timed import Baseline, Forger, Honest, Silent, World

ONE_KILOBYTE_A_US = Ceiling(bytes_per_us=1000.0, l2_bytes=0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm up for a moment only."""
    monkeypatch.setattr(timing, "WARM_UP_S", 0.0)
    monkeypatch.setattr(timing, "SHORT_WARM_UP_S", 0.0)


def measured(
    task: Task,
    candidate: Honest,
    baseline: Baseline | None = None,
    seed: int = 5,
    level: Level = "full",
) -> TimingReport:
    """Time a candidate beside the simulated baseline, as on a GPU but for the device's own data."""
    reference: Any = baseline or Baseline(task, candidate.world)
    options = JudgeOptions(device="cpu", level=level)
    return Stopwatch(candidate, reference, DeviceLock(None), seed, options).measure()


def refused(task: Task, candidate: Honest, baseline: Baseline | None = None) -> Ended:
    with pytest.raises(Ended) as ended:
        measured(task, candidate, baseline)
    return ended.value


def test_an_honest_solution_gets_its_speedup_on_every_workload(make_task: Any) -> None:
    task = make_task()
    report = measured(task, Honest(World()))
    assert [t.workload for t in report.timings] == [w.name for w in task.workloads]
    for found in report.timings:
        assert found.speedup_low <= found.speedup <= found.speedup_high
        assert found.speedup == pytest.approx(3.0, rel=0.02)
        assert found.median_us == pytest.approx(10.0, rel=0.02)
        assert found.wall_median_us == pytest.approx(210.0, rel=0.02)
        assert found.clock == "events" and found.verified >= 3
        assert 40 <= found.calls <= 200 and found.calls % 10 == 0
    assert report.claim == "faster" and report.findings == ()
    assert report.speedup == pytest.approx(3.0, rel=0.02)
    assert [b.kind for b in report.baselines] == ["eager", "eager"]


def test_calls_alternate_in_a_secret_order_and_never_repeat_anything(make_task: Any) -> None:
    orders = set()
    for seed in range(4):
        world = World()
        measured(make_task(), Honest(world), seed=seed)
        for name, calls in itertools.groupby(world.calls, key=lambda call: call[1]):
            sides = [(side, told) for side, _, told in calls if "alone" not in told["case"]]
            order = "".join(side[0] for side, _ in sides)
            orders |= {order[i : i + 4] for i in range(0, len(order) - 3, 4)}
            for (_, first), (_, second) in zip(sides[::2], sides[1::2], strict=True):
                assert first["x"] == second["x"], "both sides of a pair get the same inputs"
            contents = [told["x"] for _, told in sides[::2]]
            assert len(set(contents)) == len(contents), name
            layouts = [told["layout"] for _, told in sides]
            assert len(set(layouts)) == len(layouts), "addresses are new for every call"
            mine = [told for side, told in sides if side == "mine"]
            assert [told["parameters"] for told in mine] == ["set"] + ["keep"] * (len(mine) - 1)
            assert {told["lead"] for told in mine} == {"long", "short"}
            assert len({told["guard"] for told in mine}) > 10
    assert orders == {"mbbm", "bmmb"}


def test_expected_values_are_computed_after_the_last_timed_call(make_task: Any) -> None:
    world, task = World(), make_task()
    baseline = Baseline(task, world)
    measured(task, Honest(world), baseline)
    assert set(baseline.expected_after) == {len(world.calls)}


@pytest.mark.parametrize("drift", [0.1, -0.04])
def test_a_device_that_drifts_does_not_move_the_speedup(make_task: Any, drift: float) -> None:
    report = measured(make_task(), Honest(World(drift=drift, noise=0.02)))
    for found in report.timings:
        assert found.speedup_low <= 3.0 <= found.speedup_high
        assert found.speedup_high / found.speedup_low < 1.1


def test_a_run_ends_early_when_its_interval_is_narrow(make_task: Any) -> None:
    precise = measured(make_task(), Honest(World(noise=0.0005)))
    noisy = measured(make_task(), Honest(World(noise=0.4)))
    assert {t.calls for t in precise.timings} == {40}
    assert all(t.calls > 100 for t in noisy.timings)
    assert "timing.unstable" in {f.rule for f in noisy.findings}
    quick = measured(make_task(), Honest(World()), level="quick")
    assert {t.calls for t in quick.timings} == {30}


def test_a_speedup_that_noise_could_make_is_not_claimed(make_task: Any) -> None:
    assert measured(make_task(), Honest(World(noise=0.05), us=30.0)).claim == "even"
    assert measured(make_task(), Honest(World(), us=60.0)).claim == "slower"


def test_claiming_far_less_than_the_judges_clock_shows_is_cheating(make_task: Any) -> None:
    ended = refused(make_task(), Forger(World(), us=600.0))
    assert (ended.status.value, ended.fault.value) == ("cheating", "candidate")
    assert ended.findings[0].rule == "timing.clocks"


def test_a_short_claim_that_host_noise_could_explain_gains_nothing(make_task: Any) -> None:
    report = measured(make_task(), Forger(World(), us=48.0))
    assert {f.rule for f in report.findings} == {"timing.clocks"}
    assert {f.severity for f in report.findings} == {"warning"}
    for found in report.timings:
        assert found.clock == "wall"
        assert found.median_us == pytest.approx(48.0, rel=0.1)
        assert found.speedup == pytest.approx(30 / 48, rel=0.1)


@pytest.mark.parametrize("overhead_us", [80.0, 215.0])
def test_another_host_with_another_overhead_is_no_forger(
    make_task: Any, overhead_us: float
) -> None:
    report = measured(make_task(), Honest(World(), us=150.0, overhead_us=overhead_us))
    assert report.findings == ()
    assert {t.clock for t in report.timings} == {"events"}


@pytest.mark.parametrize("cheat", ["Skipper", "TailSkipper", "Memoiser", "Switcher"])
@pytest.mark.parametrize("seed", range(3))
def test_a_single_call_without_its_own_work_is_seen_wherever_it_is(
    make_task: Any, cheat: str, seed: int
) -> None:
    candidate = getattr(timed, cheat)(World())
    with pytest.raises(Ended) as ended:
        measured(make_task(), candidate, seed=seed)
    assert ended.value.findings[0].rule == "values.timed"
    assert ended.value.fault.value == "candidate"


def test_whoever_gives_no_time_is_to_blame(make_task: Any) -> None:
    task = make_task()
    mine = refused(task, Silent(World()))
    assert (mine.status.value, mine.fault.value) == ("runtime_error", "candidate")
    candidate = Honest(World())
    base = refused(task, candidate, Baseline(task, candidate.world, us=None))
    assert (base.status.value, base.fault.value) == ("undecided", "judge")


def floors_of(
    monkeypatch: pytest.MonkeyPatch, task: Task, us: float, base_us: float
) -> TimingReport:
    """Time with a memory that moves 1000 bytes a microsecond and an L2 cache of nothing.

    The results of `typical` are 64 floats, so that writing them takes 0.256 us; all bytes 0.768.
    """
    monkeypatch.setattr(timing, "ceiling", lambda device: ONE_KILOBYTE_A_US)
    world = World()
    return measured(task, Honest(world, us=us), Baseline(task, world, us=base_us))


def test_faster_than_the_results_can_be_written_is_cheating(
    make_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Ended) as ended:
        floors_of(monkeypatch, make_task(), us=0.1, base_us=2.0)
    assert ended.value.findings[0].rule == "timing.floor"
    assert ended.value.status.value == "cheating"


def test_faster_than_all_bytes_can_be_moved_is_a_warning(
    make_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = floors_of(monkeypatch, make_task(), us=0.5, base_us=2.0)
    found = [f for f in report.findings if f.rule == "timing.floor"]
    assert [f.severity for f in found] == ["warning"]
    first = report.timings[0]
    assert (first.floor_us, first.result_floor_us) == pytest.approx((0.768, 0.256))


def test_a_floor_that_the_baseline_breaks_too_proves_nothing(
    make_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = floors_of(monkeypatch, make_task(), us=0.1, base_us=0.1)
    assert {f.severity for f in report.findings if f.rule == "timing.floor"} == {"warning"}


def test_plans_let_a_run_end_only_where_a_late_call_is_kept() -> None:
    for plan in pairs.PLANS.values():
        assert plan.block % 2 == 0 and plan.block * 4 <= plan.least
        assert plan.least % plan.block == 0 and plan.most % plan.block == 0
