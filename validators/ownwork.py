"""Library work: which share of the device time is spent in kernels of PyTorch or vendor libraries.

Kernel names and times come from torch.profiler inside the candidate's process: they find what is
done openly, and a process that lies about them is not found here. A kernel that is compiled into
the candidate's own binary is its own, also from headers of CUB, Thrust or CUTLASS.
"""

import re
import struct
from collections.abc import Iterable, Iterator

from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.ended import Ended, finding
from concur.validators.library_names import VENDOR_FILE, words

LIBRARY = re.compile(
    r"at::native|at::cuda|at_cuda_detail|cublas|cutlass|cudnn|cusparse|cufft|cusolver|nvjet|xmma"
    r"|^(?:void )?(?:ampere|hopper|volta|turing|sm\d\d|gemm|gemv|splitK|pytorch_flash|fmha|triton)_"
    r"|gemmk1|gemv2|splitKreduce|flash_fwd|flash_bwd|wgrad|dgrad"
)
"""Names of kernels that libraries bring."""

_CLOSED = re.compile(
    r"cublas|cudnn|cusparse|cufft|cusolver|nvjet|xmma|^(?:void )?(?:ampere|volta)_"
)
"""Of them those that no header brings, so that no own binary can hold them."""

_TORCH = re.compile(r"at::native|at::cuda|at_cuda_detail")
_TRANSFER = re.compile(r"^Mem(?:cpy|set)")
_MOVES = re.compile(r"FillFunctor|direct_copy_kernel|copy_device_to_device|CatArray")
_REJECTED, _WARNED, _DECOY = 0.5, 0.05, 0.05
_OPERATIONS = {
    r"matmul|linear|bmm|gemm|einsum": r"gemm|gemv|nvjet|xmma|cutlass.*gemm|splitK",
    r"conv": r"conv|implicit_gemm|wgrad|dgrad|cudnn",
    r"softmax": r"softmax",
    r"layer.?norm|rms.?norm": r"layer_norm|LayerNorm|rms_norm",
    r"group.?norm|batch.?norm": r"group_norm|GroupNorm|batch_norm|bn_fw",
    r"attention": r"flash|fmha|attention",
    r"sort|topk|argsort": r"sort|topk|TopK|radix",
    r"scan|cumsum|cumprod": r"[Ss]can|cumsum",
    r"embedding|gather|scatter|index": r"embedding|gather|scatter|index",
    r"transpose|permute|copy|concat": r"direct_copy|CatArray|transpose",
}
"""Patterns of declared operations, and of kernels of libraries that do them."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_UNMANGLED = words(
    """
    void bool char short int long float double signed unsigned const volatile std true false
    anonymous namespace lambda unnamed type operator auto enum class struct __int128 instance
    """
)
"""Words of a readable name that its mangled form abbreviates."""


def library_findings(
    kernels: Iterable[tuple[str, float]], binaries: list[bytes], operations: Iterable[str] = ()
) -> Iterator[Finding]:
    """Yield what a profile shows: names of kernels with microseconds.

    `binaries` are the candidate's own libraries, `operations` what the task declares. Raises Ended
    when a library does most of the work or a declared operation, or when that is disguised.
    """
    profile = _Profile(list(kernels), own_symbols(binaries))
    if profile.total <= 0:
        found = finding("work.unknown", "the profiler saw no kernel")
        raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
    if profile.shadows:
        message = "own kernels have names that only a vendor's library can have"
        found = finding("work.hidden", message, evidence=_listed(profile.shadows))
        raise Ended(Status.CHEATING, Fault.CANDIDATE, found)
    share, evidence = profile.share, _listed(profile.foreign)
    message = f"{share:.0%} of the device time is spent in kernels of libraries"
    if share > _REJECTED and 0 < profile.own / profile.total < _DECOY:
        message += f", {profile.own / profile.total:.1%} in own ones"
        found = finding("work.hidden", message, evidence=evidence)
        raise Ended(Status.CHEATING, Fault.CANDIDATE, found)
    declared = profile.declared(operations)
    if share > _REJECTED or declared:
        if declared:
            message += f"; {declared} is done by a library"
        found = finding("work.library", message, evidence=evidence)
        raise Ended(Status.LIBRARY_WORK, Fault.CANDIDATE, found)
    if share > _WARNED:
        yield finding("work.library", message, evidence=evidence, severity="warning")


def vendor_files(mapped: list[str]) -> list[str]:
    """Return the names of libraries that compute, out of the files that a process has mapped.

    The driver and the CUDA runtime are none of them. A copy under another name is not found.
    """
    names = {path.removesuffix(" (deleted)").rpartition("/")[2] for path in mapped}
    return sorted(name for name in names if VENDOR_FILE.fullmatch(name))


def own_symbols(binaries: list[bytes]) -> str:
    """Return the mangled names of all kernels that are compiled into libraries, one a line.

    From the names of the stubs that launch them on the host. Bytes that are no library of 64 bits
    give none.
    """
    return "\n".join(name for binary in binaries for name in _stubs(binary))


class _Profile:
    """Device time by owner, in microseconds."""

    def __init__(self, kernels: list[tuple[str, float]], symbols: str) -> None:
        lines = symbols.split("\n")
        moved = [k for k in kernels if _TRANSFER.search(k[0]) or _MOVES.search(k[0])]
        computed = [k for k in kernels if k not in moved]
        named = [k for k in computed if LIBRARY.search(k[0])]
        # Kernels of PyTorch come from no header that a solution needs; a name alone is no proof.
        own_named = [k for k in named if not _TORCH.search(k[0]) and _holds(lines, k[0])]
        self.shadows = [k for k in own_named if _CLOSED.search(k[0])]
        self.foreign = [k for k in named if k not in own_named]
        # Copies and fills of results do not count, unless they are most of what is done.
        if _time(moved) > _REJECTED * _time(kernels) and any(_MOVES.search(k[0]) for k in moved):
            self.foreign += moved
            computed = kernels
        self.total = _time(computed)
        self.own = self.total - _time(self.foreign)

    @property
    def share(self) -> float:
        """Share of libraries."""
        return _time(self.foreign) / self.total

    def declared(self, operations: Iterable[str]) -> str:
        """Return a declared operation that kernels of libraries spend a share of the time on."""
        for operation in operations:
            for pattern, kernel in _OPERATIONS.items():
                if re.search(pattern, operation):
                    spent = _time([k for k in self.foreign if re.search(kernel, k[0])])
                    if spent > _WARNED * self.total:
                        return operation
        return ""


def _time(kernels: list[tuple[str, float]]) -> float:
    return sum(spent for _, spent in kernels)


def _listed(kernels: list[tuple[str, float]]) -> str:
    return "\n".join(f"{spent:10.1f} us  {name[:160]}" for name, spent in kernels[:8])


def _is_own(name: str, own: str) -> bool:
    """Whether every identifier of a readable kernel name occurs in one own, mangled name."""
    return _holds(own.split("\n"), name)


def _holds(lines: list[str], name: str) -> bool:
    found = {w for w in _WORD.findall(_without_parameters(name)) if w not in _UNMANGLED}
    parts = [f"{len(word)}{word}" for word in found]
    return bool(parts) and any(all(part in line for part in parts) for line in lines)


def _without_parameters(name: str) -> str:
    """Return a readable name up to its list of parameters."""
    name = name.replace("(anonymous namespace)", "")
    depth = 0
    for position, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            return name[:position]
    return name


def _stubs(binary: bytes) -> Iterator[str]:
    """Yield names with `__device_stub__` from the tables of names that symbols of an ELF use."""
    if binary[:6] != b"\x7fELF\x02\x01" or len(binary) < 64:
        return
    (offset,) = struct.unpack_from("<Q", binary, 40)
    size, count = struct.unpack_from("<HH", binary, 58)
    if size < 64 or offset + size * count > len(binary):
        return
    headers = [struct.unpack_from("<IIQQQQI", binary, offset + size * n) for n in range(count)]
    # 2 and 11 are the types of the tables of symbols, whose header names that of their names.
    tables = {header[6] for header in headers if header[1] in (2, 11)}
    for header in (headers[n] for n in sorted(tables) if n < count):
        for name in binary[header[4] : header[4] + header[5]].split(b"\0"):
            if b"__device_stub__" in name:
                yield name.decode("ascii", "replace")
