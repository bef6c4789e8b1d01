"""The host of launchers: C++ on a CPU, CUDA on a GPU. PyTorch is not in this process.

Nothing but the C library, the driver and the launcher itself is there to compute with, so that a
library cannot do the work; and nothing of a Python program that a launcher could look into.
"""

import ctypes
import os
from typing import Any

from concur.validators.inside.memory import LEGACY_STREAM, Memory
from concur.validators.inside.serve import Refused

_OUT_OF_MEMORY = 2
_L2_SIZE, _PERSISTING_L2_LIMIT = 38, 6
_SMALLEST_FLUSH = 64 << 20
_TYPES: dict[str, Any] = {
    "pointer": ctypes.c_void_p,
    "int64": ctypes.c_int64,
    "double": ctypes.c_double,
}


class Server:
    """What was loaded, and the commands on it."""

    def __init__(self, memory: Memory, _settings: dict[str, Any]) -> None:
        """Take the shared memory."""
        self._memory, self._driver = memory, memory.driver
        self._functions: dict[str, Any] = {}
        self._flush = ctypes.c_uint64(0)
        self._events = (ctypes.c_void_p(), ctypes.c_void_p())
        self._flush_size = 0

    def arena(self, job: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Map the memory that comes with the command."""
        self._memory.attach(descriptors[0], job["size"])
        return {}

    def load(self, job: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Load the library that comes as a descriptor, and look its launcher up."""
        library = ctypes.CDLL(f"/proc/self/fd/{descriptors[0]}", mode=os.RTLD_NOW)
        try:
            function = getattr(library, job["name"])
        except AttributeError:
            raise Refused("symbol", f"the library has no symbol {job['name']!r}") from None
        function.argtypes = [_TYPES[t] for t in job["types"]]
        function.restype = ctypes.c_int
        self._functions[job["slot"]] = function
        return {}

    def call(self, job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Call the launcher once. Its results are copied to their shadows at once, in order."""
        places = (*job["args"], *job["results"])
        pointers = [self._memory.address(p["offset"]) for p in places]
        function = self._functions[job["slot"]]
        spent = None
        if job["timed"] and self._driver is not None:
            begin, end = self._prepare_timing()
            self._driver.call("cuEventRecord", begin, LEGACY_STREAM)
            code = function(*pointers, *job["scalars"], None)
            self._driver.call("cuEventRecord", end, LEGACY_STREAM)
        else:
            code = function(*pointers, *job["scalars"], None)
        for place in job["results"]:
            source = self._memory.address(place["offset"])
            self._memory.copy(self._memory.address(place["shadow"]), source, place["bytes"])
        self._memory.synchronize()
        self._check(code)
        if job["timed"] and self._driver is not None:
            elapsed = ctypes.c_float()
            self._driver.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
            spent = elapsed.value * 1000.0
        return {"us": spent, "results": [], "notes": [], "type": "launcher"}

    def free(self, _job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Let go of what was held for timing."""
        if self._driver is not None and self._flush.value:
            self._driver.call("cuMemFree_v2", self._flush)
            self._flush = ctypes.c_uint64(0)
        return {}

    def _check(self, code: int) -> None:
        if code == 0:
            return
        if code == _OUT_OF_MEMORY and self._driver is not None:
            raise Refused("oom", "the launcher returned 2 (cudaErrorMemoryAllocation)")
        meaning = f" ({self._driver.describe(code)})" if self._driver is not None else ""
        raise Refused("returned", f"the launcher returned {code}{meaning}")

    def _prepare_timing(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """Wait for the device, then queue a flush of the L2 cache.

        The flush keeps the device busy while the host queues what is timed, so that the interval
        holds no idle time between the first event and the first kernel.
        """
        driver = self._driver
        assert driver is not None
        if not self._flush.value:
            self._flush_size = max(2 * driver.attribute(_L2_SIZE), _SMALLEST_FLUSH)
            size = ctypes.c_size_t(self._flush_size)
            driver.call("cuMemAlloc_v2", ctypes.byref(self._flush), size)
        if not self._events[0]:
            for event in self._events:
                driver.call("cuEventCreate", ctypes.byref(event), 0)
        driver.call("cuCtxSetLimit", _PERSISTING_L2_LIMIT, ctypes.c_size_t(0))
        driver.call("cuCtxResetPersistingL2Cache")
        driver.call("cuCtxSynchronize")
        size = ctypes.c_size_t(self._flush_size)
        for value in (0x55, 0xAA):
            driver.call("cuMemsetD8Async", self._flush, ctypes.c_ubyte(value), size, LEGACY_STREAM)
        return self._events
