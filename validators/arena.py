"""Memory that the judge lends to a child: one descriptor, mapped in both.

On a CPU a file in memory that is sealed against every change of its size, so that the child cannot
make the judge's own reading fail; on CUDA an allocation that only holders of the descriptor can
map. There is one arena for each child, and in it only what that child may see.
"""

import ctypes
import fcntl
import mmap
import os
import struct
from typing import Any

import torch

from concur.validators.environment import Device
from concur.validators.inside.memory import Driver

_PAGE = 4096
_PINNED, _ON_DEVICE, _POSIX_DESCRIPTOR = 1, 1, 1
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def sealed(data: bytes) -> int:
    """Return the descriptor of a file in memory that holds `data`, and that nobody can change."""
    descriptor = _memory_file("concur-sealed")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_WRITE)
    return descriptor


def scratch() -> int:
    """Return the descriptor of an empty file in memory that a child may write a result into."""
    return _memory_file("concur-scratch")


def take(descriptor: int, most: int) -> bytes:
    """Return what a child wrote into a `scratch` file, at most `most` bytes of it."""
    size = min(os.fstat(descriptor).st_size, most)
    data = bytearray()
    while len(data) < size:
        part = os.pread(descriptor, size - len(data), len(data))
        if not part:
            break
        data += part
    return bytes(data)


def _memory_file(name: str) -> int:
    return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


class Arena:
    """Lent memory. `memory` is the judge's view: uint8, one dimension, on the judge's device."""

    def __init__(self, device: Device, size: int) -> None:
        """Allocate at least `size` bytes. Raises OSError, DriverError or MemoryError."""
        self.device = device
        self.descriptor = -1
        self.size = 0
        self.memory: torch.Tensor
        self._mapped: mmap.mmap | None = None
        self._address = 0
        if device == "cuda":
            self._allocate_on_device(size)
        else:
            self._allocate(size)

    def close(self) -> None:
        """Give the memory back; `memory` must not be used any more."""
        if self.descriptor < 0:
            return
        del self.memory
        if self._address:
            _driver().unmap(self._address, self.size)
        os.close(self.descriptor)
        self.descriptor = -1

    def _allocate(self, size: int) -> None:
        self.size = -(-size // _PAGE) * _PAGE
        self.descriptor = _memory_file("concur-arena")
        os.ftruncate(self.descriptor, self.size)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self._mapped = mmap.mmap(self.descriptor, self.size)
        self.memory = torch.frombuffer(self._mapped, dtype=torch.uint8)

    def _allocate_on_device(self, size: int) -> None:
        driver = _driver()
        # CUmemAllocationProp: type, handle type, location (type, id), a pointer and flags.
        wanted = struct.pack("iiii", _PINNED, _POSIX_DESCRIPTOR, _ON_DEVICE, driver.device)
        wanted += bytes(16)
        unit = ctypes.c_size_t()
        driver.call("cuMemGetAllocationGranularity", ctypes.byref(unit), wanted, 0)
        self.size = -(-size // unit.value) * unit.value
        handle, address = ctypes.c_uint64(), ctypes.c_uint64()
        length = ctypes.c_size_t(self.size)
        driver.call("cuMemCreate", ctypes.byref(handle), length, wanted, ctypes.c_uint64(0))
        descriptor = ctypes.c_int(-1)
        driver.call(
            "cuMemExportToShareableHandle",
            ctypes.byref(descriptor),
            handle,
            _POSIX_DESCRIPTOR,
            ctypes.c_uint64(0),
        )
        driver.map_handle(handle, self.size, address)
        self.descriptor, self._address = descriptor.value, address.value
        self.memory = torch.as_tensor(_Memory(self._address, self.size), device="cuda")


class _Memory:
    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


_DRIVERS: list[Driver] = []


def _driver() -> Driver:
    if not _DRIVERS:
        torch.empty(1, device="cuda")  # makes the context that is current from then on
        _DRIVERS.append(Driver())
    return _DRIVERS[0]
