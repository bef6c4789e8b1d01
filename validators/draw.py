"""Draw the inputs of a workload from a secret seed, on the device that the judge computes on.

The same seed gives the same values on the same kind of device with the same PyTorch.
"""

import hashlib
from dataclasses import dataclass

import torch

from concur.schemas.expressions import evaluate, evaluate_shape
from concur.schemas.task import Task, Workload
from concur.schemas.tensors import Argument, Distribution
from concur.validators.environment import Device


@dataclass(frozen=True)
class Case:
    """One drawing of one workload."""

    workload: Workload
    """Which workload."""
    sizes: dict[str, int]
    """Axis values: full size on a GPU, the twin's on a CPU."""
    label: str
    """What the drawing is for: trial-0, repeat, timed-1."""
    seed: int
    """Seed of the inputs."""
    parameter_seed: int
    """Seed of the parameters, so that several drawings can share them."""


def case_of(task: Task, workload: Workload, device: Device, label: str, run_seed: int) -> Case:
    """Return the case of a label; cases of the timing ring share their parameters."""
    shared = label.partition("-")[0] if label.startswith("timed") else label
    return Case(
        workload=workload,
        sizes=dict(workload.axes if device == "cuda" else workload.twin),
        label=label,
        seed=derive(run_seed, task.id, workload.name, label),
        parameter_seed=derive(run_seed, task.id, workload.name, shared, "parameters"),
    )


def derive(run_seed: int, *labels: str) -> int:
    """Return a 63-bit seed that is a hash of the run's seed and labels."""
    text = "/".join((str(run_seed), *labels)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def draw(task: Task, case: Case, device: Device) -> dict[str, torch.Tensor]:
    """Return every argument of a case by name, contiguous, in its declared type and shape."""
    return {
        argument.name: draw_named(task, case, argument.name, device) for argument in task.arguments
    }


def draw_named(task: Task, case: Case, name: str, device: Device) -> torch.Tensor:
    """Return one argument of a case, with the same values as `draw` gives it."""
    position = [argument.name for argument in task.arguments].index(name)
    argument = task.arguments[position]
    seed = case.seed if argument.role == "input" else case.parameter_seed
    generator = torch.Generator(device=device)
    generator.manual_seed(derive(seed, str(position)))
    return draw_argument(argument, case, generator)


def release(device: Device) -> None:
    """Give device memory that is cached but unused back, since other processes need it."""
    if device == "cuda":
        torch.cuda.empty_cache()


def draw_argument(argument: Argument, case: Case, generator: torch.Generator) -> torch.Tensor:
    """Return one argument, drawn with a generator and on its device."""
    how = case.workload.distributions.get(argument.name, argument.distribution)
    shape = evaluate_shape(argument.shape, case.sizes)
    dtype = getattr(torch, argument.dtype.value)
    low, high = evaluate(how.low, case.sizes), evaluate(how.high, case.sizes)
    return _values(how, shape, (low, high), generator).to(dtype).contiguous()


def _values(
    how: Distribution,
    shape: tuple[int, ...],
    bounds: tuple[float, float],
    generator: torch.Generator,
) -> torch.Tensor:
    device = generator.device
    low, high = bounds
    match how.kind:
        case "normal":
            return torch.empty(shape, device=device).normal_(how.mean, how.std, generator=generator)
        case "uniform":
            return torch.empty(shape, device=device).uniform_(low, high, generator=generator)
        case "integers":
            # Values may end up in a floating type or in int8; drawn as int64 they are exact.
            return torch.randint(int(low), int(high), shape, generator=generator, device=device)
        case "bernoulli":
            uniform = torch.empty(shape, device=device).uniform_(0.0, 1.0, generator=generator)
            return uniform < how.probability
        case "permutation":
            keys = torch.empty(shape, device=device).uniform_(0.0, 1.0, generator=generator)
            return keys.argsort(dim=-1)
        case "offsets":
            inner = torch.randint(
                int(low), int(high) + 1, shape, generator=generator, device=device
            )
            inner[..., 0], inner[..., -1] = int(low), int(high)
            return inner.sort(dim=-1).values
