"""Whether the device still computes, asked between solutions."""

import time

import torch

from concur.validators.environment import Device

_PATIENCE_S = 60.0
_EVERY_S = 1.0


def is_healthy(device: Device) -> bool:
    """Return whether the device computes a known sum, in the judge's own context.

    While others hold all of its memory it is asked again, for a minute.
    """
    if device != "cuda":
        return True
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _computes()
        except torch.cuda.OutOfMemoryError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_EVERY_S)
        except RuntimeError:
            return False


def _computes() -> bool:
    count = 1 << 20
    numbers = torch.arange(count, dtype=torch.float64, device="cuda")
    return float((2 * numbers).sum()) == float(count * (count - 1))
