"""What this machine has of what concur can use, and what to do about what is missing.

Versions are read from package metadata and tools are asked, so that a broken package cannot break
the report. Only the tokenizer is really loaded, since its file may have to be unpacked, and the
judge's child really started, since only the kernel knows which layers it grants.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from concur import tokens
from concur.errors import MissingDependency
from concur.validate import INSTALL_JUDGE
from concur.validators.failures import ChildFailed
from concur.validators.process import Child, ChildSettings, missing_layers

MINIMUM_PYTHON = (3, 11)
_FREE_GB = 10
_TOOL_TIMEOUT_S = 30


@dataclass(frozen=True)
class Examined:
    """One thing that was looked for."""

    subject: str
    """What was looked for."""
    present: bool
    """Whether it is there."""
    detail: str
    """Version, name or size; or what is missing without it."""
    remedy: str = ""
    """What to do when it is missing."""
    required: bool = False
    """Nothing works without it."""


def examine(folder: Path) -> Iterator[Examined]:
    """Yield what is there and what is missing; `folder` is where data would be written."""
    found = sys.version_info[:3]
    yield Examined(
        "Python",
        found >= MINIMUM_PYTHON,
        ".".join(map(str, found)),
        "install Python 3.11 or newer",
        required=True,
    )
    yield _packages(
        "library", ("concur-kernels", "datasets", "pyarrow", "pydantic"), "make dataset"
    )
    yield _packages("extra judge", ("torch", "ninja", "numpy"), INSTALL_JUDGE)
    yield _packages("extra tokens", ("bpe-openai",), 'pip install "concur-kernels[tokens]"')
    yield _tokenizer()
    yield _tool("GPU", ["nvidia-smi", "-L"], "judging CUDA needs an NVIDIA GPU and its driver")
    yield _tool("nvcc", ["nvcc", "--version"], "install the CUDA toolkit and put its bin on PATH")
    yield _tool("g++", ["g++", "--version"], "install g++ (Debian, Ubuntu: apt install g++)")
    yield _isolation()
    yield _disk(folder)


def _packages(subject: str, names: tuple[str, ...], remedy: str) -> Examined:
    versions, missing = [], []
    for name in names:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Examined(subject, False, f"without {', '.join(missing)}", remedy)
    return Examined(subject, True, ", ".join(versions))


def _tokenizer() -> Examined:
    subject = "tokenizer file"
    try:
        tokens.count(("concur",))
    except MissingDependency as error:
        return Examined(subject, False, str(error), tokens.INSTALL)
    return Examined(subject, True, f"{tokens.ENCODING}, no network needed")


def _tool(subject: str, command: list[str], remedy: str) -> Examined:
    path = shutil.which(command[0])
    if path is None:
        return Examined(subject, False, f"no {command[0]} on PATH", remedy)
    try:
        run = subprocess.run(
            [path, *command[1:]],
            capture_output=True,
            text=True,
            timeout=_TOOL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Examined(subject, False, f"{command[0]}: {error}", remedy)
    lines = [line.strip() for line in run.stdout.split("\n") if line.strip()]
    if run.returncode != 0 or not lines:
        return Examined(subject, False, f"{command[0]} ended with code {run.returncode}", remedy)
    # nvcc says its release in the fourth line; the others' first line is the one that counts.
    told = next((line for line in lines if "release" in line), lines[0])
    return Examined(subject, True, told)


def _isolation() -> Examined:
    """Start the judge's child as for a solution, and tell which layers it got."""
    subject = "isolation"
    try:
        with Child(ChildSettings("launcher", "cpu")) as child:
            layers = child.layers
        missing = missing_layers()
    except ChildFailed as error:
        return Examined(subject, False, f"no solution can be run: {error}", INSTALL_JUDGE)
    detail = ", ".join(layers)
    if not missing:
        return Examined(subject, True, detail)
    return Examined(
        subject,
        False,
        f"{detail}; not offered here: {', '.join(missing)}",
        "allow unprivileged user namespaces; or, for solutions you trust, judge with --trust",
    )


def _disk(folder: Path) -> Examined:
    there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    free_gb = shutil.disk_usage(there).free / 1e9
    return Examined(
        "disk", free_gb >= _FREE_GB, f"{free_gb:.0f} GB free", f"{_FREE_GB} GB are comfortable"
    )
