"""The program that runs code nobody trusts: started alone, it serves one judge over two pipes.

It imports the standard library and torch only. `python -I child.py SETTINGS` takes commands, one
JSON object a line, and answers each with one JSON line that repeats the command's nonce. Tensors
travel as raw bytes in files of its private folder. Whatever it answers is hearsay, since the code
that it loads shares its memory: the judge reads the result files itself.
"""

import contextlib
import ctypes
import importlib.util
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {}
LAYERS: list[str] = []

GUARD = 256
"""Guard bytes on each side of a buffer; a multiple of every alignment that CUDA promises."""

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_MAX_FILE = 32 << 30


def isolate() -> list[str]:
    """Give up what is not needed, before anything foreign is loaded. Returns the layers."""
    layers = ["own session", "emptied environment", "private folder"]
    for what, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 4096),
        (resource.RLIMIT_FSIZE, _MAX_FILE),
    ):
        hard = resource.getrlimit(what)[1]
        value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (value, value))
    layers.append("resource limits")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        layers.append("no new privileges")
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        layers.append("user and network namespace")
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    # Last: a change of credentials resets it.
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return layers


if __name__ == "__main__":
    # Before the import of torch: it starts threads, and a process with threads can enter no
    # user namespace.
    SETTINGS = json.loads(sys.argv[1])
    LAYERS = isolate()
    sys.path.extend(p for p in SETTINGS["paths"] if p not in sys.path)

import torch  # noqa: E402


class Refused(Exception):
    """A fault that has a name of its own: its kind goes into the answer."""

    def __init__(self, kind: str, text: str) -> None:
        """Take the kind and a sentence."""
        super().__init__(text)
        self.kind = kind


class Buffer:
    """Bytes on the device between two guards; `data` is what foreign code may touch."""

    def __init__(self, size: int, device: str, guard: int) -> None:
        """Allocate `size` bytes with guards of the byte value `guard`."""
        self.guard = guard
        self.whole = torch.empty(size + 2 * GUARD, dtype=torch.uint8, device=device)
        self.data = self.whole[GUARD : GUARD + size]

    def poison(self) -> None:
        """Set the guards, and every byte between them to 0xFF (NaN in every floating type)."""
        self.whole.fill_(self.guard)
        self.data.fill_(0xFF)

    def fill(self, source: torch.Tensor) -> None:
        """Set the guards, and the bytes between them to `source`."""
        self.whole.fill_(self.guard)
        self.data.copy_(source)


_Call = Callable[[dict[str, torch.Tensor]], Any]


