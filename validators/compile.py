"""Compile launchers into a content-addressed cache: one library per sources, flags and compiler."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from concur.canonical import canonical_json, sha256_hex
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Program
from concur.schemas.verdict import Fault, Status
from concur.validators.ended import Ended, errors_of, finding
from concur.validators.isolation import private_folder
from concur.validators.lock import file_lock
from concur.validators.process import signal_name

CPP_FLAGS = ("-O2", "-std=c++17", "-shared", "-fPIC")
"""Flags of every C++ launcher."""
C_FLAGS = ("-O2", "-std=c11", "-shared", "-fPIC", "-lm")
"""Flags of every C reference."""


def cuda_flags(architecture: str) -> tuple[str, ...]:
    """Return the flags of every CUDA launcher for an architecture such as sm_90."""
    number = architecture.removeprefix("sm_")
    code = f"arch=compute_{number},code=sm_{number}"
    return ("-O3", "-std=c++17", "-gencode", code, "-shared", "-Xcompiler", "-fPIC")


def compile_solution(solution: Solution, cache: Path, architecture: str, timeout: float) -> Path:
    """Return the library of a launcher. Raises Ended with a compiler's errors, or a timeout."""
    if solution.contract is Contract.CUDA_FUNCTION:
        tool = "nvcc"
        flags = cuda_flags(solution.architecture or architecture)
    else:
        tool, flags = "g++", CPP_FLAGS
    files = {f.path: f.content for f in solution.files}
    arguments = [*flags, *solution.compile_flags]
    return _build(tool, arguments, files, solution.entry, cache, timeout)


def compile_reference(program: Program, cache: Path, timeout: float) -> Path:
    """Return the library of a C reference. Raises Ended; the fault is then the task's."""
    try:
        files = {"reference.c": program.source}
        return _build("gcc", list(C_FLAGS), files, "reference.c", cache, timeout)
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


def _build(
    tool: str, flags: list[str], files: dict[str, str], entry: str, cache: Path, timeout: float
) -> Path:
    version = tool_version(tool)
    if not version:
        found = finding("compile.tool", f"{tool} is not on PATH")
        raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
    key = sha256_hex(canonical_json([tool, version, flags, files, entry]).encode())
    private_folder(cache)
    library = cache / f"{key}.so"
    if library.exists():
        return library
    with file_lock(cache / f"{key}.lock"):
        if not library.exists():
            _compile(tool, flags, files, entry, library, timeout)
    return library


def _compile(
    tool: str, flags: list[str], files: dict[str, str], entry: str, library: Path, timeout: float
) -> None:
    with tempfile.TemporaryDirectory(prefix="concur-build-", dir=library.parent) as name:
        folder = Path(name)
        for path, content in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        trailing = [f for f in flags if f.startswith("-l")]
        leading = [f for f in flags if not f.startswith("-l")]
        command = [tool, *leading, "-o", "out.so", entry, *trailing]
        code, output = _run(command, folder, timeout)
        if code is None:
            found = finding("compile.timeout", f"{tool} did not end within {timeout:g} s")
            raise Ended(Status.TIMEOUT, Fault.CANDIDATE, found)
        if code < 0:
            found = finding("compile.tool", f"{tool} was killed by {signal_name(-code)}")
            raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
        built = folder / "out.so"
        if code != 0 or not built.is_file():
            clean = output.replace(f"{folder}/", "")
            message = next(
                (line for line in clean.splitlines() if re.search(r"\berror\b", line)),
                f"{tool} ended with exit code {code}",
            )
            found = finding("compile.failed", message, evidence=errors_of(clean))
            raise Ended(Status.COMPILE_ERROR, Fault.CANDIDATE, found)
        built.replace(library)


def _run(command: list[str], folder: Path, timeout: float) -> tuple[int | None, str]:
    """Return exit code and output; no code after a timeout, when the process group is killed."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    return process.returncode, output
