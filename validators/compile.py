"""Compile launchers: one library for sources, flags and compiler, kept by their content.

Compilers run in a child of their own, which has neither the judge's environment nor its files.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from concur.canonical import canonical_json, sha256_hex
from concur.schemas.rules import RULES_VERSION
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Program
from concur.schemas.verdict import Fault, Status
from concur.validators.ended import Ended, errors_of, finding
from concur.validators.failures import (
    ChildDied,
    ChildFailed,
    ChildForged,
    ChildGreedy,
    ChildTimeout,
)
from concur.validators.process import Child, ChildSettings, signal_name
from concur.validators.store import Store

CPP_FLAGS = ("-O2", "-std=c++17", "-shared", "-fPIC")
"""Flags of every C++ launcher."""
C_FLAGS = ("-O2", "-std=c11", "-shared", "-fPIC", "-lm")
"""Flags of every C reference."""

_MOST_LIBRARY = 1 << 30
# A compiler would read further flags from any file, and complain about each word in it.
_READS_FLAGS = re.compile(r"@|^--?(?:optf|options-file)\b")


@dataclass(frozen=True)
class Built:
    """How a build ended that a compiler accepted (`library`) or refused (`output`)."""

    library: bytes = b""
    """The library; empty where there is none."""
    code: int = 0
    """The compiler's exit code; negative where a signal ended it."""
    output: str = ""
    """What it printed, without paths of this machine."""


def cuda_flags(architecture: str) -> tuple[str, ...]:
    """Return the flags of every CUDA launcher for an architecture such as sm_90."""
    number = architecture.removeprefix("sm_")
    code = f"arch=compute_{number},code=sm_{number}"
    return ("-O3", "-std=c++17", "-gencode", code, "-shared", "-Xcompiler", "-fPIC")


def compile_solution(solution: Solution, cache: Path, architecture: str, timeout: float) -> bytes:
    """Return the library of a launcher. Raises Ended with a compiler's errors, or a timeout."""
    if solution.contract is Contract.CUDA_FUNCTION:
        tool = "nvcc"
        flags = cuda_flags(solution.architecture or architecture)
    else:
        tool, flags = "g++", CPP_FLAGS
    files = {f.path: f.content for f in solution.files}
    arguments = [*flags, *solution.compile_flags]
    return _compile(tool, arguments, files, solution.entry, Store(cache), timeout)


def compile_reference(program: Program, cache: Path, timeout: float) -> bytes:
    """Return the library of a C reference. Raises Ended; the fault is then the task's."""
    try:
        files = {"reference.c": program.source}
        return _compile("gcc", list(C_FLAGS), files, "reference.c", Store(cache), timeout)
    except Ended as error:
        status = Status.INVALID_TASK if error.fault is Fault.CANDIDATE else error.status
        fault = Fault.TASK if error.fault is Fault.CANDIDATE else error.fault
        raise Ended(status, fault, *error.findings) from None


@lru_cache(maxsize=8)
def tool_version(tool: str) -> str:
    """Return what a compiler says about itself, on one line; empty when it is not there."""
    path = shutil.which(tool)
    if path is None:
        return ""
    said = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    return " ".join(said.split())


def required(tool: str) -> str:
    """Return the version of a tool. Raises Ended (infrastructure) when it is not there."""
    version = tool_version(tool)
    if not version:
        found = finding("compile.tool", f"{tool} is not on PATH")
        raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
    return version


def key_of(*parts: Any) -> str:
    """Return the key of a build in a store: a hash over everything that decides about it."""
    return sha256_hex(canonical_json([*parts, RULES_VERSION]).encode())


def refused_flag(flags: list[str]) -> str:
    """Return the first flag that makes a compiler read flags from a file; empty without one."""
    return next((flag for flag in flags if _READS_FLAGS.search(flag)), "")


def build(
    do: str, program: str, timeout: float, environment: Mapping[str, str], **job: Any
) -> Built:
    """Run the command `do` of a build child, see `inside.compiling`; `timeout` in seconds.

    `program` is what findings call the compiler. Raises Ended where that does not come to an end of
    its own.
    """
    from concur.validators.arena import scratch, take  # imports PyTorch

    settings = ChildSettings("build", "cpu", environment=_environment(environment))
    descriptor = scratch()
    try:
        with Child(settings) as child:
            answer = child.ask(do, timeout, descriptors=(descriptor,), **job)
        library = take(descriptor, _MOST_LIBRARY)
    except ChildFailed as error:
        raise _ended(program, error, timeout) from None
    finally:
        os.close(descriptor)
    code, output = int(answer["code"]), str(answer["output"])
    if code < 0 or re.search(r"\bKilled\b.*\bterminated program\b", output):
        how = f"killed by {signal_name(-code)}" if code < 0 else "killed"
        found = finding("compile.tool", f"{program} was {how}", evidence=output)
        raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
    return Built(library if code == 0 else b"", code, output)


def _compile(
    tool: str, flags: list[str], files: dict[str, str], entry: str, store: Store, timeout: float
) -> bytes:
    version = required(tool)
    refused = refused_flag(flags)
    if refused:
        found = finding("compile.failed", f"the flag {refused} reads flags from a file")
        raise Ended(Status.COMPILE_ERROR, Fault.CANDIDATE, found)
    key = key_of(tool, version, flags, files, entry)
    with store.building(key):
        library = store.get(key)
        if library is not None:
            return library
        job = {
            "tool": tool,
            "leading": [f for f in flags if not f.startswith("-l")],
            "trailing": [f for f in flags if f.startswith("-l")],
            "files": [{"path": path, "content": content} for path, content in files.items()],
            "entry": entry,
        }
        built = build("compile", tool, timeout, {}, **job)
        if not built.library:
            raise _refused(tool, built)
        store.put(key, built.library)
    return built.library


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return what a build child sees besides PATH and its folder: where CUDA is, and no GPU."""
    nvcc = shutil.which("nvcc")
    found = {"CUDA_VISIBLE_DEVICES": "", **extra}
    if nvcc is not None and not os.environ.get("CUDA_HOME"):
        found["CUDA_HOME"] = str(Path(nvcc).resolve().parent.parent)
    return found


def _refused(tool: str, built: Built) -> Ended:
    lines = built.output.splitlines()
    ended = f"{tool} ended with exit code {built.code}"
    message = next((line for line in lines if re.search(r"\berror\b", line)), ended)
    found = finding("compile.failed", message, evidence=errors_of(built.output))
    return Ended(Status.COMPILE_ERROR, Fault.CANDIDATE, found)


def _ended(tool: str, error: ChildFailed, timeout: float) -> Ended:
    match error:
        case ChildTimeout():
            found = finding("compile.timeout", f"{tool} did not end within {timeout:g} s")
            return Ended(Status.TIMEOUT, Fault.CANDIDATE, found)
        case ChildGreedy():
            found = finding("compile.failed", f"{tool} {error}")
            return Ended(Status.COMPILE_ERROR, Fault.CANDIDATE, found)
        case ChildForged():
            return Ended(Status.CHEATING, Fault.CANDIDATE, finding("run.forged", str(error)))
        case ChildDied():
            found = finding("compile.tool", f"the process of {tool} {error}")
        case _:
            message = f"{tool} could not be started"
            found = finding("compile.tool", message, evidence=str(error))
    return Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
