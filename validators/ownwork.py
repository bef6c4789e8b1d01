"""Library work: which share of the device time is spent in kernels of PyTorch or vendor libraries.

Kernel names and times come from torch.profiler inside the candidate's process, so that this finds
what is done openly; a candidate that hides it is not found in this form. A kernel that is compiled
into the candidate's own binary is its own, whatever its name (CUB, Thrust, CUTLASS headers).
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.ended import Ended, finding

LIBRARY = re.compile(
    r"at::native|at::cuda|at_cuda_detail|cublas|cutlass|cudnn|cusparse|cufft|cusolver|nvjet|xmma"
    r"|^(?:void )?(?:ampere|hopper|volta|turing|sm\d\d|gemm|gemv|splitK|pytorch_flash|fmha|triton)_"
    r"|gemmk1|gemv2|splitKreduce|flash_fwd|flash_bwd|wgrad|dgrad"
)
"""Names of kernels that libraries bring."""

_MOVES = re.compile(
    r"^Mem(?:cpy|set)|FillFunctor|direct_copy_kernel|copy_device_to_device|CatArray"
)
_REJECTED, _WARNED = 0.5, 0.05


def library_findings(
    kernels: Iterable[tuple[str, float]], binaries: list[Path]
) -> Iterator[Finding]:
    """Yield what a profile shows. Raises Ended when most of the device time is library work."""
    counted = [(name, spent) for name, spent in kernels if not _MOVES.search(name)]
    total = sum(spent for _, spent in counted)
    if total <= 0:
        found = finding("work.unknown", "the profiler saw no kernel")
        raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
    own = own_symbols(binaries)
    foreign = [(n, t) for n, t in counted if LIBRARY.search(n) and not _is_own(n, own)]
    share = sum(spent for _, spent in foreign) / total
    names = "\n".join(f"{spent:10.1f} us  {name[:160]}" for name, spent in foreign[:8])
    message = f"{share:.0%} of the device time is spent in kernels of libraries"
    if share > _REJECTED:
        found = finding("work.library", message, evidence=names)
        raise Ended(Status.LIBRARY_WORK, Fault.CANDIDATE, found)
    if share > _WARNED:
        yield finding("work.library", message, evidence=names, severity="warning")


def own_symbols(binaries: list[Path]) -> str:
    """Return the mangled names of all kernels that are compiled into binaries, one a line.

    From the device code where cuobjdump is there, and from the stubs that launch them on the host.
    """
    lines = []
    for binary in binaries:
        lines += _lines("cuobjdump", "--dump-elf-symbols", binary, "STO_ENTRY")
        lines += _lines("nm", "--defined-only", binary, "__device_stub__")
    return "\n".join(lines)


def _lines(tool: str, option: str, binary: Path, having: str) -> list[str]:
    """Return the last word of each line of a tool's output that holds a text."""
    path = shutil.which(tool)
    if path is None:
        return []
    run = subprocess.run(
        [path, option, str(binary)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    return [line.split()[-1] for line in run.stdout.splitlines() if having in line]


def _is_own(name: str, own: str) -> bool:
    """Whether the last identifier of a demangled kernel name occurs, mangled, in own binaries."""
    head = re.sub(r"<.*", "", re.sub(r"^void ", "", name).replace("(anonymous namespace)", "_"))
    last = re.split(r"::|\s", head.partition("(")[0].strip())[-1]
    return bool(last) and f"{len(last)}{last}" in own
