"""The memory that a child shares with the judge, and the CUDA driver that both speak to.

Memory comes as one descriptor: on a CPU a sealed file in memory, on CUDA an allocation of the
driver's virtual memory management (CUDA Driver API, section 6.14), mapped for reading and writing.
"""

import ctypes
import mmap
import os
import struct
from typing import Any

_POSIX_DESCRIPTOR = 1
_READ_WRITE = 3
_ON_DEVICE = 1
LEGACY_STREAM = None
"""The stream that every blocking stream waits for, and that waits for them."""


class DriverError(RuntimeError):
    """A call of the CUDA driver failed; `code` is its CUresult."""

    def __init__(self, code: int, text: str) -> None:
        """Take the code and a sentence."""
        super().__init__(text)
        self.code = code


class Driver:
    """The CUDA driver on the first visible device, in its primary context, as PyTorch uses it."""

    def __init__(self) -> None:
        """Load the driver and make the context current. Raises OSError or DriverError."""
        self._library: Any = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.device = device.value

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver. Raises DriverError unless it succeeds."""
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise DriverError(code, f"{name}: {self.describe(code)}")

    def describe(self, code: int) -> str:
        """Return the name and text of an error code."""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(name))
        self._library.cuGetErrorString(code, ctypes.byref(text))
        if name.value is None:
            return f"error {code}"
        return f"error {code}, {name.value.decode()} ({(text.value or b'').decode()})"

    def attribute(self, number: int) -> int:
        """Return an attribute of the device."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def map(self, descriptor: int, size: int) -> int:
        """Map shared device memory. Returns its address."""
        handle, address = ctypes.c_uint64(), ctypes.c_uint64()
        self.call(
            "cuMemImportFromShareableHandle",
            ctypes.byref(handle),
            ctypes.c_void_p(descriptor),
            _POSIX_DESCRIPTOR,
        )
        self.map_handle(handle, size, address)
        return address.value

    def map_handle(self, handle: ctypes.c_uint64, size: int, address: ctypes.c_uint64) -> None:
        """Reserve addresses, map an allocation there and open it for reading and writing."""
        length, none = ctypes.c_size_t(size), ctypes.c_size_t(0)
        zero = ctypes.c_uint64(0)
        self.call("cuMemAddressReserve", ctypes.byref(address), length, none, zero, zero)
        self.call("cuMemMap", address, length, none, handle, zero)
        access = struct.pack("iii", _ON_DEVICE, self.device, _READ_WRITE)
        self.call("cuMemSetAccess", address, length, access, ctypes.c_size_t(1))
        # The mapping keeps the memory alive.
        self.call("cuMemRelease", handle)

    def unmap(self, address: int, size: int) -> None:
        """Undo `map`."""
        at, length = ctypes.c_uint64(address), ctypes.c_size_t(size)
        self.call("cuMemUnmap", at, length)
        self.call("cuMemAddressFree", at, length)

    def copy(self, target: int, source: int, size: int) -> None:
        """Queue a copy of `size` bytes on the legacy stream."""
        addresses = (ctypes.c_uint64(target), ctypes.c_uint64(source))
        self.call("cuMemcpyDtoDAsync_v2", *addresses, ctypes.c_size_t(size), LEGACY_STREAM)


class Memory:
    """The shared memory, mapped into this process."""

    def __init__(self, device: str) -> None:
        """Get ready for `device`, cpu or cuda. Raises OSError or DriverError."""
        self.device = device
        self.driver = Driver() if device == "cuda" else None
        self.size = 0
        self._base = 0
        self._mapped: Any = None

    def attach(self, descriptor: int, size: int) -> None:
        """Map memory in place of what was mapped before."""
        if self.driver is not None:
            if self._base:
                self.driver.unmap(self._base, self.size)
            self._base = self.driver.map(descriptor, size)
        else:
            self._mapped = mmap.mmap(descriptor, size)
            self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._mapped))
        self.size = size
        os.close(descriptor)

    def address(self, offset: int) -> int:
        """Return the address of a byte."""
        return self._base + offset

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy between two addresses; on CUDA this is queued on the legacy stream."""
        if size <= 0:
            return
        if self.driver is not None:
            self.driver.copy(target, source, size)
        else:
            ctypes.memmove(target, source, size)

    def copy_parts(self, target: int, source: int, size: int, order: list[int]) -> None:
        """Copy as `copy` does, in as many equal parts as `order` has numbers, in that order.

        The judge makes the order anew for every call. Work that goes on while the copy is made
        would have to finish its parts in just that order to be copied whole.
        """
        step = -(-size // len(order))
        for number in order:
            begin = number * step
            self.copy(target + begin, source + begin, min(step, max(0, size - begin)))

    def synchronize(self) -> None:
        """Wait for the legacy stream, and with it for every stream that blocks it."""
        if self.driver is not None:
            self.driver.call("cuStreamSynchronize", LEGACY_STREAM)
