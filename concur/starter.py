"""The sample that a contributor starts from, copied under a name of their own."""

import json
import re
from pathlib import Path

from concur.errors import RecordError

STARTER = Path(__file__).parent / "builders" / "starter" / "scaled-add"
"""A complete sample that passes validation as it is."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\Z")


def write_starter(folder: Path) -> list[Path]:
    """Copy the starter into a new or empty folder; its name becomes the task's. Returns the files.

    Raises RecordError when the folder holds anything or its name cannot be a task's name.
    """
    name = folder.absolute().name
    if not _NAME.match(name) or len(name) > 80:
        raise RecordError(
            f"{name!r} cannot be the name of a task; use lower-case letters, digits, single hyphens"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RecordError(f"{folder} exists and is not an empty folder; choose another")
    written = []
    for source in sorted(p for p in STARTER.rglob("*") if p.is_file()):
        target = folder / source.relative_to(STARTER)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        if source.name == "task.json":
            text = text.replace(
                f'"name": {json.dumps(STARTER.name)}', f'"name": {json.dumps(name)}', 1
            )
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written
