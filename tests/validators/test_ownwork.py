"""Whose kernels took the time: shares, disguises, own symbols, files of vendors."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from concur.schemas.verdict import Finding, Status
from concur.validators.ended import Ended
from concur.validators.ownwork import LIBRARY, library_findings, own_symbols, vendor_files

OWN = "void (anonymous namespace)::fused<4>(float*)"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>(int)"
CUTLASS = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)"


def ended(
    kernels: list[tuple[str, float]], *binaries: bytes, operations: tuple[str, ...] = ()
) -> Ended:
    with pytest.raises(Ended) as caught:
        list(library_findings(kernels, list(binaries), operations))
    return caught.value


def found(kernels: list[tuple[str, float]], *binaries: bytes) -> list[Finding]:
    return list(library_findings(kernels, list(binaries)))


def library(*names: str) -> bytes:
    """The least of an ELF file: a header, a table of names, two section headers."""
    table = b"\0" + b"\0".join(name.encode() for name in names) + b"\0"
    header = b"\x7fELF\x02\x01\x01" + bytes(33) + struct.pack("<Q", 64 + len(table)) + bytes(10)
    header += struct.pack("<HHH", 64, 2, 0)
    symbols = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 0, 0, 1, 0, 0, 24)
    strings = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(table), 0, 0, 0, 0)
    return header + table + symbols + strings


@pytest.mark.parametrize(
    ("kernels", "severities"),
    [
        ([(OWN, 10.0)], []),
        ([(OWN, 99.0), (ADD, 1.0)], []),
        ([(OWN, 80.0), (ADD, 20.0)], ["warning"]),
        ([(OWN, 60.0), (COPY, 40.0), ("Memset (Device)", 9.0)], []),
        ([(OWN, 10.0), ("Memcpy DtoD", 90.0)], []),
    ],
)
def test_small_shares_of_libraries_pass(
    kernels: list[tuple[str, float]], severities: list[str]
) -> None:
    assert [f.severity for f in found(kernels)] == severities


@pytest.mark.parametrize(
    ("kernels", "status"),
    [
        ([(ADD, 10.0)], Status.LIBRARY_WORK),
        ([(OWN, 40.0), (GEMM, 60.0)], Status.LIBRARY_WORK),
        ([(OWN, 1.0), (GEMM, 60.0)], Status.CHEATING),
        ([(COPY, 10.0)], Status.LIBRARY_WORK),
        ([(OWN, 0.2), (COPY, 10.0)], Status.CHEATING),
        ([(OWN, 4.0), (COPY, 10.0)], Status.LIBRARY_WORK),
        ([], Status.UNDECIDED),
        ([("Memcpy HtoD", 5.0)], Status.UNDECIDED),
    ],
)
def test_work_of_libraries_is_refused(kernels: list[tuple[str, float]], status: Status) -> None:
    assert ended(kernels).status is status


def test_kernels_of_libraries_are_known_by_name() -> None:
    nvjet = "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT"
    for name in (ADD, COPY, GEMM, CUTLASS, "ampere_sgemm_128x64_tn", nvjet):
        assert LIBRARY.search(name), name
    assert not LIBRARY.search("(anonymous namespace)::fused4(float4 const*, float4*)")
    assert not LIBRARY.search("void gelu_sm90_kernel<128>(float*)")


def test_a_declared_operation_by_a_library_is_library_work_at_a_smaller_share() -> None:
    end = ended([(OWN, 70.0), (GEMM, 30.0)], operations=("relu", "matmul"))
    assert end.status is Status.LIBRARY_WORK and "matmul is done" in end.findings[0].message
    assert found([(OWN, 70.0), (GEMM, 30.0)])[0].severity == "warning"


def test_kernels_of_headers_are_own_when_the_own_binary_holds_them() -> None:
    stub = "_ZL50__device_stub__ZN7cutlass7Kernel2I36cutlass_80_simt_sgemm_128x64_8x5_nn_align1EEv"
    stub = stub.replace("36cutlass", f"{len('cutlass_80_simt_sgemm_128x64_8x5_nn_align1')}cutlass")
    assert found([(CUTLASS, 10.0)], library(stub)) == []
    # The same template by another argument is the library's.
    other = stub.replace("128x64", "256x64")
    assert ended([(CUTLASS, 10.0)], library(other)).status is Status.LIBRARY_WORK


def test_a_name_of_pytorch_in_the_own_binary_proves_nothing() -> None:
    words = ("at", "native", "vectorized_elementwise_kernel", "AddFunctor")
    stub = "__device_stub__Z" + "".join(f"{len(word)}{word}" for word in words)
    assert ended([(ADD, 10.0)], library(stub)).status is Status.LIBRARY_WORK


def test_an_own_kernel_with_a_name_of_a_vendor_is_a_disguise() -> None:
    stub = f"_ZL60__device_stub__Z{len(GEMM)}{GEMM}PfS_"
    end = ended([(GEMM, 10.0), (OWN, 50.0)], library(stub))
    assert end.status is Status.CHEATING and end.findings[0].rule == "work.hidden"


def test_hostile_libraries_have_no_symbols() -> None:
    whole = library("__device_stub__Z1kv", "other")
    assert own_symbols([whole]) == "__device_stub__Z1kv"
    for length in range(0, len(whole), 7):
        assert "other" not in own_symbols([whole[:length]])
    for position in range(len(whole)):
        own_symbols([whole[:position] + b"\xff" + whole[position + 1 :]])


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_stubs_are_found_in_a_compiled_library(tmp_path: Path) -> None:
    source, target = tmp_path / "k.cu", tmp_path / "k.so"
    source.write_text(
        "namespace { template <int N> __global__ void fused(float* y) { *y *= N; } }\n"
        'extern "C" int launch(float* y) { fused<4><<<1, 1>>>(y); return cudaGetLastError(); }\n'
    )
    command = ["nvcc", "-shared", "-Xcompiler=-fPIC", "-arch=sm_90", "-o", str(target), str(source)]
    subprocess.run(command, check=True, timeout=300)
    assert "5fusedILi4E" in own_symbols([target.read_bytes()])


def test_files_of_vendors_are_told_from_the_driver() -> None:
    mapped = [
        "/usr/lib/libcuda.so.580.1",
        "/usr/local/cuda/lib64/libcublasLt.so.13",
        "/a/libcudnn_ops.so.9 (deleted)",
        "/a/libcudart.so.13",
        "/usr/lib/libnvidia-ptxjitcompiler.so.1",
        "/usr/lib/libc.so.6",
        "/usr/lib/libstdc++.so.6",
        "/a/libtorch_cuda.so",
        "/a/libnvrtc-builtins.so.13.0",
        "[heap]",
        "/memfd:library (deleted)",
    ]
    expected = ["libcublasLt.so.13", "libcudnn_ops.so.9", "libnvrtc-builtins.so.13.0"]
    assert vendor_files(mapped) == [*expected, "libtorch_cuda.so"]
