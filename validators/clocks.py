"""Clocks, temperature and power of the GPU, by NVML, the library that the driver brings.

What is not offered here, the library or a single figure, stays unknown: nothing is ever raised.
Constants and names are those of `nvml.h` (NVML API reference, "Device Queries").
"""

import ctypes
from functools import lru_cache
from typing import Any, Literal

import torch

from concur.schemas.timing import Clocks
from concur.schemas.verdict import Finding
from concur.validators.ended import finding
from concur.validators.environment import Device

_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0

THROTTLES = {
    0x1: "idle",
    0x2: "applications-clocks",
    0x4: "software-power-cap",
    0x8: "hardware-slowdown",
    0x10: "sync-boost",
    0x20: "software-thermal",
    0x40: "hardware-thermal",
    0x80: "hardware-power-brake",
    0x100: "display-clocks",
}
"""Reasons for clocks below the highest, by their bit (`nvmlClocksEventReason...`)."""

USUAL = frozenset({"idle", "applications-clocks", "software-power-cap"})
"""Reasons that say nothing against a measurement: a big kernel meets the power cap by nature."""


class Nvml:
    """The device that PyTorch computes on, as NVML sees it."""

    def __init__(self) -> None:
        """Open the library. Raises OSError or AttributeError where there is none."""
        self._library: Any = ctypes.CDLL("libnvidia-ml.so.1")
        if self._library.nvmlInit_v2() != 0:
            raise OSError("NVML could not be initialised")
        self._handle = ctypes.c_void_p()
        if not self._open():
            raise OSError("NVML does not know the device")

    def number(self, name: str, *arguments: int, wide: bool = False) -> int | None:
        """Return what a query of one number gives; None where the device does not offer it."""
        function = getattr(self._library, name, None)
        if function is None:
            return None
        value = ctypes.c_ulonglong() if wide else ctypes.c_uint()
        code = function(self._handle, *map(ctypes.c_uint, arguments), ctypes.byref(value))
        return int(value.value) if code == 0 else None

    def _open(self) -> bool:
        """Find the device by its UUID, since NVML and CUDA may number devices differently."""
        uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
        named = f"GPU-{uuid}".encode()
        by_name, by_number = (
            self._library.nvmlDeviceGetHandleByUUID,
            self._library.nvmlDeviceGetHandleByIndex_v2,
        )
        handle = ctypes.byref(self._handle)
        return bool(by_name(named, handle) == 0 or by_number(ctypes.c_uint(0), handle) == 0)


@lru_cache(maxsize=1)
def _nvml() -> Nvml | None:
    try:
        return Nvml()
    except (OSError, AttributeError, RuntimeError, AssertionError):
        return None


def sample(workload: str, moment: Literal["before", "after"], device: Device) -> Clocks | None:
    """Return what the device runs at now, None where NVML cannot be asked or on a CPU."""
    nvml = _nvml() if device == "cuda" else None
    return None if nvml is None else read(nvml, workload, moment)


def read(nvml: Nvml, workload: str, moment: Literal["before", "after"]) -> Clocks:
    """Return what one device runs at now."""
    power = nvml.number("nvmlDeviceGetPowerUsage")
    # The newer name first; older drivers know the other one alone.
    reasons = nvml.number("nvmlDeviceGetCurrentClocksEventReasons", wide=True)
    if reasons is None:
        reasons = nvml.number("nvmlDeviceGetCurrentClocksThrottleReasons", wide=True)
    return Clocks(
        workload=workload,
        moment=moment,
        sm_mhz=nvml.number("nvmlDeviceGetClockInfo", _SM_CLOCK),
        memory_mhz=nvml.number("nvmlDeviceGetClockInfo", _MEMORY_CLOCK),
        temperature_c=nvml.number("nvmlDeviceGetTemperature", _GPU_SENSOR),
        power_w=None if power is None else round(power / 1000.0, 1),
        throttle=names(reasons or 0),
    )


def names(reasons: int) -> tuple[str, ...]:
    """Return the names of the reasons in a bit mask; an unknown bit by its number."""
    bits = [1 << i for i in range(reasons.bit_length()) if reasons >> i & 1]
    return tuple(THROTTLES.get(bit, hex(bit)) for bit in bits)


def throttled(clocks: list[Clocks]) -> list[Finding]:
    """Return one warning for each workload whose device was slowed down for an unusual reason."""
    found = []
    for workload in dict.fromkeys(c.workload for c in clocks):
        seen = [c for c in clocks if c.workload == workload]
        reasons = sorted({r for c in seen for r in c.throttle} - USUAL)
        if reasons:
            message = f"the GPU was slowed down: {', '.join(reasons)}"
            shown = "\n".join(f"{c.moment}: {c.sm_mhz} MHz, {c.temperature_c} C" for c in seen)
            found.append(
                finding(
                    "timing.throttled",
                    message,
                    where=workload,
                    evidence=shown,
                    severity="warning",
                )
            )
    return found
