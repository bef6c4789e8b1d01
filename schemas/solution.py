"""Solutions: source files under a contract, the reasoning that led to them, and their origin."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from concur.schemas.base import Identified, Name, Record, Text
from concur.schemas.provenance import Origin

FilePath = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$", max_length=200
    ),
]
"""A relative path without `..`, hidden parts or white space."""


CompileFlag = Annotated[str, Field(pattern=r"^-[\x21-\x7e]+$", max_length=200)]
"""One flag without white space."""


class Contract(StrEnum):
    """How a solution is called."""

    MODEL_NEW = "model_new"
    """Python with `class ModelNew` that builds its CUDA through torch.utils.cpp_extension."""
    CUDA_FUNCTION = "cuda_function"
    """A .cu file with an `extern "C"` launcher over raw device pointers; no torch headers."""
    CPP_FUNCTION = "cpp_function"
    """The same launcher in C++ over host pointers, so that the judge runs without a GPU. Never
    published as a kernel."""


class SourceFile(Record):
    """One file of a solution."""

    path: FilePath
    """Path relative to the solution's folder."""
    content: Text
    """The whole text."""


class SolutionHeader(Record):
    """What `solution.json` holds: everything but the source files and the reasoning beside it."""

    contract: Contract
    """How it is called."""
    entry: FilePath
    """The file that holds the launcher or `ModelNew`."""
    compile_flags: tuple[CompileFlag, ...] = ()
    """Further flags for nvcc or g++ (launcher contracts only)."""
    architecture: Annotated[str, Field(pattern=r"^(sm_[0-9]+[af]?)?$")] = ""
    """Architecture that it is written for, such as sm_90a; empty for any that the task allows."""
    reasoning_kind: Literal["authored", "sampled", "none"] = "authored"
    """authored: written for the sample. sampled: a model's own reasoning, which counts as a
    generation. none: there is no reasoning."""
    origin: Origin
    """Who wrote it, how, under which terms."""


class Solution(Identified, SolutionHeader):
    """A solution with its texts, bound to a task."""

    ID_PREFIX: ClassVar[str] = "solution"
    ID_EXCLUDES: ClassVar[frozenset[str]] = frozenset(
        {"name", "reasoning", "reasoning_kind", "origin"}
    )

    name: Name
    """Name within the task; also its folder."""
    task_id: str
    """Id of the task that it solves."""
    files: Annotated[tuple[SourceFile, ...], Field(min_length=1, max_length=32)]
    """Source files, sorted by path."""
    reasoning: Text = ""
    """Why this mapping, what bounds it, what was rejected."""

    @model_validator(mode="after")
    def _files_are_in_order(self) -> Self:
        paths = [f.path for f in self.files]
        if paths != sorted(set(paths)):
            raise ValueError("files: sort by path, each path once")
        if self.entry not in paths:
            raise ValueError(f"entry {self.entry!r} is not among the files: {', '.join(paths)}")
        return self

    @property
    def source(self) -> str:
        """Text of the entry file."""
        return next(f.content for f in self.files if f.path == self.entry)


class DecidedSolution(Solution):
    """A solution and what was decided about it: one row of the config `solutions`."""

    ID_EXCLUDES: ClassVar[frozenset[str]] = Solution.ID_EXCLUDES | {
        "verdict_id",
        "status",
        "fault",
        "outcome",
    }

    verdict_id: str
    """Id of the verdict that decided."""
    status: str
    """Status of that verdict."""
    fault: str
    """Whose fault a status other than passed is."""
    outcome: Literal["accepted", "rejected"]
    """accepted: passed. rejected: everything else that was decided."""
