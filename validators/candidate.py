"""The untrusted side: one solution in a child of its own, and what its calls leave behind."""

import os
import signal
from typing import Any

import torch

from concur.schemas.expressions import evaluate_shape
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.abi import scalar_types
from concur.validators.arena import sealed
from concur.validators.builds import Builder
from concur.validators.calls import Called, Line, Request
from concur.validators.compile import compile_solution
from concur.validators.ended import Ended, ended_by, finding
from concur.validators.environment import architecture
from concur.validators.failures import ChildFailed
from concur.validators.ghost import emptied
from concur.validators.options import JudgeOptions
from concur.validators.pairs import SLOT
from concur.validators.process import Child, ChildSettings

_MOST_NOTES = 8
_TENSORS = ("Tensor", "Parameter")


class Candidate:
    """A loaded solution. Every method raises Ended when the solution shows a fault."""

    def __init__(self, task: Task, solution: Solution, options: JudgeOptions) -> None:
        """Take what is needed; nothing is started yet."""
        self.task, self.solution, self.options = task, solution, options
        self.library = b""
        self.builder = Builder(solution, options.cache, architecture(), options.timeouts.compile)
        self.notes: list[Finding] = []
        self._line: Line | None = None

    @property
    def is_module(self) -> bool:
        """Whether it is a Python module, which asks for its builds while it is loaded."""
        return self.solution.contract is Contract.MODEL_NEW

    @property
    def line(self) -> Line:
        """The running child and its memory."""
        assert self._line is not None
        return self._line

    @property
    def libraries(self) -> list[bytes]:
        """The libraries that were built for it."""
        return self.builder.libraries if self.is_module else [self.library]

    def compile(self) -> None:
        """Compile a launcher."""
        if not self.is_module:
            timeout = self.options.timeouts.compile
            self.library = compile_solution(
                self.solution, self.options.cache, architecture(), timeout
            )

    def load(self) -> list[str]:
        """Start the child and load the solution. Returns the layers of isolation."""
        tf32 = "tf32" in self.task.allowed_precision
        kind: Any = "torch" if self.is_module else "launcher"
        settings = ChildSettings(kind, self.options.device, tf32=tf32)
        child: Child | None = None
        try:
            child = Child(settings)
            self._line = Line(child, self.options.device)
            child.needs = self.builder.answer
            self._load(child)
        except ChildFailed as error:
            raise ended_by(error, "load.failed", "", child.log() if child else "") from None
        return child.layers

    def call(
        self, request: Request, *, checked: bool = True, timeout: float | None = None
    ) -> Called:
        """Call once. Unless `checked` is off, side effects end the run."""
        where = request.case.workload.name
        try:
            called = self.line.call(request, timeout or self.options.timeouts.run)
        except ChildFailed as error:
            raise ended_by(error, "run.failed", where, self.line.child.log()) from None
        self._note(called, where)
        if self.is_module:
            self._check_told(request, called)
        if checked:
            refuse_side_effects(called, where)
        return called

    def recopy(self, where: str) -> list[torch.Tensor]:
        """Return the results that the last holding call gave, as they are now."""
        try:
            return self.line.recopy(self.options.timeouts.run)
        except ChildFailed as error:
            raise ended_by(error, "run.failed", where, self.line.child.log()) from None

    def profile(self, request: Request) -> list[tuple[str, float]]:
        """Return kernels and their microseconds in one call of a module. Raises ChildFailed."""
        answer = self.line.profile(request, self.options.timeouts.run)
        return [(str(name), float(spent)) for name, spent in answer["kernels"]]

    def stop(self) -> None:
        """Stop the child's process until `go_on`; what it queued on the device goes on."""
        os.kill(self.line.child.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let the child's process go on."""
        os.kill(self.line.child.pid, signal.SIGCONT)

    def close(self) -> None:
        """Kill the child."""
        if self._line is not None:
            self._line.close()

    def emptied(self) -> "Candidate":
        """Return the same solution with every kernel emptied (see `ghost`)."""
        twin = Candidate(self.task, self.solution, self.options)
        if self.is_module:
            twin.builder.transform = emptied
        else:
            texts = [f.content for f in self.solution.files]
            files = tuple(
                f.model_copy(update={"content": emptied(f.content, texts)})
                for f in self.solution.files
            )
            twin.solution = self.solution.model_copy(update={"files": files})
        return twin

    def _load(self, child: Child) -> None:
        timeout = self.options.timeouts.load
        if self.is_module:
            files = [{"path": f.path, "content": f.content} for f in self.solution.files]
            entry = self.solution.entry
            told: dict[str, Any] = {"kind": "module", "name": "ModelNew", "module": "model_new"}
            child.ask("load", timeout, slot=SLOT, files=files, entry=entry, **told)
            return
        library = sealed(self.library)
        try:
            types = scalar_types(self.task)
            job: dict[str, Any] = {"kind": "launcher", "name": "launch", "types": types}
            child.ask("load", timeout, descriptors=(library,), slot=SLOT, **job)
        finally:
            os.close(library)

    def _note(self, called: Called, where: str) -> None:
        for note in list(called.answer["notes"])[:_MOST_NOTES]:
            text = str(note)
            rule = "structure.flag" if text.startswith("flag: ") else "structure.parameters"
            self._add(finding(rule, text.removeprefix("flag: "), severity="warning"))
        for told in called.answer["results"]:
            if told.get("aliases"):
                message = f"a result shares memory with {told['aliases']}"
                found = finding("structure.alias", message, where=where, severity="warning")
                self._add(found)

    def _add(self, found: Finding) -> None:
        if not any(f.rule == found.rule and f.message == found.message for f in self.notes):
            self.notes.append(found)

    def _check_told(self, request: Request, called: Called) -> None:
        """Refuse results whose structure, shape or type is not declared, as the child tells them.

        Telling lies here gains nothing: the bytes are read with the declared size, shape and type.
        """
        where, told = request.case.workload.name, called.answer["results"]
        if len(told) != len(self.task.results):
            message = f"{len(told)} results were returned, not {len(self.task.results)}"
            found = finding("structure.results", message, where=where)
            raise Ended(Status.WRONG_STRUCTURE, Fault.CANDIDATE, found)
        for result, said in zip(self.task.results, told, strict=True):
            shape = list(evaluate_shape(result.shape, request.case.sizes))
            wrong = _mistold(said, shape, result.dtype.value, self.options.device)
            if wrong is not None:
                status, rule, text = wrong
                found = finding(rule, f"{result.name} {text}", where=where)
                raise Ended(status, Fault.CANDIDATE, found)


def refuse_side_effects(called: Called, where: str) -> None:
    """End the run where a call wrote to its inputs, or outside of its results."""
    if called.overwritten:
        message = f"the call wrote outside its results: {', '.join(called.overwritten)}"
        found = finding("memory.out-of-bounds", message, where=where)
        raise Ended(Status.RUNTIME_ERROR, Fault.CANDIDATE, found)
    if called.mutated:
        message = f"the call wrote to its inputs: {', '.join(called.mutated)}"
        found = finding("input.mutated", message, where=where)
        raise Ended(Status.INPUT_MUTATED, Fault.CANDIDATE, found)


def _mistold(
    said: dict[str, Any], shape: list[int], dtype: str, device: str
) -> tuple[Status, str, str] | None:
    if said.get("type") not in _TENSORS:
        text = f"is a {said.get('type')}, not a tensor"
        return Status.WRONG_STRUCTURE, "structure.results", text
    if said.get("shape") != shape:
        return Status.WRONG_SHAPE, "shape.result", f"has shape {said.get('shape')}, not {shape}"
    if said.get("dtype") != dtype:
        return Status.WRONG_DTYPE, "dtype.result", f"is {said.get('dtype')}, not {dtype}"
    if said.get("device") != device:
        text = f"is on {said.get('device')}, not {device}"
        return Status.WRONG_STRUCTURE, "structure.results", text
    return None
