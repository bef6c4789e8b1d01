"""A child for code of a task: started again once where it dies, and asked again.

A death may be the machine's doing: another process took the memory, or wedged the device. Only a
second one in a row counts.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from concur.schemas.verdict import Fault, Status
from concur.validators.calls import Called, Line, Request
from concur.validators.ended import Ended, finding, last_line
from concur.validators.failures import (
    ChildDied,
    ChildError,
    ChildFailed,
    ChildGreedy,
    ChildTimeout,
    ChildUnstarted,
)
from concur.validators.options import JudgeOptions
from concur.validators.process import Child, ChildSettings

Loads = Mapping[str, Callable[[Child], None]]
"""What the child is to hold: by slot, a function that loads it. They raise ChildFailed or Ended."""

_Answer = TypeVar("_Answer")


class Helper:
    """The child and its memory. After a second death every method raises the same Ended."""

    def __init__(self, settings: ChildSettings, options: JudgeOptions, loads: Loads) -> None:
        """Take what is needed; the child is started by `start` or by the first call."""
        self._settings, self._options, self._loads = settings, options, loads
        self._line: Line | None = None
        self._broken: Ended | None = None
        self._loading = ""
        self.starts = 0
        """How often the child was started."""

    def start(self) -> None:
        """Start the child and load what it is to hold. Raises Ended."""
        self._twice(lambda line: None, "", "")

    def call(self, request: Request) -> Called:
        """Call once. Raises Ended."""
        timeout = self._options.timeouts.run
        where = request.case.workload.name
        return self._twice(lambda line: line.call(request, timeout), request.slot, where)

    def ask(self, do: str, slot: str, **job: Any) -> dict[str, Any]:
        """Send a command about a slot. Raises Ended."""
        timeout = self._options.timeouts.run
        return self._twice(lambda line: line.child.ask(do, timeout, **job), slot, "")

    def close(self) -> None:
        """Kill the child. May be called again."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def _twice(self, do: Callable[[Line], _Answer], slot: str, where: str) -> _Answer:
        if self._broken is not None:
            raise self._broken
        for last in (False, True):
            try:
                return do(self._running())
            except ChildError as error:
                raise task_fault(error, self._loading or slot, where) from None
            except ChildFailed as error:
                self.close()
                if last:
                    self._broken = task_fault(error, self._loading or slot, where)
                    raise self._broken from None
        raise AssertionError

    def _running(self) -> Line:
        if self._line is None:
            self.starts += 1
            child = Child(self._settings)
            self._line = Line(child, self._options.device)
            try:
                for slot, load in self._loads.items():
                    self._loading = slot
                    load(child)
            except BaseException:
                self.close()
                raise
            self._loading = ""
        return self._line


def task_fault(error: ChildFailed, slot: str, where: str) -> Ended:
    """Return the end that a failing child of a task means: want of resources is not its fault."""
    rule = "task.oracle" if slot == "oracle" else "task.reference"
    subject = slot or "reference"
    text = str(error)
    match error:
        case ChildUnstarted():
            found = finding("judge.failed", f"no process: {last_line(text)}", evidence=text)
            return Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
        case ChildTimeout() | ChildGreedy() | ChildDied(killed=True) | ChildError(kind="oom"):
            found = finding(rule, f"{subject}: {last_line(str(error))[:200]}", where=where)
            return Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
    died = isinstance(error, ChildDied)
    message = f"{subject}: the process {text}" if died else f"{subject}: {last_line(text)}"
    found = finding(rule, message, where=where, evidence=text)
    return Ended(Status.INVALID_TASK, Fault.TASK, found)
