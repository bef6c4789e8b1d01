"""What the binary side of a call needs: element sizes, parameter types, attribute values.

The same order of parameters as in the text that people read, `concur.schemas.signature`.
"""

from concur.schemas.signature import axes
from concur.schemas.task import Task, Workload
from concur.schemas.tensors import DType

SIZES: dict[DType, int] = {
    DType.FLOAT32: 4,
    DType.FLOAT16: 2,
    DType.BFLOAT16: 2,
    DType.INT64: 8,
    DType.INT32: 4,
    DType.INT8: 1,
    DType.UINT8: 1,
    DType.BOOL: 1,
}
"""Bytes of an element, by dtype."""


def scalar_types(task: Task) -> list[str]:
    """Return `pointer`, `int64` or `double` for each parameter of the launcher."""
    pointers = ["pointer"] * (len(task.arguments) + len(task.results))
    numbers = ["int64" if a.kind == "int" else "double" for a in task.attributes]
    return [*pointers, *(["int64"] * len(axes(task))), *numbers, "pointer"]


def attribute_values(task: Task, workload: Workload) -> dict[str, int | float]:
    """Return the value of each attribute of a workload, an int where the task says int."""
    values = workload.attributes
    return {
        a.name: int(values[a.name]) if a.kind == "int" else values[a.name] for a in task.attributes
    }
