"""The trusted side of a task: oracle and program, run in a child of their own.

They are contributors' code: the judge does not import them either, and checks what they return.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from concur.schemas.expressions import evaluate, evaluate_shape
from concur.schemas.task import Task
from concur.schemas.verdict import Fault, Status
from concur.validators.abi import SIZES, scalar_types
from concur.validators.compare import Difference, compare_exactly, compare_floats
from concur.validators.compile import compile_reference
from concur.validators.draw import Case, draw
from concur.validators.ended import Ended, finding, last_line
from concur.validators.jobs import GUARD, call_job, count, discard, expect, receive, send, view
from concur.validators.options import JudgeOptions
from concur.validators.process import (
    Child,
    ChildDied,
    ChildError,
    ChildFailed,
    ChildSettings,
    ChildTimeout,
)
from concur.validators.tolerance import agreement_tolerance, relative_tolerance

_CACHED_BYTES = {"cpu": 1 << 30, "cuda": 4 << 30}
_UNKNOWN_ERROR = float("inf")


@dataclass(frozen=True)
class Expected:
    """What a case must give."""

    results: tuple[torch.Tensor, ...]
    """float64 for floating results, else the declared type; on the judge's device."""
    rtol: tuple[float, ...]
    """Tolerance of each floating result; 0 for others."""
    reference_ratio: tuple[float, ...]
    """Largest error of the reference in its own type, as a share of the tolerance."""


