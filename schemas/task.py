"""Tasks: what to compute, how that is stated, what decides, and on which workloads.

A task states its computation in any subset of three specs; its *forms* are derived from the specs
that are there. The oracle decides in float64.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from concur.schemas.base import Identified, Identifier, Name, Record, Text
from concur.schemas.expressions import evaluate, evaluate_shape
from concur.schemas.provenance import Provenance
from concur.schemas.tensors import Argument, Attribute, Distribution, Expression, Result


class Form(StrEnum):
    """A way in which a task is stated."""

    LANGUAGE = "language"
    PROGRAM = "program"
    MATHEMATICS = "mathematics"


class Symbol(Record):
    """A symbol of the mathematics and the declared thing that it stands for."""

    latex: Annotated[str, Field(min_length=1, max_length=80)]
    """The symbol as written in the mathematics, without dollar signs."""
    stands_for: Identifier
    """Name of the argument, result, axis or attribute; its shape and dtype are declared there."""
    meaning: str
    """What it means, in a few words."""


class Workload(Record):
    """One concrete case of a task."""

    name: Name
    """Name within the task."""
    role: Literal["typical", "boundary"]
    """boundary: a shape at the edge of tiling (a prime, one above a power of two, a single row)."""
    axes: Annotated[dict[Identifier, int], Field(max_length=64)]
    """Value of every axis at full size, for the GPU."""
    twin: Annotated[dict[Identifier, int], Field(max_length=64)]
    """Value of every axis in the small twin of this workload, for the CPU."""
    attributes: dict[Identifier, float] = {}
    """Value of every attribute."""
    distributions: dict[Identifier, Distribution] = {}
    """Arguments whose values are drawn in another way than the argument says."""


class Tolerance(Record):
    """How results are compared, and which probes fit (see `concur.validators.tolerance`)."""

    reduction: Expression = "1"
    """Number of terms that are summed into one element of a result, in axes."""
    rule: Literal["elementwise", "matched_ratio", "cosine"] = "elementwise"
    """elementwise: every element is within the bound. matched_ratio: a share of the elements is.
    cosine: the angle to the oracle is small and the lengths agree. The last two also cap the error
    of every single element; they are for results whose elements may differ for good reasons."""
    matched_ratio: Annotated[float, Field(ge=0.9, le=1.0)] = 1.0
    """Smallest share of elements within the bound, under matched_ratio."""
    cosine: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Smallest cosine of the angle between result and oracle, under cosine; at least 0.99."""
    cap: Annotated[float, Field(ge=1.0, le=1000.0)] = 10.0
    """Largest error of a single element in bounds, under matched_ratio and cosine."""
    linear: Annotated[tuple[Identifier, ...], Field(max_length=64)] = ()
    """Arguments such that the results are sums of products of them: with zeros and ones in all of
    them the results are whole numbers, and a solution has to return exactly these."""
    unscaled: Annotated[tuple[Identifier, ...], Field(max_length=64)] = ()
    """Floating arguments that are not multiplied in probes: probabilities, angles, moments."""

    @model_validator(mode="after")
    def _rule_has_its_limit(self) -> Self:
        if (self.rule == "matched_ratio") != (self.matched_ratio < 1.0):
            raise ValueError("give matched_ratio below 1 under the rule matched_ratio, only there")
        if (self.rule == "cosine") != (self.cosine > 0.0) or 0.0 < self.cosine < 0.99:
            raise ValueError("give cosine, 0.99 or more, under the rule cosine, only there")
        return self


class Program(Record):
    """A reference program."""

    language: Literal["pytorch", "c"]
    """pytorch: a file with `class Model(torch.nn.Module)`. c: a file with the function `reference`,
    called as a launcher of the contract `cpp_function` is."""
    source: Text
    """The whole file."""


class TaskHeader(Record):
    """What `task.json` in a task's folder holds: everything but the texts beside it."""

    name: Name
    """Name of the task; also its folder."""
    title: Annotated[str, Field(min_length=1, max_length=120)]
    """One line for people."""
    family: Literal[
        "elementwise",
        "reduction",
        "normalization",
        "matmul",
        "attention",
        "convolution",
        "scan-sort-gather",
        "loss-optimizer",
    ]
    """Broad kind of computation."""
    operations: Annotated[tuple[Name, ...], Field(min_length=1, max_length=256)]
    """Operations that the task is made of, in order of execution."""
    arguments: Annotated[tuple[Argument, ...], Field(min_length=1, max_length=64)]
    """Tensors that are read, in calling order: inputs first, then parameters."""
    results: Annotated[tuple[Result, ...], Field(min_length=1, max_length=64)]
    """Tensors that are returned, in order."""
    attributes: Annotated[tuple[Attribute, ...], Field(max_length=64)] = ()
    """Numbers that are fixed for a workload, in calling order."""
    constructor: Annotated[tuple[Identifier, ...], Field(max_length=64)] = ()
    """Axes and attributes that a reference module's constructor takes, in order. Attributes that
    are not named here are passed to `forward` after the inputs."""
    symbols: Annotated[tuple[Symbol, ...], Field(max_length=256)] = ()
    """Symbols of the mathematics; empty where there is none."""
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1, max_length=16)]
    """Concrete cases; at least one is a boundary."""
    tolerance: Tolerance = Tolerance()
    """What the tolerance depends on."""
    allowed_precision: tuple[Literal["tf32", "bfloat16", "float16"], ...] = ()
    """Lower precisions that a solution may compute in; none by default."""
    min_compute_capability: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")] = "7.0"
    """Smallest CUDA compute capability that the task makes sense on."""
    provenance: Provenance
    """Source and licence."""

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        axes = set(self.workloads[0].axes)
        attributes = {a.name for a in self.attributes}
        tensors: tuple[Argument | Result, ...] = (*self.arguments, *self.results)
        names = [*(t.name for t in tensors), *attributes, *axes]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"name {twice[0]!r} is declared twice; give each thing its own name")
        roles = [a.role for a in self.arguments]
        if roles != sorted(roles):
            raise ValueError("arguments: list every input before the first parameter")
        _refuse_unknown("constructor", self.constructor, axes | attributes)
        arguments = {a.name for a in self.arguments}
        _refuse_unknown("tolerance.linear", self.tolerance.linear, arguments)
        _refuse_unknown("tolerance.unscaled", self.tolerance.unscaled, arguments)
        _refuse_unknown("symbols", (s.stands_for for s in self.symbols), set(names))
        for workload in self.workloads:
            _check_workload(self, workload, axes, attributes)
        if not any(w.role == "boundary" for w in self.workloads):
            raise ValueError("workloads: mark at least one boundary shape with role 'boundary'")
        return self


