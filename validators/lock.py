"""One GPU, many workers: correctness phases share it, timing has it alone.

Two lock files. Whoever wants the device first passes the gate; one that waits for exclusive use
holds the gate meanwhile, so that sharers, who come and go all the time, cannot starve it.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


class DeviceLock:
    """Shared or exclusive use of the device, held by the judge and never by a child."""

    def __init__(self, path: Path | None) -> None:
        """Lock through `path` and a file beside it; None locks nothing."""
        self._path = path

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Use the device together with others."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Use the device alone."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def _held(self, mode: int) -> Iterator[None]:
        if self._path is None:
            yield
            return
        with self._path.open("a") as device:
            with self._path.with_name(self._path.name + ".gate").open("a") as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)
                fcntl.flock(device, mode)
            yield


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a file exclusively, across processes."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
