"""What goes into and out of a computation: arguments, results, attributes, value distributions.

Shapes are written in the task's axes (`"M"`, `"N+1"`, `"H*W"`, `"4"`) and evaluated per workload by
`concur.schemas.expressions`. Arguments and results are ordered: that order is the calling order.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from concur.schemas.base import Identifier, Record

Expression = Annotated[str, Field(pattern=r"^[A-Za-z0-9_+\-*/%(), .]+$", max_length=120)]
"""Integer arithmetic over axis names: + - * // % and min(a, b), max(a, b)."""


class DType(StrEnum):
    """Element type of a tensor, by its name in PyTorch."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    INT8 = "int8"
    UINT8 = "uint8"
    BOOL = "bool"

    @property
    def is_floating(self) -> bool:
        """Whether values of this type are rounded (and are compared with a tolerance)."""
        return self in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


class Distribution(Record):
    """How the judge draws the values of one argument."""

    kind: Literal["normal", "uniform", "integers", "permutation", "offsets", "bernoulli"] = "normal"
    """normal: mean and std. uniform and integers: from low (inclusive) to high (exclusive).
    permutation: each row along the last axis is a permutation of 0..n-1. offsets: ascending segment
    boundaries, the first low, the last high. bernoulli: 1 with the given probability, else 0."""
    low: Expression = "0"
    """Lower bound, in axes or a number."""
    high: Expression = "1"
    """Upper bound, in axes or a number."""
    mean: float = 0.0
    """Mean of a normal distribution."""
    std: float = 1.0
    """Standard deviation of a normal distribution."""
    probability: float = 0.5
    """Probability of a one under bernoulli."""


class Argument(Record):
    """A tensor that the computation reads."""

    name: Identifier
    """Name in every spec, in the oracle's keywords and in the launcher's signature."""
    role: Literal["input", "parameter"]
    """input: passed to every call. parameter: a weight that the module owns; its name is the
    module's state_dict key with dots written as underscores."""
    dtype: DType
    """Element type."""
    shape: Annotated[tuple[Expression, ...], Field(max_length=16)]
    """One expression per dimension; empty for a scalar tensor."""
    distribution: Distribution = Distribution()
    """How its values are drawn."""
    description: str = ""
    """What it means."""


class Result(Record):
    """A tensor that the computation returns."""

    name: Identifier
    """Name in every spec and in the launcher's signature."""
    dtype: DType
    """Element type."""
    shape: Annotated[tuple[Expression, ...], Field(max_length=16)]
    """One expression per dimension; empty for a scalar tensor."""
    description: str = ""
    """What it means."""


class Attribute(Record):
    """A number that is fixed for a workload, such as an epsilon, a stride or a learning rate."""

    name: Identifier
    """Name in every spec, in the oracle's keywords and in the launcher's signature."""
    kind: Literal["int", "float"]
    """int becomes int64_t in a launcher's signature, float becomes double."""
    description: str = ""
    """What it means."""
