"""Files that are replaced atomically: JSON for people, and bytes of any kind."""

import json
import os
import secrets
from pathlib import Path
from typing import Any


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


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
