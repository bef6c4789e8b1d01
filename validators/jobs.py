"""What the judge tells a child about a call: files of raw bytes in, files of raw bytes out."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Any

import torch

from concur.schemas.expressions import evaluate_shape
from concur.schemas.signature import axes
from concur.schemas.task import Task
from concur.schemas.tensors import DType, Result
from concur.validators.abi import SIZES, attribute_values
from concur.validators.draw import Case

GUARD = 256
"""Guard bytes on each side of a launcher's result, as in the child."""


def call_job(task: Task, case: Case, mode: str = "native") -> dict[str, Any]:
    """Return the scalars of a call: for launchers in order, for Python by name."""
    attributes = attribute_values(task, case.workload)
    values: dict[str, int | float] = {**case.sizes, **attributes}
    return {
        "mode": mode,
        "scalars": [*(case.sizes[a] for a in axes(task)), *attributes.values()],
        "keywords": values,
        "constructor": [values[name] for name in task.constructor],
        "extra": [v for n, v in attributes.items() if n not in task.constructor],
    }


def send(
    task: Task, tensors: dict[str, torch.Tensor], folder: Path, label: str = "in"
) -> list[dict[str, Any]]:
    """Write arguments as raw bytes into a folder. Returns what the child needs to read them."""
    items = []
    for argument in task.arguments:
        tensor = tensors[argument.name]
        path = folder / f"{label}-{argument.name}"
        size = tensor.numel() * tensor.element_size()
        mapped = torch.from_file(str(path), shared=True, size=size, dtype=torch.uint8)
        mapped.copy_(tensor.reshape(-1).view(torch.uint8))
        items.append(
            {
                "name": argument.name,
                "role": argument.role,
                "dtype": argument.dtype.value,
                "shape": list(tensor.shape),
                "bytes": size,
                "file": str(path),
            }
        )
    return items


def expect(task: Task, case: Case, folder: Path, label: str = "out") -> list[dict[str, Any]]:
    """Return where the child is to write each result, and the size of the launcher's memory."""
    items = []
    for result in task.results:
        elements = count(result, case)
        path = folder / f"{label}-{result.name}"
        size = elements * SIZES[result.dtype]
        items.append({"name": result.name, "bytes": size, "file": str(path)})
    return items


def count(result: Result, case: Case) -> int:
    """Return the number of elements of a result."""
    elements = 1
    for size in evaluate_shape(result.shape, case.sizes):
        elements *= size
    return elements


def receive(path: Path, size: int) -> torch.Tensor | None:
    """Read exactly `size` bytes of a plain file and remove it; None when it is not just that.

    The bytes are copied: what a child does to the file later has no effect.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size != size:
            return None
        data = torch.empty(size, dtype=torch.uint8)
        array: Any = data.numpy()
        view = memoryview(array)
        done = 0
        while done < size:
            read = file.readinto(view[done:])
            if not read:
                return None
            done += read
    path.unlink(missing_ok=True)
    return data


def view(data: torch.Tensor, dtype: DType | str, shape: tuple[int, ...]) -> torch.Tensor:
    """Return bytes as a tensor of a type and shape."""
    name = dtype.value if isinstance(dtype, DType) else dtype
    if name == "bool":
        # Any other byte than 0 and 1 would be an undefined bool; it reads as a wrong value here.
        return data.reshape(shape)
    return data.view(getattr(torch, name)).reshape(shape)


def discard(items: list[dict[str, Any]]) -> None:
    """Remove the files of `send` or `expect`."""
    for item in items:
        # A candidate may have put anything in its place; the whole folder goes at the end.
        with contextlib.suppress(OSError):
            Path(item["file"]).unlink()
