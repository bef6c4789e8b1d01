"""The trusted side of a task: oracle and program, run in children of their own.

They are contributors' code: the judge does not import them either, and checks what they return.
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from concur.schemas.expressions import evaluate, evaluate_shape
from concur.schemas.task import Task
from concur.schemas.verdict import Fault, Status
from concur.validators.abi import scalar_types
from concur.validators.arena import sealed
from concur.validators.calls import Called, Request
from concur.validators.compare import Difference, compare_exactly, compare_floats
from concur.validators.compile import compile_reference
from concur.validators.draw import Case, draw
from concur.validators.ended import Ended, finding
from concur.validators.helper import Helper, Loads
from concur.validators.options import JudgeOptions
from concur.validators.process import Child, ChildSettings
from concur.validators.tolerance import agreement_tolerance, relative_tolerance

_CACHED_BYTES = {"cpu": 1 << 30, "cuda": 4 << 30}
_MOST_CACHED = 8
_UNKNOWN_ERROR = float("inf")
_THREADS = 2


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
    """The children of one task. Every method raises Ended when the task is at fault."""

    def __init__(self, task: Task, options: JudgeOptions) -> None:
        """Start the child of oracle and program and load them; a C program's starts when needed."""
        self.task, self.options = task, options
        self._cache: OrderedDict[tuple[str, str, int], Expected] = OrderedDict()
        self._weights: dict[str, tuple[int, int]] = {}
        tf32 = "tf32" in task.allowed_precision
        settings = ChildSettings("torch", options.device, tf32=tf32, threads=_THREADS)
        self._python = Helper(settings, options, self._python_loads())
        library = {"c": self._load_library}
        self._launcher = Helper(ChildSettings("launcher", options.device), options, library)
        self._library = b""
        try:
            self._python.start()
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
        """Return what a case must give, from memory where it was one of the last asked for."""
        key = (case.workload.name, case.label, case.seed)
        if key not in self._cache:
            tensors = draw(self.task, case, self.options.device)
            self._cache[key] = self.expected_of(case, tensors)
            self._forget()
        self._cache.move_to_end(key)
        return self._cache[key]

    def expected_of(self, case: Case, tensors: dict[str, torch.Tensor]) -> Expected:
        """Return what given arguments must give in a case. Nothing is kept."""
        decided = self.run(self.decider, case, tensors, "float64")
        in_c = self._has_program("c") and self.options.device == "cpu"
        native = self.run("c" if in_c else self.baseline, case, tensors, "native")
        reduction = float(evaluate(self.task.tolerance.reduction, case.sizes))
        rtols, ratios = [], []
        for result, oracle, own in zip(self.task.results, decided, native, strict=True):
            if not result.dtype.is_floating:
                rtols.append(0.0)
                # Like a solution's: above 1 is wrong.
                ratios.append(2.0 if compare_exactly(own, oracle).wrong else 0.0)
                continue
            difference = compare_floats(own, oracle, 1.0)
            error = _UNKNOWN_ERROR if difference.wrong else difference.max_scaled_error
            rtol = relative_tolerance(result.dtype, reduction, error, self.task.allowed_precision)
            rtols.append(rtol)
            ratios.append(min(error / rtol, 1e9))
        return Expected(decided, tuple(rtols), tuple(ratios))

    def run(
        self,
        slot: str,
        case: Case,
        tensors: dict[str, torch.Tensor],
        mode: Literal["native", "float64"],
    ) -> tuple[torch.Tensor, ...]:
        """Return the results of one slot: oracle, reference, or c (native only)."""
        helper = self._launcher if slot == "c" else self._python
        self._weights.pop(f"{slot}/{mode}/{case.workload.name}", None)
        called = helper.call(Request(self.task, case, tensors, slot, mode=mode))
        if slot != "c":
            helper.ask("release", slot)
        if slot == "c":
            if called.overwritten:
                raise _invalid(slot, case, f"writes outside its results: {called.overwritten[0]}")
        else:
            self._check_told(slot, case, called, mode)
        return tuple(called.results)

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

    def timed(
        self, case: Case, tensors: dict[str, torch.Tensor], layout: int, guard: int
    ) -> Called:
        """Return one timed call of the baseline.

        Parameters are set by the first call of a workload's drawing of them, and kept from then on.
        """
        slot = self.baseline
        key = f"{slot}/native/{case.workload.name}"
        known = self._weights.get(key) == (case.parameter_seed, self._python.starts)
        request = Request(
            self.task,
            case,
            tensors,
            slot,
            layout=layout,
            guard=guard,
            lead="long",
            parameters="keep" if known else "set",
        )
        # Should the child be started again meanwhile, it sets the parameters all the same.
        called = self._python.call(request)
        self._weights[key] = (case.parameter_seed, self._python.starts)
        return called

    def free(self) -> None:
        """Let the child let go of modules and of what it holds for timing."""
        self._weights.clear()
        self._python.ask("free", self.baseline)

    def close(self) -> None:
        """Kill the children. May be called again."""
        self._python.close()
        self._launcher.close()

    def _has_program(self, language: str) -> bool:
        return self.task.program is not None and self.task.program.language == language

    def _python_loads(self) -> Loads:
        loads: dict[str, Callable[[Child], None]] = {}
        if self.task.oracle is not None:
            loads["oracle"] = self._loader("oracle", self.task.oracle, "oracle")
        if self.task.program is not None and self._has_program("pytorch"):
            loads["reference"] = self._loader("reference", self.task.program.source, "Model")
        return loads

    def _loader(self, slot: str, text: str, name: str) -> Callable[[Child], None]:
        entry = f"{slot}.py"
        job: dict[str, Any] = {"kind": slot, "name": name, "module": slot, "entry": entry}
        job["files"] = [{"path": entry, "content": text}]
        timeout = self.options.timeouts.load

        def load(child: Child) -> None:
            child.ask("load", timeout, slot=slot, **job)

        return load

    def _load_library(self, child: Child) -> None:
        assert self.task.program is not None
        limits = self.options.timeouts
        if not self._library:
            cache = self.options.cache
            self._library = compile_reference(self.task.program, cache, limits.compile)
        descriptor = sealed(self._library)
        job = {"kind": "launcher", "name": "reference", "types": scalar_types(self.task)}
        try:
            child.ask("load", limits.load, descriptors=(descriptor,), slot="c", **job)
        finally:
            os.close(descriptor)

    def _check_told(self, slot: str, case: Case, called: Called, mode: str) -> None:
        told = called.answer["results"]
        if len(told) != len(self.task.results):
            raise _invalid(slot, case, f"returns {len(told)} results, not {len(self.task.results)}")
        for result, said in zip(self.task.results, told, strict=True):
            wide = result.dtype.is_floating and mode == "float64"
            wanted = "float64" if wide else result.dtype.value
            shape = list(evaluate_shape(result.shape, case.sizes))
            if said.get("dtype") != wanted or said.get("shape") != shape:
                got = f"{said.get('dtype', said.get('type'))}{said.get('shape', '')}"
                message = f"returns {result.name} as {got}, not {wanted}{shape}"
                raise _invalid(slot, case, message)
            if said.get("device") != self.options.device:
                raise _invalid(slot, case, f"returns {result.name} on {said.get('device')}")

    def _forget(self) -> None:
        def held() -> int:
            return sum(
                t.numel() * t.element_size() for e in self._cache.values() for t in e.results
            )

        most = _CACHED_BYTES[self.options.device]
        while len(self._cache) > 1 and (held() > most or len(self._cache) > _MOST_CACHED):
            self._cache.popitem(last=False)


def _compare(result: torch.Tensor, oracle: torch.Tensor, rtol: float) -> Difference:
    if oracle.is_floating_point():
        return compare_floats(result, oracle, rtol)
    return compare_exactly(result, oracle)


def _invalid(slot: str, case: Case, message: str) -> Ended:
    rule = "task.oracle" if slot == "oracle" else "task.reference"
    found = finding(rule, f"{slot} {message}", where=case.workload.name)
    return Ended(Status.INVALID_TASK, Fault.TASK, found)
