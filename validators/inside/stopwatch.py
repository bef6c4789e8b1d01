"""Times one call between two events of the CUDA driver, after a flush of the L2 cache.

Nothing here goes through PyTorch, so that what foreign code does to PyTorch's events is without
effect. The time is hearsay all the same, since foreign code shares this process.
"""

import contextlib
import ctypes

from concur.validators.inside.memory import LEGACY_STREAM, Driver, DriverError

_L2_SIZE, _PERSISTING_L2_LIMIT = 38, 6
_SMALLEST_FLUSH = 64 << 20
_SHORT_LEAD = 8 << 20


class Stopwatch:
    """Two events and the memory that the flush writes: twice the L2 cache, at least 64 MiB."""

    def __init__(self, driver: Driver) -> None:
        """Take the driver; nothing is allocated before the first use."""
        self._driver = driver
        self._flush, self._size = ctypes.c_uint64(0), 0
        self._events = (ctypes.c_void_p(), ctypes.c_void_p())

    def start(self, fills: int) -> None:
        """Flush, and record the first event behind a lead: fills that run while the host goes on.

        A lead keeps the device busy while the host queues what is timed, so that the interval
        holds no idle time between the first event and the first kernel. It is also time in which
        work on another stream goes unseen: with `fills` 0 it lasts a few microseconds only, and
        foreign code cannot tell one from the other beforehand. Raises DriverError.
        """
        self._allocate()
        # Lines that persist would survive the flush; some devices know no such lines.
        with contextlib.suppress(DriverError):
            self._driver.call("cuCtxSetLimit", _PERSISTING_L2_LIMIT, ctypes.c_size_t(0))
            self._driver.call("cuCtxResetPersistingL2Cache")
        self._driver.call("cuCtxSynchronize")
        self._fill(self._size)
        if fills == 0:
            self._driver.call("cuStreamSynchronize", LEGACY_STREAM)
            self._fill(_SHORT_LEAD)
        for _ in range(fills):
            self._fill(self._size)
        self._driver.call("cuEventRecord", self._events[0], LEGACY_STREAM)

    def _fill(self, size: int) -> None:
        length, value = ctypes.c_size_t(size), ctypes.c_ubyte(0x55)
        self._driver.call("cuMemsetD8Async", self._flush, value, length, LEGACY_STREAM)

    def stop(self) -> None:
        """Record the second event."""
        self._driver.call("cuEventRecord", self._events[1], LEGACY_STREAM)

    def microseconds(self) -> float:
        """Return the time between the events, once the device has passed both."""
        elapsed = ctypes.c_float()
        self._driver.call("cuEventElapsedTime", ctypes.byref(elapsed), *self._events)
        return elapsed.value * 1000.0

    def free(self) -> None:
        """Give the memory of the flush back."""
        if self._flush.value:
            self._driver.call("cuMemFree_v2", self._flush)
            self._flush = ctypes.c_uint64(0)

    def _allocate(self) -> None:
        if not self._flush.value:
            self._size = max(2 * self._driver.attribute(_L2_SIZE), _SMALLEST_FLUSH)
            size = ctypes.c_size_t(self._size)
            self._driver.call("cuMemAlloc_v2", ctypes.byref(self._flush), size)
        if not self._events[0]:
            for event in self._events:
                self._driver.call("cuEventCreate", ctypes.byref(event), 0)
