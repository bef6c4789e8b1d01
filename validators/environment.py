"""The machine that a run takes place on. Asks tools and package metadata; imports no PyTorch."""

import platform
import shutil
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from concur.schemas.verdict import Environment
from concur.validators.compile import tool_version

Device = Literal["cpu", "cuda"]
"""Where to compute: on the GPU at full size, on the CPU with the small twins."""

_TIMEOUT_S = 60


def cuda_available() -> bool:
    """Return whether a GPU and nvcc are here and PyTorch is installed."""
    return bool(_gpu()) and shutil.which("nvcc") is not None and bool(_torch())


def probe(device: Device | None = None) -> Environment:
    """Return what a verdict says about this machine; nothing that names the machine itself.

    Without `device` it is cuda where a GPU can be used, else cpu.
    """
    if device is None:
        device = "cuda" if cuda_available() else "cpu"
    gpu = _gpu() if device == "cuda" else ()
    return Environment(
        device_kind=device,
        device=gpu[0] if gpu else _processor(),
        compute_capability=gpu[1] if gpu else "",
        driver=gpu[2] if gpu else "",
        cuda=_nvcc_release(),
        compiler=tool_version("g++").partition(" Copyright")[0][:120],
        torch=_torch(),
        python=platform.python_version(),
        os=f"{platform.system()} {platform.release()}",
    )


def architecture() -> str:
    """Return the architecture of the GPU, such as sm_90; sm_90 where there is none."""
    gpu = _gpu()
    return f"sm_{gpu[1].replace('.', '')}" if gpu else "sm_90"


@lru_cache(maxsize=1)
def _gpu() -> tuple[str, str, str] | tuple[()]:
    """Return name, compute capability and driver of the first GPU, or nothing."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    query = ["--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    try:
        run = subprocess.run(
            [tool, *query], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    fields = [f.strip() for f in run.stdout.partition("\n")[0].split(",")]
    if run.returncode != 0 or len(fields) != 3 or not fields[1].replace(".", "").isdigit():
        return ()
    return fields[0], fields[1], fields[2]


def _nvcc_release() -> str:
    said = tool_version("nvcc")
    return said.partition("release ")[2].partition(",")[0]


def _torch() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine() or "unknown")
