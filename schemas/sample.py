"""Samples: a task with its solutions and attempts, as a contributor hands it in.

A sample is a folder (`concur.builders.folder`) or a single JSON file of this very shape.
"""

from typing import Self

from pydantic import model_validator

from concur.schemas.base import Record
from concur.schemas.solution import Solution
from concur.schemas.task import Task
from concur.schemas.trajectory import AttemptLog


class Sample(Record):
    """A task, its solutions, and recorded attempts at it; no verdicts, which the judge makes."""

    task: Task
    """The task."""
    solutions: tuple[Solution, ...] = ()
    """Solutions, sorted by name."""
    trajectories: tuple[AttemptLog, ...] = ()
    """Recorded attempts, sorted by name."""

    @property
    def candidates(self) -> tuple[Solution, ...]:
        """Everything that the judge runs: solutions, then attempts, each once."""
        attempts = [a.solution for log in self.trajectories for a in log.attempts]
        return tuple({s.id: s for s in (*self.solutions, *attempts)}.values())

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        for solution in self.candidates:
            if solution.task_id != self.task.id:
                raise ValueError(
                    f"solution {solution.name!r}: task_id {solution.task_id!r} is not the task's; "
                    f"use {self.task.id}"
                )
        for kind, names in (
            ("solutions", [s.name for s in self.solutions]),
            ("trajectories", [t.name for t in self.trajectories]),
        ):
            if names != sorted(set(names)):
                raise ValueError(f"{kind}: sort by name, each name once")
        return self
