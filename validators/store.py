"""A folder of compiled libraries, found by the content that they were built from.

An entry's name holds the SHA-256 of the library, which is checked whenever it is read. The folder
saves time and nothing else: where it cannot be read, written or locked, libraries are built anew.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from concur.validators.isolation import private_folder
from concur.validators.lock import file_lock

MOST_BYTES = 20_000_000_000
"""Size of a store; beyond that the entries that were read longest ago go first."""


class Store:
    """Libraries by key. A key is a SHA-256 in hexadecimal digits over all that goes into one."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        """Use a folder, which is made. Raises JudgeError where it is somebody else's."""
        self._folder, self._most = folder, most_bytes
        with contextlib.suppress(OSError):
            private_folder(folder)

    def get(self, key: str) -> bytes | None:
        """Return the library of a key; None where there is none, or it is not what was stored."""
        for path in self._entries(f"{key}-*.so"):
            try:
                library = path.read_bytes()
            except OSError:
                continue
            if hashlib.sha256(library).hexdigest() == path.stem.partition("-")[2]:
                with contextlib.suppress(OSError):
                    os.utime(path)
                return library
            with contextlib.suppress(OSError):
                path.unlink()
        return None

    def put(self, key: str, library: bytes) -> None:
        """Keep a library, if the disk lets it, and remove the oldest beyond the limit."""
        target = self._folder / f"{key}-{hashlib.sha256(library).hexdigest()}.so"
        try:
            descriptor, name = tempfile.mkstemp(prefix="new-", dir=self._folder)
        except OSError:
            return
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(library)
            Path(name).replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            return
        self._trim()

    @contextlib.contextmanager
    def building(self, key: str) -> Iterator[None]:
        """Keep others from building the same at the same time, across processes."""
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):
                held.enter_context(file_lock(self._folder / f"{key}.lock"))
            yield

    def _entries(self, pattern: str) -> list[Path]:
        try:
            return sorted(self._folder.glob(pattern))
        except OSError:
            return []

    def _trim(self) -> None:
        entries = []
        for path in self._entries("*-*.so"):
            with contextlib.suppress(OSError):
                found = path.stat()
                entries.append((found.st_mtime, found.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries)[:-1]:
            if total <= self._most:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                path.with_name(f"{path.stem.partition('-')[0]}.lock").unlink(missing_ok=True)
            total -= size
