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
        """Everything that the judge runs: solutions, then attempts, each once.

        Name, reasoning and origin are no part of an id: the first of several with one id stands.
        """
        attempts = [a.solution for log in self.trajectories for a in log.attempts]
        first: dict[str, Solution] = {}
        for solution in (*self.solutions, *attempts):
            first.setdefault(solution.id, solution)
        return tuple(first.values())

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        attempts = [a.solution for log in self.trajectories for a in log.attempts]
        for solution in (*self.solutions, *attempts):
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
        names_by_id: dict[str, str] = {}
        for solution in self.solutions:
            first = names_by_id.setdefault(solution.id, solution.name)
            if first != solution.name:
                raise ValueError(
                    f"solutions {first!r} and {solution.name!r} have the same sources and so one "
                    "id; keep one of them"
                )
        return self
