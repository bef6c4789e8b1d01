"""How a solution of a task is called, as text: derived from the task's record alone.

Order of a launcher's parameters: arguments, results, axes in ASCII order of their names,
attributes, stream. A pointer is contiguous and row-major; it is const where it is only read.
"""

from concur.schemas.solution import Contract
from concur.schemas.task import Task
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


def signature(task: Task, contract: Contract) -> str:
    """Return how a solution under a contract is called."""
    return python_signature(task) if contract is Contract.MODEL_NEW else c_signature(task)


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
    several = f"tuple[{', '.join(['Tensor'] * len(task.results))}]"
    returned = "Tensor" if len(task.results) == 1 else several
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