class Server:
    """What was loaded, and the commands on it."""

    def __init__(self, device: str) -> None:
        """Work on `device`, cpu or cuda."""
        self.device = device
        self.kind = ""
        self.loaded: Any = None
        self.slots: dict[str, tuple[str, Any]] = {}
        self.kept: dict[str, Buffer] = {}
        self.held: dict[str, torch.Tensor] = {}
        self.model: Any = None
        self.rings: dict[str, tuple[str, _Call, list[dict[str, torch.Tensor]]]] = {}

    def load(self, job: dict[str, Any]) -> dict[str, Any]:
        """Load the entry file: a library with a launcher, or a Python file."""
        if job["kind"] == "launcher":
            library = ctypes.CDLL(job["entry"])
            try:
                function = getattr(library, job["name"])
            except AttributeError:
                raise Refused("symbol", f"the library has no symbol {job['name']!r}") from None
            function.argtypes = [_CTYPES[t] for t in job["types"]]
            function.restype = ctypes.c_int
            self.slots[job["slot"]] = ("launcher", function)
            return {}
        spec = importlib.util.spec_from_file_location(job["module"], job["entry"])
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[job["module"]] = module
        spec.loader.exec_module(module)
        if not hasattr(module, job["name"]):
            raise Refused("symbol", f"{job['module']} defines no {job['name']!r}")
        self.slots[job["slot"]] = (job["kind"], getattr(module, job["name"]))
        return {}

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Call once on the given input files; write results to the given files."""
        self.kind, self.loaded = self.slots[job["slot"]]
        if self.kind == "launcher":
            return self._run_launcher(job)
        inputs = self._read(job)
        if job["reuse"] and self.held:
            for name, tensor in inputs.items():
                self.held[name].copy_(tensor)
            inputs = self.held
        else:
            self.model = None
        self.held = inputs if job["reuse"] else {}
        call, notes = self._prepare(job, inputs)
        pristine = {n: t.clone() for n, t in inputs.items()} if self.kind == "module" else {}
        results = call(inputs)
        self._synchronize()
        mutated = [n for n, t in pristine.items() if not _same_bytes(t, inputs[n])]
        plain = list(results) if isinstance(results, tuple | list) else [results]
        told = [_describe(r, job["results"], inputs) for r in plain]
        for result, target in zip(plain, job["results"], strict=False):
            if isinstance(result, torch.Tensor):
                _write(target["file"], result.detach().contiguous())
        return {"results": told, "mutated": mutated, "notes": notes, "type": type(results).__name__}

    def _run_launcher(self, job: dict[str, Any]) -> dict[str, Any]:
        guard, reuse = job["guard"], job["reuse"]
        if not reuse:
            self.kept = {}
        for item in (*job["args"], *job["results"]):
            old = self.kept.get(item["name"])
            if old is None or old.data.numel() != item["bytes"]:
                self.kept[item["name"]] = Buffer(item["bytes"], self.device, guard)
        for argument in job["args"]:
            self.kept[argument["name"]].fill(_bytes_of(argument))
        for result in job["results"]:
            self.kept[result["name"]].poison()
        before = {a["name"]: self.kept[a["name"]].whole.clone() for a in job["args"]}
        self._synchronize()
        self._launch(job, {n: b.data for n, b in self.kept.items()})
        self._synchronize()
        mutated = [n for n, b in before.items() if not torch.equal(b, self.kept[n].whole)]
        for result in job["results"]:
            _write(result["file"], self.kept[result["name"]].whole)
        if not reuse:
            self.kept = {}
        return {"results": [], "mutated": mutated, "notes": [], "type": "launcher"}

    def _launch(self, job: dict[str, Any], buffers: dict[str, torch.Tensor]) -> None:
        stream = torch.cuda.current_stream().cuda_stream if self.device == "cuda" else None
        pointers = [buffers[i["name"]].data_ptr() for i in (*job["args"], *job["results"])]
        code = self.loaded(*pointers, *job["scalars"], stream)
        if code == 2 and self.device == "cuda":
            raise Refused("oom", "the launcher returned 2 (cudaErrorMemoryAllocation)")
        if code != 0:
            raise Refused(
                "returned", f"the launcher returned {code}{_cuda_text(self.device, code)}"
            )

    def _read(self, job: dict[str, Any]) -> dict[str, torch.Tensor]:
        tensors = {}
        for item in job["args"]:
            mapped = _bytes_of(item).view(getattr(torch, item["dtype"])).reshape(item["shape"])
            tensor = mapped.clone() if self.device == "cpu" else mapped.to(self.device)
            if job["mode"] == "float64" and tensor.is_floating_point():
                tensor = tensor.double()
            tensors[item["name"]] = tensor
        return tensors

    def _prepare(
        self, job: dict[str, Any], tensors: dict[str, torch.Tensor]
    ) -> tuple[_Call, list[str]]:
        """Return a function of the inputs; a module gets its parameters from `tensors` here."""
        if self.kind == "oracle":
            return lambda t: self.loaded(**t, **job["keywords"]), []
        if self.model is None:
            self.model = self.loaded(*job["constructor"]).to(self.device).eval()
        if job["mode"] == "float64":
            self.model.double()
        parameters = [a["name"] for a in job["args"] if a["role"] == "parameter"]
        names = [a["name"] for a in job["args"] if a["role"] == "input"]
        notes = _fill(self.model, {n: tensors[n] for n in parameters})
        model = self.model
        return lambda t: model(*(t[n] for n in names), *job["extra"]), notes

    def prepare(self, job: dict[str, Any]) -> dict[str, Any]:
        """Hold a ring of input sets, by name, that `time` and `profile` call with."""
        self.kind, self.loaded = self.slots[job["slot"]]
        self.kept, self.held, self.model = {}, {}, None
        sets = [self._read({**job, "args": args}) for args in job["sets"]]
        call: _Call
        if self.kind == "launcher":
            call = lambda t: self._launch(job, t)  # noqa: E731
        else:
            call, _ = self._prepare({**job, "args": job["sets"][0]}, sets[0])
        self.model = None
        self.rings[job["ring"]] = (self.kind, call, sets)
        _release(self.device)
        return {}

    def _timed_inputs(self, job: dict[str, Any], index: int) -> dict[str, torch.Tensor]:
        kind, _, sets = self.rings[job["ring"]]
        inputs = {n: t.clone() for n, t in sets[index % len(sets)].items()}
        if kind == "launcher":
            for item in job["results"]:
                buffer = Buffer(item["bytes"], self.device, job["guard"])
                buffer.poison()
                inputs[item["name"]] = buffer.data
        return inputs

    def time(self, job: dict[str, Any]) -> dict[str, Any]:
        """Time single calls with CUDA events, in microseconds, after `warm_s` seconds of calls."""
        _, call, _ = self.rings[job["ring"]]
        size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
        flush = torch.empty(max(size, 64 << 20), dtype=torch.uint8, device="cuda")
        event: Any = torch.cuda.Event
        times: list[float] = []
        deadline, index = time.monotonic() + job["warm_s"], job["first"]
        while len(times) < job["calls"]:
            warming = time.monotonic() < deadline and not times
            inputs = self._timed_inputs(job, index)
            begin, end = (event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            # The flush also keeps the device busy while the host queues what is timed, so that
            # the interval holds no idle time of the device between the event and the first kernel.
            flush.fill_(index & 0xFF)
            flush.fill_((index + 1) & 0xFF)
            begin.record()
            results = call(inputs)
            end.record()
            torch.cuda.synchronize()
            if warming:
                continue
            times.append(begin.elapsed_time(end) * 1000.0)
            if len(times) == job["keep"] + 1:
                self._keep(job, inputs, results)
            index += 1
            del inputs, results
        self._synchronize()
        return {"times": times}

    def _synchronize(self) -> None:
        """Wait for the device; look for an error that a module left in PyTorch's runtime.

        A launcher is linked with a runtime of its own, whose last error only it can return.
        """
        if self.device == "cuda":
            torch.cuda.synchronize()
            if self.kind in ("launcher", "module"):
                _check_last_error()

    def _keep(self, job: dict[str, Any], inputs: dict[str, torch.Tensor], results: Any) -> None:
        plain = list(results) if isinstance(results, tuple | list) else [results]
        for position, target in enumerate(job["results"]):
            tensor = inputs[target["name"]] if self.kind == "launcher" else plain[position]
            _write(target["file"], tensor.detach().contiguous())

    def profile(self, job: dict[str, Any]) -> dict[str, Any]:
        """Profile one call on the first set. Returns pairs of kernel name and microseconds."""
        from torch.profiler import ProfilerActivity, profile

        _, call, _ = self.rings[job["ring"]]
        inputs = self._timed_inputs(job, 0)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as recorder:
            results = call(inputs)
            torch.cuda.synchronize()
        del results
        kernels: dict[str, float] = {}
        for event in recorder.events() or []:
            if str(event.device_type).endswith("CUDA"):
                spent = float(event.time_range.elapsed_us())
                kernels[event.name] = kernels.get(event.name, 0.0) + spent
        return {"kernels": sorted(kernels.items(), key=lambda k: -k[1])[:200]}

    def health(self, _job: dict[str, Any]) -> dict[str, Any]:
        """Compute a sum that the judge knows."""
        numbers = torch.arange(1 << 20, dtype=torch.float64, device=self.device)
        return {"sum": float((2 * numbers).sum())}

    def free(self, _job: dict[str, Any]) -> dict[str, Any]:
        """Let go of every tensor that is still held."""
        self.kept, self.held, self.rings, self.model = {}, {}, {}, None
        _release(self.device)
        return {}


_CTYPES: dict[str, Any] = {
    "pointer": ctypes.c_void_p,
    "int64": ctypes.c_int64,
    "double": ctypes.c_double,
}


def _bytes_of(item: dict[str, Any]) -> torch.Tensor:
    return torch.from_file(item["file"], shared=False, size=item["bytes"], dtype=torch.uint8)


def _write(path: str, tensor: torch.Tensor) -> None:
    data: Any = tensor.reshape(-1).view(torch.uint8).cpu().numpy()
    with open(path, "wb") as file:  # noqa: PTH123 (a write of a buffer, not of text)
        file.write(memoryview(data))


def _same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(*(t.contiguous().reshape(-1).view(torch.uint8) for t in (a, b)))


def _describe(result: Any, targets: Any, inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    if not isinstance(result, torch.Tensor):
        return {"type": type(result).__name__}
    storages = {t.untyped_storage().data_ptr() for t in inputs.values()}
    return {
        "type": type(result).__name__,
        "dtype": str(result.dtype).removeprefix("torch."),
        "shape": list(result.shape),
        "device": result.device.type,
        "aliases": result.untyped_storage().data_ptr() in storages,
    }


def _fill(model: Any, parameters: dict[str, torch.Tensor]) -> list[str]:
    """Set parameters by state_dict name, else by unique shape. Returns notes on guesses."""
    state = {k.replace(".", "_"): k for k in model.state_dict()}
    shapes = {k: tuple(v.shape) for k, v in model.state_dict().items()}
    targets: dict[str, str] = {}
    for name, value in parameters.items():
        if name in state and shapes[state[name]] == tuple(value.shape):
            targets[name] = state[name]
    notes = []
    for name in parameters.keys() - targets.keys():
        shape = tuple(parameters[name].shape)
        free = [k for k in shapes if k not in targets.values() and shapes[k] == shape]
        rivals = [n for n in parameters if n not in targets and tuple(parameters[n].shape) == shape]
        if len(free) != 1 or len(rivals) != 1:
            held = ", ".join(f"{k}{list(s)}" for k, s in shapes.items()) or "nothing"
            raise Refused(
                "structure", f"no parameter {name!r} of shape {list(shape)}; it has {held}"
            )
        targets[name] = free[0]
        notes.append(f"parameter {name!r} was matched with {free[0]!r} by its shape")
    extra = {k for k, _ in model.named_parameters()} - set(targets.values())
    if extra:
        raise Refused("structure", f"parameters that the task does not declare: {sorted(extra)}")
    for name, key in targets.items():
        owner, _, leaf = key.rpartition(".")
        module = model.get_submodule(owner)
        if leaf in module._parameters:
            module._parameters[leaf].data = parameters[name]
        else:
            module._buffers[leaf] = parameters[name]
    return notes


def _check_last_error() -> None:
    with contextlib.suppress(OSError, AttributeError):
        runtime = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).split('.')[0]}")
        code = runtime.cudaPeekAtLastError()
        if code != 0:
            raise Refused(
                "returned", f"CUDA error {code}{_cuda_text('cuda', code)} was left behind"
            )


def _cuda_text(device: str, code: int) -> str:
    if device != "cuda":
        return ""
    with contextlib.suppress(RuntimeError, TypeError, ValueError):
        runtime: Any = torch.cuda
        library = runtime.cudart()
        return f" ({library.cudaGetErrorString(library.cudaError(code))})"
    return " (a cudaError_t)"


def _release(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def _release_quietly(device: str) -> None:
    # Others share the device. After a CUDA error this fails too, which has been told already.
    with contextlib.suppress(RuntimeError):
        _release(device)


def _failure(error: BaseException) -> dict[str, str]:
    text = "".join(traceback.format_exception(error))
    if isinstance(error, Refused):
        return {"kind": error.kind, "text": str(error)}
    lacking = isinstance(error, torch.cuda.OutOfMemoryError | MemoryError)
    # Other allocators of PyTorch and its libraries raise a plain RuntimeError.
    if lacking or re.search("_ALLOC_FAILED|can't allocate memory", str(error)):
        return {"kind": "oom", "text": text[-2000:]}
    return {"kind": "exception", "text": text[-16000:], "type": type(error).__name__}


def main() -> None:
    """Serve the judge until it closes the pipe."""
    settings = SETTINGS
    torch.set_num_threads(settings["threads"])
    torch.set_grad_enabled(False)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = settings["tf32"]
    torch.manual_seed(settings["torch_seed"])
    server = Server(settings["device"])
    commands = os.fdopen(settings["commands"], "rb")
    replies = os.fdopen(settings["replies"], "wb", buffering=0)
    replies.write(json.dumps({"nonce": settings["nonce"], "layers": LAYERS}).encode() + b"\n")
    for line in commands:
        job = json.loads(line)
        answer: dict[str, Any]
        try:
            with torch.no_grad():
                answer = getattr(server, job["do"])(job)
        except BaseException as error:  # noqa: BLE001 (foreign code may raise anything at all)
            answer = {"error": _failure(error)}
        if job["do"] == "run":
            _release_quietly(server.device)
        replies.write(json.dumps({"nonce": job["nonce"], **answer}).encode() + b"\n")
    os._exit(0)  # tearing torch down takes most of a second, and foreign exit handlers may wait


if __name__ == "__main__":
    main()
