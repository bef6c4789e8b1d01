"""Tensors over the shared memory, and a look at what foreign code returned.

Every function of PyTorch that touches a result is taken when this is imported, before anything
foreign is there, and runs with overriding switched off: what foreign code does to PyTorch's names
changes nothing that is recorded here.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import torch

from concur.validators.inside.memory import Memory

_C: Any = torch._C
_BASE: Any = _C.TensorBase
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_STRIDED = torch.strided
_UINT8 = torch.uint8
_DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in (
        *("float64", "float32", "float16", "bfloat16"),
        *("int64", "int32", "int8", "uint8", "bool"),
    )
}
_as_tensor, _from_buffer, _empty = torch.as_tensor, torch.frombuffer, torch.empty
_view, _reshape, _double, _contiguous = _BASE.view, _BASE.reshape, _BASE.double, _BASE.contiguous
_is_contiguous, _pointer, _count = _BASE.is_contiguous, _BASE.data_ptr, _BASE.numel
_strides, _item, _storage = _BASE.stride, _BASE.element_size, _BASE.untyped_storage
_offset, _storage_size = _BASE.storage_offset, _C.StorageBase.nbytes
_shape, _dtype = _BASE.shape.__get__, _BASE.dtype.__get__
_device, _layout = _BASE.device.__get__, _BASE.layout.__get__
_NoFunctions, _NoDispatch = _C.DisableTorchFunction, _C._DisableTorchDispatch


class Untouched:
    """While this is entered, no mode and no subclass of foreign code is asked about anything."""

    def __enter__(self) -> None:
        """Switch overriding off."""
        self._guards = (_NoFunctions(), _NoDispatch())
        for guard in self._guards:
            guard.__enter__()

    def __exit__(self, *_: object) -> None:
        """Switch it on again."""
        for guard in reversed(self._guards):
            guard.__exit__(None, None, None)


class _DeviceBytes:
    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def argument(memory: Memory, place: dict[str, Any], *, wide: bool = False) -> torch.Tensor:
    """Return a tensor over the shared memory, in the place's `dtype` and `shape`.

    `wide` returns a copy in float64 where the type is a floating one.
    """
    dtype, size = _DTYPES[place["dtype"]], place["bytes"]
    address = memory.address(place["offset"])
    raw: Any
    with Untouched():
        if size == 0:
            raw = _empty(0, dtype=_UINT8, device=memory.device)
        elif memory.device == "cuda":
            raw = _as_tensor(_DeviceBytes(address, size), device="cuda")
        else:
            array = (ctypes.c_uint8 * size).from_address(address)
            raw = _from_buffer(array, dtype=_UINT8)
        tensor: torch.Tensor = _reshape(_view(raw, dtype), place["shape"])
        return _double(tensor) if wide and dtype.is_floating_point else tensor


def listed(returned: Any) -> list[Any]:
    """Return the members of a tuple or list, or the one thing that was returned.

    Methods that a subclass may have of its own are not called.
    """
    if isinstance(returned, tuple):
        return list(tuple.__iter__(returned))
    if isinstance(returned, list):
        return list(list.__iter__(returned))
    return [returned]


@dataclass
class Span:
    """Where a tensor lies: its first byte, the byte behind its last, and whether it is dense."""

    begin: int
    """Address of the first byte."""
    end: int
    """Address behind the last byte."""
    dense: bool
    """Whether every byte between belongs to it."""

    def meets(self, other: "Span") -> bool:
        """Whether the two share memory, as far as can be told."""
        if self.begin == other.begin and self.end > self.begin and other.end > other.begin:
            return True
        crossing = self.begin < other.end and other.begin < self.end
        return crossing and (self.dense or other.dense)


@dataclass
class Seen:
    """One thing that was returned, as it was found."""

    thing: Any
    """The thing itself."""
    told: dict[str, Any]
    """type, and for a plain tensor dtype, shape, device and aliases (in words, or empty)."""
    span: Span | None = None
    """Where it lies; None where it is no plain tensor in ordinary memory."""
    copied: Any = None
    """What was copied from, kept until the copy is done."""

    def copy(self, memory: Memory, target: dict[str, Any]) -> None:
        """Queue a copy of the tensor's bytes to its shadow, if it is what was declared.

        Nothing is copied otherwise, so that nothing outside the tensor is ever read.
        """
        declared = (target["dtype"], list(target["shape"]), memory.device)
        found = (self.told.get("dtype"), self.told.get("shape"), self.told.get("device"))
        if self.span is None or found != declared:
            return
        with Untouched():
            tensor = self.thing
            if not _is_contiguous(tensor):
                tensor = _contiguous(tensor)
            self.copied = tensor
            if _count(tensor) * _item(tensor) == target["bytes"]:
                ends = (memory.address(target["shadow"]), _pointer(tensor))
                memory.copy_parts(*ends, target["bytes"], target["order"])


def look(thing: Any) -> Seen:
    """Return what a returned thing is. Only plain tensors and parameters are looked into."""
    told: dict[str, Any] = {"type": str(type(thing).__name__)[:80]}
    if type(thing) not in _PLAIN:
        # A subclass may take the name of a plain tensor.
        told["type"] = "another " + told["type"] if told["type"] in _NAMES else told["type"]
        return Seen(thing, told)
    with Untouched():
        told["dtype"] = str(_dtype(thing)).removeprefix("torch.")
        told["shape"] = [int(length) for length in _shape(thing)]
        told["device"] = str(_device(thing).type)
        told["aliases"] = ""
        return Seen(thing, told, span(thing))


_NAMES = tuple(plain.__name__ for plain in _PLAIN)


def span(tensor: torch.Tensor) -> Span | None:
    """Return where a plain tensor lies; None where its storage does not hold it."""
    with Untouched():
        if _layout(tensor) is not _STRIDED:
            return None
        item, count = _item(tensor), _count(tensor)
        if count == 0:
            return Span(0, 0, True)
        reach = sum((n - 1) * s for n, s in zip(_shape(tensor), _strides(tensor), strict=True))
        size = (reach + 1) * item
        begin = _pointer(tensor)
        if not begin or _offset(tensor) * item + size > _storage_size(_storage(tensor)):
            return None
        return Span(begin, begin + size, _is_contiguous(tensor))


def aliases(seen: Seen, others: list[tuple[str, Span | None]]) -> str:
    """Return in words what a result shares memory with, else an empty text."""
    for words, other in others:
        if seen.span is not None and other is not None and seen.span.meets(other):
            return words
    return ""
