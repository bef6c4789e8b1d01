"""Samples as JSON: one in a .json file, or one a line in a .jsonl file.

The shape is that of `concur.schemas.Sample`. Ids may be left out, a solution's `task_id` too, and
solutions may stand in any order: all that is derived.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from concur.builders.sample_files import AnyRecord, Reader, text_fault
from concur.schemas.base import Record
from concur.schemas.json_text import JsonPath, Positions, path_text
from concur.schemas.problems import problem
from concur.schemas.sample import Sample
from concur.schemas.solution import Solution
from concur.schemas.strict import LIMIT, build_record, read_json
from concur.schemas.task import Task
from concur.schemas.trajectory import AttemptLog
from concur.schemas.verdict import Finding


class SampleParts(Record):
    """The outline of a sample, whose parts are looked at one by one."""

    task: dict[str, Any]
    """The task."""
    solutions: tuple[Any, ...] = ()
    """Solutions."""
    trajectories: tuple[Any, ...] = ()
    """Recorded attempts."""


def read_document(reader: Reader, data: bytes, path: Path, first_line: int = 1) -> Sample | None:
    """Return the sample that JSON bytes hold, or None when the task cannot be used.

    A bad solution or series of attempts is reported and left out.
    """
    value, findings = read_json(data, str(path), first_line=first_line)
    reader.take(findings)
    if value is None:
        return None
    return _Document(path, Positions(data.decode(), first_line=first_line)).sample(reader, value)


def lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and bytes of every line that is not blank; only a line feed ends one.

    Of a line beyond the size limit just enough is kept for the limit to be noticed.
    """
    number = 0
    while line := stream.readline(LIMIT + 2):
        number += 1
        rest = line
        while not rest.endswith(b"\n") and len(rest) == LIMIT + 2:
            rest = stream.readline(LIMIT + 2)
        if line.strip():
            yield number, line.removesuffix(b"\n")


class _Document:
    """Builds a sample's parts, with the file and the lines for the findings."""

    def __init__(self, path: Path, positions: Positions) -> None:
        self._path = path
        self._positions = positions

    def sample(self, reader: Reader, value: dict[str, Any]) -> Sample | None:
        parts = self._build(reader, SampleParts, value, ())
        if parts is None:
            return None
        task = self._build(reader, Task, parts.task, ("task",))
        if task is not None:
            self._check_task_texts(reader, task)
        task_id = task.id if task else ""
        solutions: dict[str, Solution] = {}
        names_by_id: dict[str, str] = {}
        for index, plain in enumerate(parts.solutions):
            part = reader.child()
            solution = self._solution(part, plain, ("solutions", index), task_id)
            if solution is not None:
                self._check_repeated(part, names_by_id, solution, ("solutions", index))
            self._keep(part, solutions, solution, ("solutions", index))
            reader.adopt(part)
        logs: dict[str, AttemptLog] = {}
        for index, plain in enumerate(parts.trajectories):
            part = reader.child()
            log = self._log(part, plain, ("trajectories", index), task_id)
            self._keep(part, logs, log, ("trajectories", index))
            reader.adopt(part)
        if task is None or reader.failed:
            return None
        return Sample(
            task=task,
            solutions=tuple(solutions[name] for name in sorted(solutions)),
            trajectories=tuple(logs[name] for name in sorted(logs)),
        )

    def _solution(self, part: Reader, plain: Any, at: JsonPath, task_id: str) -> Solution | None:
        if isinstance(plain, dict) and plain.get("task_id", "") == "":
            plain = {**plain, "task_id": task_id}
        solution = self._build(part, Solution, plain, at)
        if solution is None:
            return None
        self._check_solution(part, solution, at, task_id)
        return None if part.failed else solution

    def _log(self, part: Reader, plain: Any, at: JsonPath, task_id: str) -> AttemptLog | None:
        log = self._build(part, AttemptLog, _with_task_ids(plain, task_id), at)
        if log is None:
            return None
        for index, attempt in enumerate(log.attempts):
            where = (*at, "attempts", index, "solution")
            self._check_solution(part, attempt.solution, where, task_id)
        return None if part.failed else log

    def _check_repeated(
        self, part: Reader, names_by_id: dict[str, str], solution: Solution, at: JsonPath
    ) -> None:
        first = names_by_id.setdefault(solution.id, solution.name)
        if first != solution.name:
            message = f"solutions {first!r} and {solution.name!r} have the same sources"
            self._report(part, "sample.repeated-solution", message, at, "Keep one of them.")

    def _check_task_texts(self, reader: Reader, task: Task) -> None:
        for name in ("description", "mathematics", "oracle"):
            self._check_text(reader, getattr(task, name), ("task", name))
        if task.program is not None:
            self._check_text(reader, task.program.source, ("task", "program", "source"))

    def _check_solution(self, part: Reader, solution: Solution, at: JsonPath, task_id: str) -> None:
        for index, file in enumerate(solution.files):
            self._check_text(part, file.content, (*at, "files", index, "content"))
        if solution.reasoning_kind != "none":
            self._check_text(part, solution.reasoning, (*at, "reasoning"))
        if task_id and solution.task_id != task_id:
            message = f"task_id {solution.task_id[:40]!r} is not the id of this sample's task"
            remedy = f"Leave it out, or use {task_id}."
            self._report(part, "record.task-mismatch", message, (*at, "task_id"), remedy)

    def _check_text(self, reader: Reader, text: str | None, at: JsonPath) -> None:
        fault = text_fault(text) if text is not None else None
        if fault is not None:
            found = self._finding(fault.rule, f"{at[-1]} {fault.message}", at, fault.remedy)
            reader.take([found.model_copy(update={"severity": fault.severity})])

    def _keep(
        self, part: Reader, kept: dict[str, Any], record: Solution | AttemptLog | None, at: JsonPath
    ) -> None:
        if record is None or part.failed:
            return
        if record.name in kept:
            message = f"name {record.name!r} occurs twice"
            self._report(
                part, "sample.repeated-name", message, (*at, "name"), "Rename one of them."
            )
        else:
            kept[record.name] = record

    def _report(self, reader: Reader, rule: str, message: str, at: JsonPath, remedy: str) -> None:
        reader.take([self._finding(rule, message, at, remedy)])

    def _finding(self, rule: str, message: str, at: JsonPath, remedy: str) -> Finding:
        line = self._positions.line(at)
        where = path_text(at)
        return problem(rule, message, str(self._path), line=line, where=where, remedy=remedy)

    def _build(
        self, reader: Reader, cls: type[AnyRecord], value: Any, at: JsonPath
    ) -> AnyRecord | None:
        record, findings = build_record(
            cls, value, str(self._path), positions=self._positions, at=at
        )
        reader.take(findings)
        return record


def _with_task_ids(plain: Any, task_id: str) -> Any:
    """Return a series of attempts with the task's id where an attempt's solution has none."""
    if not isinstance(plain, dict) or not isinstance(plain.get("attempts"), list):
        return plain
    attempts = []
    for attempt in plain["attempts"]:
        solution = attempt.get("solution") if isinstance(attempt, dict) else None
        if isinstance(solution, dict) and solution.get("task_id", "") == "":
            attempt = {**attempt, "solution": {**solution, "task_id": task_id}}
        attempts.append(attempt)
    return {**plain, "attempts": attempts}
