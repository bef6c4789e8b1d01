"""The host of Python: modules of solutions and references, and oracles, run with PyTorch.

Arguments are views of the shared memory. The bytes of results are copied to their shadows straight
after the call, in the order of the default stream. What this answers is hearsay: the judge goes by
the shadows and by its own clock.
"""

import contextlib
import ctypes
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import profiler

from concur.validators.inside.memory import DriverError, Memory
from concur.validators.inside.results import Seen, Span, aliases, argument, listed, look, span
from concur.validators.inside.serve import Refused
from concur.validators.inside.stopwatch import Stopwatch
from concur.validators.inside.switches import Switches
from concur.validators.inside.weights import fill

_OUT_OF_MEMORY = 2
_MOST_KERNELS = 200
_C: Any = torch._C
_cuda: Any = torch.cuda
_profile, _CUDA = profiler.profile, profiler.ProfilerActivity.CUDA
_compile = torch.compile
_wait_for_device = getattr(_C, "_cuda_synchronize", None)
_empty_cache = getattr(_C, "_cuda_emptyCache", None)

_Call = Callable[[], Any]


@dataclass(frozen=True)
class _Slot:
    """What was loaded: a module's class (module, reference) or a function (oracle)."""

    kind: str
    loaded: Any
    compiled: bool


