"""An empty launcher in a host of its own: what a call costs that computes nothing."""

import os
from types import TracebackType
from typing import Self

from concur.schemas.task import Program, Task
from concur.schemas.verdict import Fault, Status
from concur.validators.abi import scalar_types
from concur.validators.arena import sealed
from concur.validators.calls import Called, Line, Request
from concur.validators.compile import compile_reference
from concur.validators.ended import Ended, finding
from concur.validators.failures import ChildFailed
from concur.validators.options import JudgeOptions
from concur.validators.pairs import SLOT
from concur.validators.process import Child, ChildSettings

_SOURCE = "int launch(void) { return 0; }\n"


class EmptyHost:
    """Use it as a context manager. Every method raises Ended (infrastructure) where it fails."""

    def __init__(self, task: Task, options: JudgeOptions) -> None:
        """Compile and load the empty launcher, with the signature that a task demands."""
        self._options = options
        program = Program(language="c", source=_SOURCE)
        library = compile_reference(program, options.cache, options.timeouts.compile)
        try:
            self._line = Line(Child(ChildSettings("launcher", options.device)), options.device)
            descriptor = sealed(library)
            try:
                self._line.child.ask(
                    "load",
                    options.timeouts.load,
                    descriptors=(descriptor,),
                    slot=SLOT,
                    name="launch",
                    types=scalar_types(task),
                )
            finally:
                os.close(descriptor)
        except ChildFailed as error:
            raise _failed(error) from None

    def call(self, request: Request) -> Called:
        """Call once."""
        try:
            return self._line.call(request, self._options.timeouts.run)
        except ChildFailed as error:
            raise _failed(error) from None

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Kill the child."""
        self._line.close()


def _failed(error: ChildFailed) -> Ended:
    found = finding("timing.failed", f"the empty launcher failed: {error}")
    return Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
