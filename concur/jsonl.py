"""JSON and JSON Lines files: one record a line, ended by a line feed and nothing else.

Text may hold U+2028, U+0085 and the like, at which `str.splitlines` would split a record.
"""

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from concur.canonical import canonical_json
from concur.errors import RecordError


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and bytes, without the line feed, of every line that is not blank."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):  # binary files split at b"\n" only
            if line.strip():
                yield number, line.rstrip(b"\n")


def read(path: Path) -> Iterator[Any]:
    """Yield the value of every line. Raises RecordError naming file and line of a broken one."""
    for number, line in lines(path):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordError(
                f"{path}:{number}: not JSON ({error}); remove or mend the line"
            ) from None


def append(path: Path, value: Any) -> None:
    """Append a value as one line of canonical JSON and flush it to the disk.

    A last line that a killed process left unfinished is cut off first.
    """
    data = canonical_json(value).encode() + b"\n"
    with path.open("ab+") as stream:
        _drop_unfinished(stream.fileno())
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def write(path: Path, values: Iterable[Any]) -> int:
    """Replace a file by one line of canonical JSON a value, atomically. Returns the count."""
    encoded = [canonical_json(value).encode() + b"\n" for value in values]
    replace(path, b"".join(encoded))
    return len(encoded)


def write_json(path: Path, value: Any) -> None:
    """Replace a file by one JSON value, indented for people, atomically."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    replace(path, text.encode() + b"\n")


def replace(path: Path, data: bytes) -> None:
    """Replace a file's content: written beside it under another name, flushed, then renamed.

    Whoever reads the path sees the old content or the new, never a part. The folder must exist.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _flush_folder(path.parent)


def _drop_unfinished(handle: int) -> None:
    size = os.fstat(handle).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        at = os.pread(handle, end - start, start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    if end < size:
        os.ftruncate(handle, end)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