class Server:
    """What was loaded, and the commands on it. Every command raises whatever foreign code does."""

    def __init__(self, memory: Memory, settings: dict[str, Any]) -> None:
        """Take the shared memory; `settings` gives `tf32`, `threads` and `torch_seed`."""
        self._memory = memory
        self._home = Path.cwd()
        torch.set_num_threads(settings["threads"])
        if memory.device == "cuda":
            _cuda.init()
        torch.manual_seed(settings["torch_seed"])
        self._switches = Switches(settings["tf32"])
        self._stopwatch = Stopwatch(memory.driver) if memory.driver is not None else None
        self._last_error = _last_error_reader() if memory.device == "cuda" else None
        self._intercepted = False
        self._slots: dict[str, _Slot] = {}
        self._models: dict[tuple[str, str, str], tuple[Any, Callable[..., Any]]] = {}
        self._held: list[tuple[str, Seen]] = []

    def arena(self, job: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Map the memory that comes with the command."""
        self._memory.attach(descriptors[0], job["size"])
        return {}

    def load(self, job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Write the sources into the private folder and import the entry from there.

        `compiled` has the modules of a slot run through `torch.compile`. Raises Refused (symbol)
        where the entry does not define the name that is asked for.
        """
        folder = self._home / job["slot"]
        for file in job["files"]:
            path = folder / PurePosixPath(file["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["content"], encoding="utf-8")
        if job["kind"] == "module" and not self._intercepted:
            # Late, since it imports much that references have no use for.
            from concur.validators.inside import builds

            builds.intercept()
            self._intercepted = True
        spec = importlib.util.spec_from_file_location(job["module"], folder / job["entry"])
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[job["module"]] = module
        try:
            spec.loader.exec_module(module)
        finally:
            changed = self._switches.restore_stream() + self._switches.restore()
        if not hasattr(module, job["name"]):
            raise Refused("symbol", f"{job['module']} defines no {job['name']!r}")
        self._models = {k: m for k, m in self._models.items() if k[0] != job["slot"]}
        self._slots[job["slot"]] = _Slot(
            job["kind"], getattr(module, job["name"]), job.get("compiled", False)
        )
        return {"notes": [f"flag: {name}" for name in changed]}

    def call(self, job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Call once. Results that are what was declared are copied to their shadows."""
        with self._checked() as notes:
            arguments = self._arguments(job)
            call, guesses = self._prepare(job, arguments)
            watch = self._stopwatch
            if watch is not None:
                watch.start(job["fills"])
            returned = call()
            if watch is not None:
                watch.stop()
            told = self._record(job, returned, arguments, notes)
            spent = watch.microseconds() if watch is not None else None
        return {
            "us": spent,
            "results": told,
            "notes": guesses + notes,
            "type": str(type(returned).__name__)[:80],
        }

    def recopy(self, job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Copy the results of the last call with `hold` to their shadows once more."""
        held = [look(seen.thing) for _, seen in self._held]
        for seen, target in zip(held, job["results"], strict=False):
            seen.copy(self._memory, target)
        self._memory.synchronize()
        return {"results": [seen.told for seen in held]}

    def profile(self, job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Call once as `call` does, and add `kernels`: pairs of a kernel's name and its time.

        Times are in microseconds, summed over a name, the longest first; there are none on a CPU.
        """
        with self._checked() as notes:
            arguments = self._arguments(job)
            call, guesses = self._prepare(job, arguments)
            kernels: list[tuple[str, float]] = []
            if _wait_for_device is not None and self._memory.device == "cuda":
                _wait_for_device()
                with _profile(activities=[_CUDA]) as recorder:
                    returned = call()
                    _wait_for_device()
                kernels = _kernels(recorder)
            else:
                returned = call()
            told = self._record(job, returned, arguments, notes)
        return {"kernels": kernels, "results": told, "notes": guesses + notes, "us": None}

    def release(self, _job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Give memory back that is kept for later calls, since others share the device."""
        self._release()
        return {}

    def free(self, _job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Let go of every module and tensor that is held."""
        self._models, self._held = {}, []
        if self._stopwatch is not None:
            self._stopwatch.free()
        self._release()
        return {}

    @contextlib.contextmanager
    def _checked(self) -> Iterator[list[str]]:
        """Put switches back afterwards, and give a shortage of memory its name.

        Yields a list that notes on changed switches are added to.
        """
        notes: list[str] = []
        try:
            yield notes
        except DriverError as error:
            if error.code == _OUT_OF_MEMORY:
                raise Refused("oom", str(error)) from None
            raise
        finally:
            changed = self._switches.restore_stream() + self._switches.restore()
            notes += [f"flag: {name}" for name in changed]

    def _arguments(self, job: dict[str, Any]) -> dict[str, torch.Tensor]:
        wide = job["mode"] == "float64"
        return {a["name"]: argument(self._memory, a, wide=wide) for a in job["args"]}

    def _prepare(
        self, job: dict[str, Any], arguments: dict[str, torch.Tensor]
    ) -> tuple[_Call, list[str]]:
        """Return the call, and notes on how parameters were matched."""
        slot = self._slots[job["slot"]]
        if slot.kind == "oracle":
            return lambda: slot.loaded(**arguments, **job["keywords"]), []
        key = (job["slot"], job["mode"], job["model"])
        fresh = key not in self._models
        model, run = self._build(slot, job) if fresh else self._models[key]
        notes: list[str] = []
        if fresh or job["parameters"] == "set":
            names = [a["name"] for a in job["args"] if a["role"] == "parameter"]
            notes = fill(model, {name: arguments[name] for name in names})
        self._models[key] = (model, run)
        inputs = [arguments[a["name"]] for a in job["args"] if a["role"] == "input"]
        return lambda: run(*inputs, *job["extra"]), notes

    def _build(self, slot: _Slot, job: dict[str, Any]) -> tuple[Any, Callable[..., Any]]:
        """Return a new module and what is to be called in its place."""
        model = slot.loaded(*job["constructor"]).to(self._memory.device).eval()
        model = model.double() if job["mode"] == "float64" else model
        return model, _compile(model) if slot.compiled else model

    def _record(
        self,
        job: dict[str, Any],
        returned: Any,
        arguments: dict[str, torch.Tensor],
        notes: list[str],
    ) -> list[dict[str, Any]]:
        """Copy results to their shadows, wait, and return what is told about each."""
        notes += [f"flag: {name}" for name in self._switches.restore_stream()]
        seen = [look(thing) for thing in listed(returned)]
        for one, target in zip(seen, job["results"], strict=False):
            one.copy(self._memory, target)
        self._memory.synchronize()
        if self._last_error is not None and self._slots[job["slot"]].kind == "module":
            self._last_error()
        names = [r["name"] for r in job["results"]] + [""] * len(seen)
        named = list(zip(names, seen, strict=False))
        others: list[tuple[str, Span | None]] = [
            (f"argument {name}", span(tensor)) for name, tensor in arguments.items()
        ]
        others += [(f"held result {name}", one.span) for name, one in self._held]
        for name, one in named:
            if one.span is not None:
                one.told["aliases"] = aliases(one, others)
                others.append((f"result {name}", one.span))
            one.copied = None
        if job["hold"]:
            self._held = named
        return [one.told for one in seen]

    def _release(self) -> None:
        """Give back what PyTorch keeps in reserve: others share the device."""
        if _empty_cache is not None and self._memory.device == "cuda":
            # After an error of CUDA this fails too, which has been told already.
            with contextlib.suppress(RuntimeError):
                _empty_cache()


def _kernels(recorder: Any) -> list[tuple[str, float]]:
    spent: dict[str, float] = {}
    for event in recorder.events() or []:
        if str(event.device_type).endswith("CUDA"):
            spent[event.name] = spent.get(event.name, 0.0) + float(event.time_range.elapsed_us())
    return sorted(spent.items(), key=lambda pair: -pair[1])[:_MOST_KERNELS]


def _last_error_reader() -> Callable[[], None] | None:
    """Return a function that raises Refused where PyTorch's runtime holds an error of CUDA."""
    try:
        runtime: Any = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).split('.')[0]}")
        peek, describe = runtime.cudaPeekAtLastError, runtime.cudaGetErrorString
    except (OSError, AttributeError):
        return None
    describe.restype = ctypes.c_char_p

    def read() -> None:
        code = peek()
        if code != 0:
            text = (describe(code) or b"").decode(errors="replace")
            raise Refused("returned", f"CUDA error {code} ({text}) was left behind")

    return read