class Reference:
    """The reference child of one task. Every method raises Ended when the task is at fault."""

    def __init__(self, task: Task, options: JudgeOptions, workspace: Path) -> None:
        """Start the child and load what the task has."""
        self.task, self.options = task, options
        self.folder = workspace / "reference"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._cache: OrderedDict[tuple[str, str], Expected] = OrderedDict()
        self._broken: Ended | None = None
        tf32 = "tf32" in task.allowed_precision
        self.child = Child(ChildSettings(options.device, self.folder, tf32=tf32, threads=2))
        try:
            self._load()
        except BaseException:
            self.close()
            raise

    @property
    def baseline(self) -> str:
        """The slot that is timed and calibrates: reference where there is a PyTorch program."""
        return "reference" if self._has_program("pytorch") else "oracle"

    @property
    def decider(self) -> str:
        """The slot that decides in float64."""
        return "oracle" if self.task.oracle is not None else "reference"

    def expected(self, case: Case) -> Expected:
        """Return what a case must give, from memory where it was asked for before."""
        key = (case.workload.name, case.label)
        if key not in self._cache:
            self._cache[key] = self._expect(case)
            self._forget()
        self._cache.move_to_end(key)
        return self._cache[key]

    def run(
        self, slot: str, case: Case, tensors: dict[str, torch.Tensor], mode: str
    ) -> tuple[torch.Tensor, ...]:
        """Return the results of one slot. `mode` is float64 or native."""
        arguments = send(self.task, tensors, self.folder)
        targets = expect(self.task, case, self.folder)
        job = {**call_job(self.task, case, mode), "slot": slot, "args": arguments}
        job |= {"results": targets, "guard": 0xA5, "reuse": False}
        try:
            answer = self.ask("run", (slot, case.workload.name), **job)
            if slot == "c":
                return self._collect_c(case, targets)
            return self._collect(slot, case, answer, targets, mode)
        finally:
            discard([*arguments, *targets])

    def ask(self, do: str, told: tuple[str, str], **job: Any) -> dict[str, Any]:
        """Send a command. A child that has died gives the same end from then on.

        `told` is what an error names: the slot and the workload.
        """
        if self._broken is not None:
            raise self._broken
        try:
            return self.child.ask(do, self.options.timeouts.run, **job)
        except ChildFailed as error:
            ended = _task_fault(error, *told)
            if not isinstance(error, ChildError):
                self._broken = ended
            raise ended from None

    def agreement(self, case: Case) -> tuple[float, float]:
        """Return the largest error of program against oracle in float64 and its limit."""
        reduction = float(evaluate(self.task.tolerance.reduction, case.sizes))
        limit = agreement_tolerance(reduction)
        tensors = draw(self.task, case, self.options.device)
        decided = self.run(self.decider, case, tensors, "float64")
        program = self.run("reference", case, tensors, "float64")
        worst = 0.0
        for mine, theirs in zip(decided, program, strict=True):
            difference = _compare(theirs, mine, limit)
            error = difference.max_scaled_error
            worst = max(worst, _UNKNOWN_ERROR if difference.non_finite else error)
        return worst, limit

    def close(self) -> None:
        """Kill the child."""
        self.child.close()

    def _has_program(self, language: str) -> bool:
        return self.task.program is not None and self.task.program.language == language

    def _load(self) -> None:
        sources = {}
        if self.task.oracle is not None:
            sources["oracle"] = ("oracle", "oracle.py", self.task.oracle, "oracle")
        if self.task.program is not None and self._has_program("pytorch"):
            sources["reference"] = ("reference", "reference.py", self.task.program.source, "Model")
        for slot, (kind, name, text, symbol) in sources.items():
            path = self.folder / name
            path.write_text(text, encoding="utf-8")
            self._load_slot(
                slot, {"kind": kind, "entry": str(path), "name": symbol, "module": slot}
            )
        if self._has_program("c") and self.options.device == "cpu":
            assert self.task.program is not None
            timeout = self.options.timeouts.compile
            library = compile_reference(self.task.program, self.options.cache, timeout)
            job = {"kind": "launcher", "entry": str(library), "name": "reference", "module": ""}
            self._load_slot("c", {**job, "types": scalar_types(self.task)})

    def _load_slot(self, slot: str, job: dict[str, Any]) -> None:
        try:
            self.child.ask("load", self.options.timeouts.load, slot=slot, **job)
        except ChildFailed as error:
            raise _task_fault(error, slot, "") from None

    def _collect(
        self,
        slot: str,
        case: Case,
        answer: dict[str, Any],
        targets: list[dict[str, Any]],
        mode: str,
    ) -> tuple[torch.Tensor, ...]:
        told = answer["results"]
        if len(told) != len(self.task.results):
            raise _invalid(slot, case, f"returns {len(told)} results, not {len(self.task.results)}")
        collected = []
        for result, said, target in zip(self.task.results, told, targets, strict=True):
            wanted = (
                "float64" if result.dtype.is_floating and mode == "float64" else result.dtype.value
            )
            shape = evaluate_shape(result.shape, case.sizes)
            if said.get("dtype") != wanted or said.get("shape") != list(shape):
                got = f"{said.get('dtype', said['type'])}{said.get('shape', '')}"
                message = f"returns {result.name} as {got}, not {wanted}{list(shape)}"
                raise _invalid(slot, case, message)
            size = 8 if wanted == "float64" else SIZES[result.dtype]
            data = receive(Path(target["file"]), count(result, case) * size)
            if data is None:
                raise _invalid(slot, case, f"wrote no {result.name} of the right size")
            collected.append(view(data, wanted, shape).to(self.options.device))
        return tuple(collected)

    def _collect_c(self, case: Case, targets: list[dict[str, Any]]) -> tuple[torch.Tensor, ...]:
        collected = []
        for result, target in zip(self.task.results, targets, strict=True):
            data = receive(Path(target["file"]), target["bytes"] + 2 * GUARD)
            if data is None:
                raise _invalid("c", case, f"wrote no {result.name}")
            inner = data[GUARD : GUARD + target["bytes"]].clone()
            collected.append(view(inner, result.dtype, evaluate_shape(result.shape, case.sizes)))
        return tuple(collected)

    def _expect(self, case: Case) -> Expected:
        tensors = draw(self.task, case, self.options.device)
        decided = self.run(self.decider, case, tensors, "float64")
        native_slot = (
            "c" if self._has_program("c") and self.options.device == "cpu" else self.baseline
        )
        native = self.run(native_slot, case, tensors, "native")
        reduction = float(evaluate(self.task.tolerance.reduction, case.sizes))
        rtols, ratios = [], []
        for result, oracle, own in zip(self.task.results, decided, native, strict=True):
            if not result.dtype.is_floating:
                rtols.append(0.0)
                ratios.append(compare_exactly(own, oracle).max_scaled_error)
                continue
            difference = compare_floats(own, oracle, 1.0)
            error = _UNKNOWN_ERROR if difference.non_finite else difference.max_scaled_error
            rtol = relative_tolerance(result.dtype, reduction, error, self.task.allowed_precision)
            rtols.append(rtol)
            ratios.append(min(error / rtol, 1e9))
        return Expected(decided, tuple(rtols), tuple(ratios))

    def _forget(self) -> None:
        def held() -> int:
            return sum(
                t.numel() * t.element_size() for e in self._cache.values() for t in e.results
            )

        while len(self._cache) > 1 and held() > _CACHED_BYTES[self.options.device]:
            self._cache.popitem(last=False)


def _compare(result: torch.Tensor, oracle: torch.Tensor, rtol: float) -> Difference:
    if oracle.is_floating_point():
        return compare_floats(result, oracle, rtol)
    return compare_exactly(result, oracle)


def _invalid(slot: str, case: Case, message: str) -> Ended:
    rule = "task.oracle" if slot == "oracle" else "task.reference"
    found = finding(rule, f"{slot} {message}", where=case.workload.name)
    return Ended(Status.INVALID_TASK, Fault.TASK, found)


def _for_want_of_resources(error: ChildFailed) -> bool:
    match error:
        case ChildTimeout() | ChildDied(killed=True) | ChildError(kind="oom"):
            return True
    return False


def _task_fault(error: ChildFailed, slot: str, where: str) -> Ended:
    rule = "task.oracle" if slot == "oracle" else "task.reference"
    if _for_want_of_resources(error):
        found = finding(rule, f"{slot}: {last_line(str(error))[-200:]}", where=where)
        return Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
    text = str(error)
    died = isinstance(error, ChildDied)
    message = f"{slot}: the process {text}" if died else f"{slot}: {last_line(text)}"
    found = finding(rule, message, where=where, evidence=text)
    return Ended(Status.INVALID_TASK, Fault.TASK, found)
