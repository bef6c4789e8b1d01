"""What the judge asks of a child, and what it found when the child had answered."""

from dataclasses import dataclass
from typing import Any, Literal

import torch

from concur.schemas.task import Task
from concur.validators.draw import Case

POISON = 0xFF
"""Byte of results before a call: a NaN in every floating type."""


@dataclass(frozen=True)
class Request:
    """What is to be called, and with what."""

    task: Task
    """The task."""
    case: Case
    """The case: sizes and attributes."""
    tensors: dict[str, torch.Tensor]
    """Every argument by name, contiguous, on the judge's device."""
    slot: str
    """Slot of the child that holds the code."""
    mode: Literal["native", "float64"] = "native"
    """float64: the child widens floating arguments, floating results are float64."""
    layout: int = 0
    """Seed of the memory layout: another value gives other addresses."""
    guard: int = POISON
    """Byte in all gaps, and in results of integers before the call; 255 is NaN to floats."""
    lead: Literal["short", "long"] = "short"
    """What runs on the device while the host queues the call: long keeps idle time out of what the
    events measure, short leaves no time to hide work in (CUDA)."""
    parameters: Literal["set", "keep"] = "set"
    """keep: a module's weights stay as they are."""
    hold: bool = False
    """Whether the child keeps the result tensors for `recopy`."""


@dataclass(frozen=True)
class Called:
    """What a call left behind."""

    results: list[torch.Tensor]
    """The judge's own copies, in declared shape and type (float64 for floats in that mode)."""
    answer: dict[str, Any]
    """What the child said: hearsay."""
    mutated: list[str]
    """Arguments whose bytes have changed."""
    overwritten: list[str]
    """What was written outside, in words."""
    wall_us: float
    """Microseconds on the judge's clock from the command until the results were read."""
    us: float | None
    """Microseconds between the child's events; None on a CPU."""
