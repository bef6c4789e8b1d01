"""Trajectories: implement, repair, optimise, with what the judge really answered at each turn."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from concur.schemas.base import Identified, Name, Record, Text
from concur.schemas.provenance import Origin
from concur.schemas.solution import Contract, Solution, SourceFile

Phase = Literal["implement", "repair", "optimise"]


class Step(Record):
    """One attempt as `trajectory.json` lists it."""

    folder: Name
    """Folder of the attempt, laid out as a solution's folder is."""
    phase: Phase
    """What the attempt set out to do."""


class AttemptLogHeader(Record):
    """What `trajectory.json` holds; the attempts are folders beside it."""

    origin: Origin
    """Who made the attempts, how, under which terms."""
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=64)]
    """The attempts, in order."""


class Attempt(Record):
    """One attempt with its texts; the reasoning of its solution is the message of its turn."""

    phase: Phase
    """What the attempt set out to do."""
    solution: Solution
    """What was handed to the judge."""


class AttemptLog(Record):
    """A recorded series of attempts at one task, before verdicts are attached."""

    name: Name
    """Name within the task; also its folder."""
    origin: Origin
    """Who made the attempts, how, under which terms."""
    attempts: Annotated[tuple[Attempt, ...], Field(min_length=1)]
    """The attempts, in order."""

    @model_validator(mode="after")
    def _begins_with_implement(self) -> Self:
        if self.attempts[0].phase != "implement":
            raise ValueError("the first attempt's phase is 'implement'")
        names = [a.solution.name for a in self.attempts]
        if len(set(names)) != len(names):
            raise ValueError("two attempts have one name; give each its own")
        return self


class ToolCall(Record):
    """A call to a tool that a message made."""

    id: str
    """Id of the call, which the answer names."""
    name: str
    """Name of the tool."""
    arguments_json: str
    """Arguments as JSON text."""


class Message(Record):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    """Who speaks."""
    content: Text
    """What is said."""
    reasoning_content: Text | None = None
    """Reasoning that was kept apart from the content."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls that an assistant's message made."""
    tool_call_id: str | None = None
    """Call that a tool's message answers."""


class Turn(Record):
    """One turn: an attempt, and what executing it showed."""

    index: int
    """Position, from 0."""
    phase: Phase
    """What the turn set out to do."""
    messages: tuple[Message, ...]
    """What was said in this turn: the question or feedback, then the answer."""
    solution_id: str
    """Id of the solution that was judged."""
    contract: Contract
    """How the solution is called."""
    files: tuple[SourceFile, ...]
    """Snapshot of the code."""
    verdict_id: str
    """Id of the verdict."""
    status: str
    """Its status."""
    fault: str
    """Whose fault a status other than passed is."""
    feedback: Text
    """What the judge answered, rendered from the verdict."""
    speedup: float | None
    """Geometric mean of speedups over the baseline; none unless it passed on a GPU."""
    best: bool
    """Whether this is the fastest turn that passed."""


class Trajectory(Identified):
    """A task with its turns: one row of the config `trajectories`."""

    ID_PREFIX: ClassVar[str] = "trajectory"

    name: Name
    """Name within the task."""
    task_id: str
    """Id of the task."""
    task_name: str
    """Name of the task."""
    family: str
    """Broad kind of computation of the task."""
    forms: tuple[str, ...]
    """Forms in which the task is stated."""
    turns: tuple[Turn, ...]
    """The turns, in order."""
    outcome: Literal["solved", "unsolved"]
    """solved when a turn passed."""
    best_speedup: float | None
    """Speedup of the best turn."""
    device: str
    """GPU that every turn was judged on."""
    writer: str
    """Who wrote the attempts: human, model or unknown."""
    method: str
    """By which method."""
    model: str
    """Model id, when a model wrote them."""
    license: str
    """SPDX expression of the attempts."""
    note: str
    """Anything else a reader should know about how it was made."""
    source: str
    """Source of the task."""
    total_tokens: int
    """Tokens of all messages."""
    token_encoding: str
    """Encoding of that count."""
    tokenizer: str
    """Library and version that counted."""
