"""The untrusted side: one solution in a child of its own, and what its results show."""

from pathlib import Path
from typing import Any

import torch

from concur.schemas.expressions import evaluate_shape
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.tensors import Result
from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.abi import SIZES, scalar_types
from concur.validators.compile import compile_solution
from concur.validators.draw import Case
from concur.validators.ended import Ended, ended_by, finding
from concur.validators.environment import architecture
from concur.validators.isolation import private_folder
from concur.validators.jobs import GUARD, call_job, count, discard, expect, receive, send, view
from concur.validators.lock import file_lock
from concur.validators.options import JudgeOptions
from concur.validators.process import Child, ChildFailed, ChildSettings

SLOT = "candidate"
"""Slot of the child that holds the solution."""


class Candidate:
    """A loaded solution. Every method raises Ended when the solution shows a fault."""

    def __init__(
        self, task: Task, solution: Solution, options: JudgeOptions, folder: Path, guard: int
    ) -> None:
        """Take what is needed; `guard` is the secret byte around launchers' buffers."""
        self.task, self.solution, self.options = task, solution, options
        self.folder, self.guard = folder, guard
        self.library: Path | None = None
        self.notes: list[Finding] = []
        self._child: Child | None = None
        folder.mkdir(mode=0o700)

    @property
    def is_module(self) -> bool:
        """Whether it is a Python module, which builds itself while it is loaded."""
        return self.solution.contract is Contract.MODEL_NEW

    @property
    def child(self) -> Child:
        """The running child."""
        assert self._child is not None
        return self._child

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
        environment = build_environment(self.solution, self.options) if self.is_module else {}
        settings = ChildSettings(
            self.options.device, self.folder, tf32=tf32, environment=environment
        )
        self._child = Child(settings)
        timeout = self.options.timeouts.load
        try:
            if self.is_module:
                with file_lock(extension_folder(self.solution, self.options) / ".lock"):
                    remove_stale_locks(extension_folder(self.solution, self.options))
                    self.child.ask("load", timeout, **self._module_job())
            else:
                job = {"kind": "launcher", "entry": str(self.library), "name": "launch"}
                types = scalar_types(self.task)
                self.child.ask("load", timeout, slot=SLOT, module="", types=types, **job)
        except ChildFailed as error:
            raise ended_by(error, "load.failed", "", self.child.log()) from None
        return self.child.layers

    def run(
        self, case: Case, tensors: dict[str, torch.Tensor], *, reuse: bool = False
    ) -> list[torch.Tensor]:
        """Return the results of one call, checked for structure, shape, type and side effects.

        `reuse` keeps the memory of the previous call, with new contents.
        """
        arguments = send(self.task, tensors, self.folder)
        targets = expect(self.task, case, self.folder)
        job = {**call_job(self.task, case), "slot": SLOT, "args": arguments, "results": targets}
        try:
            answer = self.ask("run", case, guard=self.guard, reuse=reuse, **job)
            return self._collect(case, answer, targets)
        finally:
            discard([*arguments, *targets])

    def ask(self, do: str, case: Case, **job: Any) -> dict[str, Any]:
        """Send a command about a case. Raises Ended where the child fails."""
        try:
            return self.child.ask(do, self.options.timeouts.run, **job)
        except ChildFailed as error:
            raise ended_by(error, "run.failed", case.workload.name, self.child.log()) from None

    def results_of(self, case: Case, targets: list[dict[str, Any]]) -> list[torch.Tensor]:
        """Return result files without guards, as timed calls leave them."""
        collected = []
        for result, target in zip(self.task.results, targets, strict=True):
            data = receive(Path(target["file"]), target["bytes"])
            if data is None:
                raise _missing(result, case)
            collected.append(view(data, result.dtype, evaluate_shape(result.shape, case.sizes)))
        return collected

    def close(self) -> None:
        """Kill the child."""
        if self._child is not None:
            self._child.close()

    def _module_job(self) -> dict[str, Any]:
        for file in self.solution.files:
            path = self.folder / "source" / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.content, encoding="utf-8")
        entry = self.folder / "source" / self.solution.entry
        return {
            "kind": "module",
            "slot": SLOT,
            "entry": str(entry),
            "name": "ModelNew",
            "module": "model_new",
        }

    def _collect(
        self, case: Case, answer: dict[str, Any], targets: list[dict[str, Any]]
    ) -> list[torch.Tensor]:
        where = case.workload.name
        for note in list(answer.get("notes") or [])[:8]:
            found = finding("structure.parameters", str(note), severity="warning")
            if found not in self.notes:
                self.notes.append(found)
        if self.is_module:
            self._check_told(case, answer)
        collected = []
        for result, target in zip(self.task.results, targets, strict=True):
            guards = 0 if self.is_module else GUARD
            data = receive(
                Path(target["file"]), count(result, case) * SIZES[result.dtype] + 2 * guards
            )
            if data is None:
                raise _missing(result, case)
            if guards:
                data = self._inside_guards(result, data, where)
            collected.append(view(data, result.dtype, evaluate_shape(result.shape, case.sizes)))
        if answer.get("mutated"):
            names = ", ".join(sorted(map(str, answer["mutated"])))
            found = finding("input.mutated", f"the call wrote to its inputs: {names}", where=where)
            raise Ended(Status.INPUT_MUTATED, Fault.CANDIDATE, found)
        return collected

    def _inside_guards(self, result: Result, data: torch.Tensor, where: str) -> torch.Tensor:
        inner = data[GUARD : data.numel() - GUARD].clone()
        for side, guard in (("before", data[:GUARD]), ("behind", data[-GUARD:])):
            changed = int((guard != self.guard).sum())
            if changed:
                message = f"the call wrote {changed} bytes {side} the memory of {result.name}"
                found = finding("memory.out-of-bounds", message, where=where)
                raise Ended(Status.RUNTIME_ERROR, Fault.CANDIDATE, found)
        return inner

    def _check_told(self, case: Case, answer: dict[str, Any]) -> None:
        """Refuse results whose structure, shape or type is not declared, as the child tells them.

        Telling lies here gains nothing: the bytes are read with the declared size, shape and type.
        """
        where, told = case.workload.name, answer.get("results") or []
        if len(told) != len(self.task.results):
            message = f"{len(told)} results were returned, not {len(self.task.results)}"
            found = finding("structure.results", message, where=where)
            raise Ended(Status.WRONG_STRUCTURE, Fault.CANDIDATE, found)
        for result, said in zip(self.task.results, told, strict=True):
            shape = list(evaluate_shape(result.shape, case.sizes))
            if said.get("type") not in ("Tensor", "Parameter"):
                message = f"{result.name} is a {said.get('type')}, not a tensor"
                found = finding("structure.results", message, where=where)
                raise Ended(Status.WRONG_STRUCTURE, Fault.CANDIDATE, found)
            if said.get("shape") != shape:
                message = f"{result.name} has shape {said.get('shape')}, not {shape}"
                found = finding("shape.result", message, where=where)
                raise Ended(Status.WRONG_SHAPE, Fault.CANDIDATE, found)
            if said.get("dtype") != result.dtype.value:
                message = f"{result.name} is {said.get('dtype')}, not {result.dtype.value}"
                found = finding("dtype.result", message, where=where)
                raise Ended(Status.WRONG_DTYPE, Fault.CANDIDATE, found)
            if said.get("device") != self.options.device:
                message = f"{result.name} is on {said.get('device')}, not {self.options.device}"
                found = finding("structure.results", message, where=where)
                raise Ended(Status.WRONG_STRUCTURE, Fault.CANDIDATE, found)
            if said.get("aliases"):
                message = f"{result.name} shares memory with an input"
                found = finding("structure.alias", message, where=where, severity="warning")
                if found not in self.notes:
                    self.notes.append(found)


def extension_folder(solution: Solution, options: JudgeOptions) -> Path:
    """Return the folder that the extensions of one solution are built in, made when missing."""
    folder = private_folder(options.cache) / "extensions" / solution.id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def build_environment(solution: Solution, options: JudgeOptions) -> dict[str, str]:
    """Return the environment variables that a module's build needs."""
    number = (solution.architecture or architecture()).removeprefix("sm_")
    digits, letter = number.rstrip("af"), number[len(number.rstrip("af")) :]
    return {
        "TORCH_EXTENSIONS_DIR": str(extension_folder(solution, options)),
        "TORCH_CUDA_ARCH_LIST": f"{digits[:-1]}.{digits[-1]}{letter}",
        "MAX_JOBS": "2",
    }


def remove_stale_locks(folder: Path) -> None:
    """Remove PyTorch's lock files that a killed build left: the next one would wait for ever."""
    for path in folder.glob("**/lock"):
        path.unlink(missing_ok=True)


def _missing(result: Result, case: Case) -> Ended:
    message = f"no {result.name} of the declared size was written"
    found = finding("structure.results", message, where=case.workload.name)
    return Ended(Status.WRONG_STRUCTURE, Fault.CANDIDATE, found)
