"""What it suggests that a Python source imports, mentions or changes something."""

import re
from collections.abc import Iterator

from concur.validators.library_names import OPERATIONS, PYTHON_LIBRARIES, words
from concur.validators.screens_cuda import Hint

_IMPORTS: dict[str, tuple[str, frozenset[str]]] = {
    "screen.reference": (
        "which reaches objects of other code",
        words("gc inspect ctypes cffi dis reference oracle concur pyximport"),
    ),
    "screen.async": (
        "which runs beside the call",
        words("threading _thread concurrent multiprocessing asyncio sched"),
    ),
    "screen.host": (
        "which reaches outside the process",
        words("subprocess socket pty mmap fcntl signal resource shutil urllib http requests pip"),
    ),
    "screen.timing": ("which replaces parts of other modules", words("mock")),
}
_FRAMES = words(
    """
    f_back f_locals f_globals f_builtins f_code tb_frame gi_frame cr_frame __globals__ __code__
    __closure__ __subclasses__ _current_frames _getframe
    """
)
_HOST = re.compile(
    r"os\.(?:system|popen|exec\w+|spawn\w+|posix_spawn\w*|fork\w*|_exit|kill|killpg|abort|open|read"
    r"|pread|write|pwrite|dup2?|memfd_create|ptrace|putenv|unlink|rename|sched_\w+)"
    r"|torch\.(?:load|hub\.\w+|classes\.load_library|ops\.load_library|utils\.dlpack\.\w+)"
    r"|pickle\.loads?|_?posixsubprocess\.\w+|atexit\.register|numpy\.load|numpy\.memmap"
)
_READS = re.compile(
    r"builtins\.open|(?:_?io)\.open|os\.environ|os\.getenv|pathlib\.Path\(\)\.(?:open|read_\w+)"
)
_OPAQUE = re.compile(
    r"builtins\.(?:exec|eval|compile)|marshal\.loads?|base64\.\w*decode\w*|zlib\.decompress"
    r"|lzma\.decompress|bz2\.decompress|codecs\.decode|types\.(?:CodeType|FunctionType)"
)
_COMPILES = re.compile(r"torch\.(?:compile|jit\.\w+|_dynamo\.\w+|_inductor\.\w+|fx\.\w+)")
_COMPUTES = re.compile(
    r"torch\.(?:nn\.functional|ops\.aten|ops\.prims|ops\.quantized|ops\.cudnn|_C\._nn|linalg|fft"
    r"|special|_VF|_refs|_prims|sparse|nn\.modules)\.\w[\w.]*"
)
_LATE = re.compile(
    r"torch\.Tensor\._make_(?:wrapper_)?subclass|torch\.overrides\.\w+"
    r"|torch\.utils\._python_dispatch\.\w+|torch\.utils\._pytree\.\w+"
)
_GRAPHS = re.compile(r"torch\.cuda\.(?:CUDAGraph|graph|graphs\.\w+|make_graphed_callables)")
_STREAMS = re.compile(r"torch\.cuda\.(?:Stream|ExternalStream|stream|streams\.\w+)")


def import_hint(path: str, line: int) -> Iterator[Hint]:
    """Yield a hint where a module that is imported suggests something else than a kernel."""
    parts = path.split(".")
    for rule, (message, modules) in _IMPORTS.items():
        if parts[0] in modules or (parts[0] == "unittest" and "mock" in modules & set(parts)):
            yield Hint(rule, f"imports {path}, {message}", line)
    if parts[0] in PYTHON_LIBRARIES:
        yield Hint("screen.library-call", f"imports {parts[0]}, which brings kernels", line)


def meaning(path: str, line: int, running: bool, joined: bool) -> Iterator[Hint]:
    """Yield hints from what a name stands for.

    `running` says whether it is used outside constructors, where calls pass; `joined` whether the
    module waits for streams anywhere.
    """
    last = path.rpartition(".")[2]
    if _COMPILES.fullmatch(path):
        yield Hint("screen.library-call", f"uses {path}, which makes kernels itself", line)
    elif running and (_COMPUTES.fullmatch(path) or _is_operation(path, last)):
        yield Hint("screen.library-call", f"uses {path}", line)
    elif _LATE.fullmatch(path):
        yield Hint("screen.timing", f"uses {path}: tensors that compute late", line)
    elif _GRAPHS.fullmatch(path):
        yield Hint("screen.cache", f"uses {path}, which replays recorded work", line, "info")
    elif _STREAMS.fullmatch(path):
        message = f"uses {path}" + ("" if joined else ", and nothing waits for it")
        yield Hint("screen.async", message, line, "info" if joined else "warning")
    elif path in ("sys.modules", "sys._getframe", "sys.settrace", "sys.setprofile"):
        yield Hint("screen.reference", f"uses {path}, which reaches other code", line)
    elif _HOST.fullmatch(path):
        yield Hint("screen.host", f"uses {path}, which reaches outside the process", line)
    elif _READS.fullmatch(path):
        yield Hint("screen.host", f"uses {path}", line, "info")
    elif _OPAQUE.fullmatch(path):
        yield Hint("screen.opaque", f"uses {path}, which hides what runs", line, "info")
    elif path == "contextlib.suppress" and running:
        yield Hint("screen.fallback", "ignores errors by contextlib.suppress", line)
    elif running and (path.startswith("time.") or path == "torch.cuda.Event"):
        yield Hint("screen.timing", f"uses {path} during a call", line, "info")


def method_hint(attribute: str, line: int) -> Iterator[Hint]:
    """Yield a hint from an attribute that leads to frames or code of others, whatever it is of."""
    if attribute in _FRAMES:
        yield Hint("screen.reference", f"uses {attribute}, which reaches other code", line)


def patch_hint(path: str, attribute: str, line: int) -> Iterator[Hint]:
    """Yield a hint where an attribute of something imported is set or deleted."""
    if path and "()" not in path and not path.startswith("torch.backends"):
        yield Hint("screen.timing", f"changes {path}.{attribute}, which others use too", line)


def _is_operation(path: str, last: str) -> bool:
    if last not in OPERATIONS:
        return False
    return path in (f"torch.{last}", f"torch.Tensor.{last}", f"torch._C._VariableFunctions.{last}")
