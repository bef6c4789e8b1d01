"""What a child is started with: program text, environment, and the plan of what it may touch.

The child gives up the rest itself (`inside.isolate`) before it loads anything foreign, and tells
which layers held; `tests/validators/test_isolation.py` tries to cross each of them.
"""

import importlib.util
import os
import shutil
import stat
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from concur.errors import JudgeError

_INSIDE = Path(__file__).parent / "inside"
_PREFIX = "concur.validators.inside"

SOURCES = {
    f"{_PREFIX}.{path.stem}": path.read_text(encoding="utf-8")
    for path in sorted(_INSIDE.glob("*.py"))
    if path.stem not in ("__init__", "boot")
}
"""The host's modules, read once: a candidate that rewrites the files does not change this run."""

BOOT = (_INSIDE / "boot.py").read_text(encoding="utf-8")
"""The text that the child's interpreter starts with."""

ESSENTIAL = ("process group", "no network")
"""Layers without which code nobody trusts is not run."""

_PASSED_ON = ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
_HOME_BYTES = {"launcher": 64 << 20, "torch": 1 << 30, "build": 4 << 30}
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/proc", "/sys")
_DEVICES = ("null", "zero", "full", "random", "urandom", "shm")
_GPU_DEVICES = ("nvidia*", "dxg")
_HOME = "concur-home-"


def plan(kind: str, home: Path, *, processes: bool = False) -> dict[str, Any]:
    """Return what a child of a kind (launcher, torch, build) may touch, for `inside.isolate`."""
    readable = [*_LIBRARIES, *_driver_folders()]
    if kind != "launcher":
        readable += [sys.prefix, sys.base_prefix, *library_paths(), "/etc/alternatives", "/usr"]
        readable += [sysconfig.get_path("stdlib"), *_under("CUDA_HOME", "CUDA_PATH")]
    if kind == "build" or processes:
        readable += ["/bin", "/opt", *_compiler_folders()]
    names = _DEVICES if kind == "build" else (*_DEVICES, *_GPU_DEVICES)
    devices = [str(f) for name in names for f in sorted(Path("/dev").glob(name))]
    return {
        "home": str(home),
        "readable": sorted(set(readable)),
        # The child has a /proc of its own, where the CUDA driver writes names of threads.
        "writable": [*devices, "/proc"],
        "processes": processes or kind == "build",
        "memory": _HOME_BYTES[kind],
        "without": [],
    }


def make_home() -> Path:
    """Make a private folder for a child, and remove those that killed judges have left.

    In a child with a file system of its own it stays empty: memory is mounted over it.
    """
    root = Path(tempfile.gettempdir())
    for old in root.glob(f"{_HOME}*"):
        owner = old.name.removeprefix(_HOME).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_HOME}{os.getpid()}-", dir=root))


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
        # Whoever asks for the user's name gets it from here: the file of users is out of reach.
        "USER": "candidate",
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


def _driver_folders() -> list[str]:
    """Return folders on the library path that hold the CUDA driver, and not CUDA's libraries."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return [f for f in folders if f and any(Path(f).glob("libcuda.so*"))]


def _under(*variables: str) -> list[str]:
    return [os.environ[v] for v in variables if os.environ.get(v)]


def _compiler_folders() -> list[str]:
    """Return the folders two above the real compilers, where their parts are."""
    found = (shutil.which(tool) for tool in ("gcc", "g++", "nvcc", "ninja"))
    return [str(Path(path).resolve().parent.parent) for path in found if path]