class TaskTexts(Identified, TaskHeader):
    """A task with its texts: what `Task` and its published row share."""

    ID_PREFIX: ClassVar[str] = "task"
    ID_EXCLUDES: ClassVar[frozenset[str]] = frozenset({"title", "provenance"})

    description: Text | None = None
    """Natural-language spec (Markdown), enough on its own to write a solution from."""
    program: Program | None = None
    """Program spec."""
    mathematics: Text | None = None
    """Mathematical spec: Markdown with LaTeX, over `symbols`."""
    oracle: Text | None = None
    """Python file with `oracle(**tensors, **attributes, **axes)`, which follows the mathematics
    where there is one. It decides, together with the program where there are both."""

    @classmethod
    def compute_id(cls, plain: dict[str, Any]) -> str:
        """Return the content id; parts of the tolerance that are as by default do not count.

        A task that was written before such a part existed keeps its id so.
        """
        usual = Tolerance().to_plain()
        kept = {
            name: value
            for name, value in plain["tolerance"].items()
            if name == "reduction" or value != usual[name]
        }
        return super().compute_id({**plain, "tolerance": kept})

    @model_validator(mode="after")
    def _can_be_decided(self) -> Self:
        if self.description is None and self.program is None and self.mathematics is None:
            raise ValueError("a task needs at least one spec: description, program or mathematics")
        pytorch = self.program is not None and self.program.language == "pytorch"
        if self.mathematics is not None and (self.oracle is None or not self.symbols):
            raise ValueError("mathematics needs `symbols` and an oracle that follows it")
        if not pytorch and self.oracle is None:
            raise ValueError("without a PyTorch program the task needs an oracle")
        return self


class Task(TaskTexts):
    """A task with its texts."""

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms in which this task is stated, derived from the specs that are there."""
        present = {
            Form.LANGUAGE: self.description,
            Form.PROGRAM: self.program,
            Form.MATHEMATICS: self.mathematics,
        }
        return tuple(form for form, spec in present.items() if spec is not None)


class AdmissionNote(Record):
    """Where and when a task was admitted."""

    sizes: Literal["twin", "full"]
    """twin: its small workloads, on a CPU. full: the real ones, on a GPU."""
    device: str
    """Name of the processor or GPU."""
    judged_on: str
    """Date, YYYY-MM-DD."""
    rules_version: int
    """Version of the judge's rules."""


class AdmittedTask(TaskTexts):
    """A task that was admitted: one row of the config `tasks`."""

    ID_EXCLUDES: ClassVar[frozenset[str]] = Task.ID_EXCLUDES | {"forms", "admissions"}

    forms: tuple[str, ...]
    """Forms in which the task is stated."""
    admissions: tuple[AdmissionNote, ...]
    """Where and when it was admitted."""


def _refuse_unknown(field: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{field}: {name!r} is not declared; known: {_listed(known)}")


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _check_workload(
    task: TaskHeader, workload: Workload, axes: set[str], attributes: set[str]
) -> None:
    where = f"workload {workload.name!r}"
    if set(workload.axes) != axes or set(workload.twin) != axes:
        raise ValueError(f"{where}: axes and twin must both give exactly {_listed(axes)}")
    if set(workload.attributes) != attributes:
        raise ValueError(f"{where}: attributes must be exactly {_listed(attributes)}")
    arguments = {a.name for a in task.arguments}
    _refuse_unknown(f"{where}: distributions", workload.distributions, arguments)
    for sizes in (workload.axes, workload.twin):
        tensors: tuple[Argument | Result, ...] = (*task.arguments, *task.results)
        for tensor in tensors:
            evaluate_shape(tensor.shape, sizes)
        for argument in task.arguments:
            drawn = workload.distributions.get(argument.name, argument.distribution)
            evaluate(drawn.low, sizes), evaluate(drawn.high, sizes)
        evaluate(task.tolerance.reduction, sizes)
