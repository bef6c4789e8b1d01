"""How a solution is called: the launcher's C signature and the module's Python one, from a task.

Order of a launcher's parameters: arguments, results, axes in ASCII order of their names,
attributes, stream. A pointer is contiguous and row-major; it is const where it is only read.
"""

from concur.schemas.task import Task, Workload
from concur.schemas.tensors import DType

C_TYPES: dict[DType, str] = {
    DType.FLOAT32: "float",
    DType.FLOAT16: "__half",
    DType.BFLOAT16: "__nv_bfloat16",
    DType.INT64: "int64_t",
    DType.INT32: "int32_t",
    DType.INT8: "int8_t",
    DType.UINT8: "uint8_t",
    DType.BOOL: "bool",
}
"""C type of an element, by dtype."""

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


def c_signature(task: Task, function: str = "launch") -> str:
    """Return the declaration of the launcher that a task demands."""
    parameters = [f"const {C_TYPES[a.dtype]}* {a.name}" for a in task.arguments]
    parameters += [f"{C_TYPES[r.dtype]}* {r.name}" for r in task.results]
    parameters += [f"int64_t {axis}" for axis in axes(task)]
    parameters += [
        f"{'int64_t' if a.kind == 'int' else 'double'} {a.name}" for a in task.attributes
    ]
    parameters.append("void* stream")
    return f'extern "C" int {function}({", ".join(parameters)})'


def python_signature(task: Task) -> str:
    """Return the outline of the module that a task demands, as Python text."""
    inputs = [f"{a.name}: Tensor" for a in task.arguments if a.role == "input"]
    numbers = {a.name: a.kind for a in task.attributes}
    extra = [f"{a.name}: {a.kind}" for a in task.attributes if a.name not in task.constructor]
    construct = ["self", *(f"{n}: {numbers.get(n, 'int')}" for n in task.constructor)]
    returned = (
        "Tensor"
        if len(task.results) == 1
        else f"tuple[{', '.join(['Tensor'] * len(task.results))}]"
    )
    lines = [
        "class ModelNew(torch.nn.Module):",
        f"    def __init__({', '.join(construct)}): ...",
        f"    def forward({', '.join(['self', *inputs, *extra])}) -> {returned}: ...",
    ]
    weights = [
        f"{a.name}: {a.dtype.value}[{', '.join(a.shape)}]"
        for a in task.arguments
        if a.role == "parameter"
    ]
    if weights:
        lines.append(f"    # state_dict (dots as underscores): {'; '.join(weights)}")
    return "\n".join(lines)


def axes(task: Task) -> tuple[str, ...]:
    """Return the names of a task's axes in the order of the launcher (ASCII)."""
    return tuple(sorted(task.workloads[0].axes))


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
