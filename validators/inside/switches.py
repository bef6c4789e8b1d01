"""PyTorch's global switches: set once, read and put back after foreign code has run.

The functions are taken when this is imported, before anything foreign is there. A switch that
foreign code left changed would else last into the next call, and hide what a result is due to.
"""

from collections.abc import Callable
from typing import Any

import torch

_C: Any = torch._C
_cuda: Any = torch.cuda
_OPERATIONS = (
    ("generic", "all"),
    *(("cuda", operation) for operation in ("all", "matmul", "conv", "rnn")),
)

# By name: how it is read, and how a value that was read is set again.
_PLAIN: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "grad mode": (_C.is_grad_enabled, _C._set_grad_enabled),
    "default dtype": (torch.get_default_dtype, _C._set_default_dtype),
    "cudnn.enabled": (_C._get_cudnn_enabled, _C._set_cudnn_enabled),
    "cudnn.benchmark": (_C._get_cudnn_benchmark, _C._set_cudnn_benchmark),
    "cudnn.deterministic": (_C._get_cudnn_deterministic, _C._set_cudnn_deterministic),
    "deterministic algorithms": (
        _C._get_deterministic_algorithms,
        _C._set_deterministic_algorithms,
    ),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
}
# These take what they give: one value, or several in newer versions.
_SEVERAL: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
    "fp16 reduced precision": (
        _C._get_cublas_allow_fp16_reduced_precision_reduction,
        _C._set_cublas_allow_fp16_reduced_precision_reduction,
    ),
    "bf16 reduced precision": (
        _C._get_cublas_allow_bf16_reduced_precision_reduction,
        _C._set_cublas_allow_bf16_reduced_precision_reduction,
    ),
}
_PRECISION: dict[str, Callable[[], Any]] = {
    "tf32 of matmul": _C._get_cublas_allow_tf32,
    "tf32 of cudnn": _C._get_cudnn_allow_tf32,
    "matmul precision": _C._get_float32_matmul_precision,
}
_MODES: dict[str, Callable[[], int]] = {
    "torch function modes": _C._len_torch_function_stack,
    "torch dispatch modes": _C._len_torch_dispatch_stack,
}
_set_matmul_precision, _set_cudnn_tf32 = _C._set_float32_matmul_precision, _C._set_cudnn_allow_tf32
_set_precision = getattr(_C, "_set_fp32_precision_setter", None)
_get_stream = getattr(_C, "_cuda_getCurrentStream", None)
_set_stream = getattr(_C, "_cuda_setStream", None)
_MIXED = "set in two ways"


class Switches:
    """The values that every call begins with."""

    def __init__(self, tf32: bool) -> None:
        """Set them: no gradients, TF32 as told, all others as PyTorch has them."""
        self._tf32 = tf32
        _C._set_grad_enabled(False)
        self._set_precision()
        self._plain = {name: read() for name, (read, _) in _PLAIN.items()}
        self._several = {name: read() for name, (read, _) in _SEVERAL.items()}
        self._precision = {name: _read(read) for name, read in _PRECISION.items()}
        self._modes = {name: read() for name, read in _MODES.items()}
        self._stream = _get_stream(0) if _get_stream and _cuda.is_initialized() else None

    def restore(self) -> list[str]:
        """Put everything back. Returns the names of switches that were found changed.

        Modes cannot be put back, since whoever entered them holds them; they are told once.
        """
        changed = []
        for name, (read, write) in _PLAIN.items():
            if read() != self._plain[name]:
                changed.append(name)
                write(self._plain[name])
        for name, (read, put) in _SEVERAL.items():
            value = self._several[name]
            if read() != value:
                changed.append(name)
                put(*value) if isinstance(value, tuple) else put(value)
        different = [n for n, read in _PRECISION.items() if _read(read) != self._precision[n]]
        if different:
            changed += different
            self._set_precision()
        for name, count in _MODES.items():
            if count() > self._modes[name]:
                changed.append(name)
            self._modes[name] = count()
        return changed

    def restore_stream(self) -> list[str]:
        """Make the default stream current again. Returns its name when it was not."""
        if self._stream is None or _get_stream is None or _set_stream is None:
            return []
        if _get_stream(0) == self._stream:
            return []
        number, index, kind = self._stream
        _set_stream(stream_id=number, device_index=index, device_type=kind)
        return ["current stream"]

    def _set_precision(self) -> None:
        # PyTorch has an older and a newer way to set these, and refuses to read a mixture.
        if _set_precision is not None:
            for backend, operation in _OPERATIONS:
                _set_precision(backend, operation, "none")
        _set_matmul_precision("high" if self._tf32 else "highest")
        _set_cudnn_tf32(self._tf32)


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except RuntimeError:
        return _MIXED
