"""Start the judge's child apart from everything else: session, environment, private folder.

The child gives up the rest itself (`child.isolate`), before it loads anything foreign, and tells
which layers the kernel granted. Not in this form: seccomp, Landlock, another user, a memory limit.
"""

import importlib.util
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from concur.errors import JudgeError

CHILD = (Path(__file__).parent / "child.py").read_text(encoding="utf-8")
"""The child's program, read once: a candidate that rewrites the file does not change this run."""

_PASSED_ON = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
_ROOM = 8 << 30


def make_workspace(name: str) -> Path:
    """Make a private folder for one run of the judge, in memory where there is room."""
    memory = Path("/dev/shm")
    parent: Path | None = None
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM:
        parent = memory
    return Path(tempfile.mkdtemp(prefix=f"concur-{name}-", dir=parent))


def private_folder(path: Path) -> Path:
    """Make a folder that nobody else may use, or return it. Raises JudgeError for another's.

    What is loaded from there is trusted to be what was compiled, and the default place is one that
    every user of the machine can write to.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise JudgeError(
            f"{path} belongs to somebody else or others may write to it; remove it, or set TMPDIR"
        )
    return path


def child_environment(home: Path, extra: dict[str, str]) -> dict[str, str]:
    """Return all environment variables of a child. `home` is its private folder."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {
        **kept,
        "PATH": programs,
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        **extra,
    }


def library_paths() -> list[str]:
    """Return folders that the child needs on its path to find the PyTorch that the judge uses."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return []
    return [str(Path(spec.origin).parent.parent)]
