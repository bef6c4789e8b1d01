"""Triplets: one flat row of reference, reasoning, kernel and what judging the kernel showed."""

from typing import ClassVar, Literal

from concur.schemas.base import Identified, Text
from concur.schemas.solution import Contract, SourceFile


class Triplet(Identified):
    """A task, the reasoning, and a solution that passed on a GPU: one row of `triplets`."""

    ID_PREFIX: ClassVar[str] = "triplet"

    task_id: str
    """Id of the task."""
    solution_id: str
    """Id of the solution."""
    verdict_id: str
    """Id of the verdict that the solution passed with."""
    task_name: str
    """Name of the task."""
    solution_name: str
    """Name of the solution within the task."""
    title: str
    """The task in one line."""
    family: str
    """Broad kind of computation."""
    forms: tuple[str, ...]
    """Forms in which the task is stated."""
    description: Text | None
    """Natural-language spec, where the task has one."""
    reference: Text | None
    """Program spec, where the task has one: the whole file."""
    reference_language: Literal["pytorch", "c"] | None
    """Language of the program spec."""
    mathematics: Text | None
    """Mathematical spec, where the task has one."""
    signature: Text
    """How a solution is called: the launcher's C signature, or the module's Python one."""
    reasoning: Text
    """Why this mapping, what bounds it, what was rejected."""
    reasoning_kind: str
    """authored for this sample, or sampled from a model."""
    reasoning_tokens: int
    """Tokens of the reasoning."""
    kernel: Text
    """The entry file of the solution."""
    kernel_tokens: int
    """Tokens of the kernel."""
    token_encoding: str
    """Encoding of the counts."""
    tokenizer: str
    """Library and version that counted."""
    files: tuple[SourceFile, ...]
    """Every file of the solution."""
    contract: Contract
    """How the solution is called."""
    difficulty: Literal["easy", "medium", "hard", "unknown"]
    """Tag from the average reasoning length over a task's sampled generations."""
    generations: int
    """Generations that the tag rests on; too few leave it unknown."""
    speedup: float
    """Geometric mean over workloads of baseline median over kernel median."""
    speedup_low: float
    """Smallest lower end of a workload's 95 % interval."""
    baseline: str
    """What was timed beside it."""
    median_us: float
    """Kernel's median time on the first workload, in microseconds."""
    baseline_median_us: float
    """Baseline's median time on the first workload, in microseconds."""
    device: str
    """GPU of the verdict."""
    rules_version: int
    """Version of the judge's rules."""
    judged_on: str
    """Date of the verdict."""
    writer: str
    """Who wrote solution and reasoning: human, model or unknown."""
    method: str
    """By which method."""
    model: str
    """Model id, when a model wrote it."""
    license: str
    """SPDX expression of the solution."""
    source: str
    """Source of the task."""
    source_revision: str
    """Pinned revision of the source."""
    task_license: str
    """SPDX expression of the task."""
