"""The host of launchers: C++ on a CPU, CUDA on a GPU. PyTorch is not in this process.

Nothing but the C library, the driver and the launcher itself is there to compute with, so that a
library cannot do the work; and nothing of a Python program that a launcher could look into.
"""

import ctypes
import os
from typing import Any

from concur.validators.inside.memory import Memory
from concur.validators.inside.serve import Refused
from concur.validators.inside.stopwatch import Stopwatch

_OUT_OF_MEMORY = 2
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
        self._stopwatch = Stopwatch(memory.driver) if memory.driver is not None else None

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
        stopwatch = self._stopwatch
        if stopwatch is not None:
            stopwatch.start(job["fills"])
        code = function(*pointers, *job["scalars"], None)
        if stopwatch is not None:
            stopwatch.stop()
        for place in job["results"]:
            ends = (self._memory.address(place["shadow"]), self._memory.address(place["offset"]))
            self._memory.copy_parts(*ends, place["bytes"], place["order"])
        self._memory.synchronize()
        self._check(code)
        spent = stopwatch.microseconds() if stopwatch is not None else None
        return {"us": spent, "results": [], "notes": [], "type": "launcher"}

    def free(self, _job: dict[str, Any], _descriptors: list[int]) -> dict[str, Any]:
        """Let go of what was held for timing."""
        if self._stopwatch is not None:
            self._stopwatch.free()
        return {}

    def _check(self, code: int) -> None:
        if code == 0:
            return
        if code == _OUT_OF_MEMORY and self._driver is not None:
            raise Refused("oom", "the launcher returned 2 (cudaErrorMemoryAllocation)")
        meaning = f" ({self._driver.describe(code)})" if self._driver is not None else ""
        raise Refused("returned", f"the launcher returned {code}{meaning}")
