"""What the device runs at, with NVML played by a script; and the two clocks of a call."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from concur.schemas.timing import Clocks
from concur.validators import clocks
from concur.validators.clocks import names, sample, throttled
from concur.validators.ended import Ended
from concur.validators.twoclocks import Readings, agree

NOT_SUPPORTED = 3
ANSWERS = {
    "nvmlDeviceGetClockInfo": lambda kind: {1: 1980, 2: 3201}[kind],
    "nvmlDeviceGetTemperature": lambda sensor: 54,
    "nvmlDeviceGetPowerUsage": lambda: 412_345,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda: 0x4 | 0x40,
}


class Library:
    """NVML of a driver that knows only the older name of the reasons."""

    missing = "nvmlDeviceGetCurrentClocksEventReasons"

    def __init__(self, _name: str) -> None:
        self.initialised = False

    def __getattr__(self, name: str) -> Any:
        if name == self.missing:
            raise AttributeError(name)
        if name == "nvmlInit_v2":
            return lambda: 0
        if name == "nvmlDeviceGetHandleByUUID":
            return lambda uuid, handle: 0 if uuid == b"GPU-1234" else 1
        if name == "nvmlDeviceGetHandleByIndex_v2":
            return lambda index, handle: 1

        def query(_handle: Any, *rest: Any) -> int:
            answer = ANSWERS.get(name)
            if answer is None:
                return NOT_SUPPORTED
            rest[-1]._obj.value = answer(*(a.value for a in rest[:-1]))  # type: ignore[operator]
            return 0

        return query


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    properties = type("Properties", (), {"uuid": "1234"})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(ctypes, "CDLL", Library)
    clocks._nvml.cache_clear()
    yield
    clocks._nvml.cache_clear()


@pytest.mark.usefixtures("nvml")
def test_clocks_temperature_and_power_are_read() -> None:
    assert sample("w", "before", "cuda") == Clocks(
        workload="w",
        moment="before",
        sm_mhz=1980,
        memory_mhz=3201,
        temperature_c=54,
        power_w=412.3,
        throttle=("software-power-cap", "hardware-thermal"),
    )


@pytest.mark.usefixtures("nvml")
def test_a_figure_that_the_device_does_not_offer_stays_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(ANSWERS, "nvmlDeviceGetPowerUsage")
    monkeypatch.delitem(ANSWERS, "nvmlDeviceGetCurrentClocksThrottleReasons")
    found = sample("w", "after", "cuda")
    assert found is not None
    assert (found.power_w, found.throttle, found.sm_mhz) == (None, (), 1980)


def test_without_the_library_and_on_a_cpu_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> None:
        raise OSError("libnvidia-ml.so.1: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    clocks._nvml.cache_clear()
    assert sample("w", "before", "cuda") is None
    clocks._nvml.cache_clear()
    assert sample("w", "before", "cpu") is None


def test_only_unusual_reasons_are_warned_of() -> None:
    assert names(0x7) == ("idle", "applications-clocks", "software-power-cap")
    assert names(1 << 20) == ("0x100000",)

    def at(workload: str, *reasons: str) -> Clocks:
        return Clocks(workload=workload, moment="after", throttle=reasons)

    assert throttled([at("a", "idle"), at("a", "software-power-cap", "applications-clocks")]) == []
    (found,) = throttled([at("a", "idle"), at("b", "hardware-thermal"), at("b", "sync-boost")])
    assert (found.rule, found.severity, found.where) == ("timing.throttled", "warning", "b")
    assert "hardware-thermal, sync-boost" in found.message


def readings(us: float, overhead: float, noise: float = 1.0, seed: int = 0) -> Readings:
    draw = np.random.default_rng(seed)
    times = us + draw.normal(0.0, 0.2, 60)
    return Readings(times, times + overhead + draw.normal(0.0, noise, 60))


BASE = readings(30.0, 200.0, seed=1)


@pytest.mark.parametrize(("us", "overhead"), [(10, 100), (10, 220), (400, 222), (5000, 240)])
def test_clocks_that_agree_leave_the_events_their_say(us: float, overhead: float) -> None:
    mine = readings(us, overhead)
    agreed = agree(mine, BASE, "w")
    assert agreed.clock == "events" and agreed.findings == []
    assert np.array_equal(agreed.us, mine.us)


@pytest.mark.parametrize(("us", "hidden"), [(10, 35), (80, 36), (1000, 200), (5000, 1000)])
def test_a_doubtful_claim_is_replaced_by_the_judges_clock(us: float, hidden: float) -> None:
    agreed = agree(readings(us, 200.0 + hidden), BASE, "w")
    assert agreed.clock == "wall"
    assert float(np.median(agreed.us)) == pytest.approx(us + hidden, abs=2.0)
    assert [f.severity for f in agreed.findings] == ["warning"]


@pytest.mark.parametrize(("us", "hidden"), [(10, 150), (100, 80), (1000, 600), (5000, 2600)])
def test_a_claim_that_nothing_explains_is_cheating(us: float, hidden: float) -> None:
    with pytest.raises(Ended) as ended:
        agree(readings(us, 200.0 + hidden), BASE, "w")
    assert (ended.value.status.value, ended.value.findings[0].rule) == ("cheating", "timing.clocks")


def test_a_candidate_cannot_widen_what_it_is_allowed_by_noise_of_its_own() -> None:
    with pytest.raises(Ended):
        agree(readings(200.0, 500.0, noise=200.0), BASE, "w")


def test_noise_of_the_machine_is_allowed_for() -> None:
    restless = readings(30.0, 200.0, noise=40.0, seed=1)
    assert agree(readings(200.0, 300.0, noise=40.0), restless, "w").clock == "events"
