"""The judge's parts by themselves: tolerance, drawing, comparing, receiving files, signatures."""

import math
import os
import shutil
import threading
import time
from pathlib import Path

import pytest
import torch

from concur.schemas import Solution, Task
from concur.schemas.signature import c_signature, python_signature
from concur.schemas.tensors import DType
from concur.validators.compare import compare_exactly, compare_floats
from concur.validators.compile import compile_solution
from concur.validators.draw import case_of, derive, draw
from concur.validators.ended import errors_of, scrub
from concur.validators.jobs import receive
from concur.validators.lock import DeviceLock
from concur.validators.ownwork import LIBRARY, _is_own, own_symbols
from concur.validators.screens import screen
from concur.validators.timing import summarize
from concur.validators.tolerance import CEILING, reference_cap, relative_tolerance

from .conftest import cpp, task_of


@pytest.fixture(scope="module")
def column_sum() -> Task:
    return task_of("scaled-column-sum")


def changed(task: Task, **argument: object) -> Task:
    """The task with another first argument."""
    plain = task.to_plain()
    plain.pop("id")
    plain["arguments"][0] |= argument
    return Task.from_plain(plain)


def test_tolerance_grows_with_the_root_of_the_sum() -> None:
    one = relative_tolerance(DType.FLOAT32, 1, 0.0)
    assert one == 8 * 2.0**-23
    assert relative_tolerance(DType.FLOAT32, 4096, 0.0) == 64 * one


def test_half_types_accumulate_in_float32() -> None:
    rtol = relative_tolerance(DType.BFLOAT16, 4096, 0.0)
    assert 2 * 2.0**-7 < rtol < 3 * 2.0**-7


def test_tolerance_follows_the_reference_up_to_a_cap() -> None:
    assert relative_tolerance(DType.FLOAT32, 1, 5e-6) == 2e-5
    capped = relative_tolerance(DType.FLOAT32, 1, math.inf)
    assert capped == 4 * reference_cap(DType.FLOAT32, 1) < 2e-4
    assert relative_tolerance(DType.FLOAT32, 1e12, math.inf) == CEILING


def test_allowed_precision_widens_the_tolerance() -> None:
    assert relative_tolerance(DType.FLOAT32, 64, 0.0, ("tf32",)) > 2.0**-8


def test_zeros_fail_under_the_widest_tolerance() -> None:
    oracle = torch.randn(1000, dtype=torch.float64)
    assert compare_floats(torch.zeros(1000), oracle, CEILING).wrong > 900


def test_drawing_repeats_and_differs(column_sum: Task) -> None:
    workload = column_sum.workloads[0]
    cases = [case_of(column_sum, workload, "cpu", label, 7) for label in ("trial-0", "trial-1")]
    first, again, other = (draw(column_sum, c, "cpu") for c in (cases[0], cases[0], cases[1]))
    assert torch.equal(first["x"], again["x"])
    assert not torch.equal(first["x"], other["x"])
    assert not torch.equal(first["scale"], other["scale"])
    assert case_of(column_sum, workload, "cpu", "trial-0", 8).seed != cases[0].seed
    assert 0 <= derive(1, "a") < 1 << 63


def test_sets_of_the_timing_ring_share_parameters(column_sum: Task) -> None:
    workload = column_sum.workloads[0]
    one, two = (
        draw(column_sum, case_of(column_sum, workload, "cpu", label, 7), "cpu")
        for label in ("timed-0", "timed-1")
    )
    assert torch.equal(one["scale"], two["scale"]) and not torch.equal(one["x"], two["x"])


@pytest.mark.parametrize(
    ("dtype", "distribution"),
    [
        ("int8", {"kind": "integers", "low": "-128", "high": "128"}),
        ("float32", {"kind": "uniform", "low": "-0.25", "high": "0.5"}),
        ("bool", {"kind": "bernoulli", "probability": 0.25}),
        ("int64", {"kind": "permutation"}),
        ("int64", {"kind": "offsets", "low": "0", "high": "M*N"}),
        ("bfloat16", {"kind": "normal", "mean": 3.0, "std": 0.5}),
    ],
)
def test_distributions(column_sum: Task, dtype: str, distribution: dict[str, object]) -> None:
    task = changed(column_sum, dtype=dtype, distribution=distribution)
    case = case_of(task, task.workloads[0], "cpu", "trial-0", 3)
    x = draw(task, case, "cpu")["x"]
    assert x.shape == (40, 40) and str(x.dtype) == f"torch.{dtype}"
    match distribution["kind"]:
        case "integers":
            assert int(x.min()) < -100 and int(x.max()) > 100
        case "uniform":
            assert -0.25 <= float(x.min()) < -0.2 and 0.45 < float(x.max()) < 0.5
        case "bernoulli":
            assert 0.15 < float(x.double().mean()) < 0.35
        case "permutation":
            assert torch.equal(x.sort(dim=-1).values, torch.arange(40).expand(40, 40))
        case "offsets":
            assert bool((x.diff(dim=-1) >= 0).all())
            assert x[:, 0].eq(0).all() and x[:, -1].eq(1600).all()
        case _:
            assert 2.8 < float(x.double().mean()) < 3.2


def test_comparison_counts_what_is_not_finite() -> None:
    oracle = torch.tensor([1.0, 2.0, math.inf, math.nan], dtype=torch.float64)
    same = compare_floats(oracle.float(), oracle, 1e-6)
    assert (same.wrong, same.non_finite) == (0, 0)
    off = compare_floats(torch.tensor([math.nan, 2.0, 5.0, math.nan]), oracle, 1e-6)
    assert (off.wrong, off.non_finite) == (2, 1)
    assert off.first_wrong[0] == (0, "nan", "1")


def test_integers_have_to_be_equal() -> None:
    oracle = torch.arange(10)
    assert compare_exactly(oracle.clone(), oracle).wrong == 0
    off = compare_exactly(oracle + (oracle == 7), oracle)
    assert (off.wrong, off.max_abs_error, off.first_wrong) == (1, 1.0, ((7, "8", "7"),))


def test_only_plain_files_of_the_right_size_are_received(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"12345678")
    link = tmp_path / "link"
    link.symlink_to(plain)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert receive(link, 8) is None
    assert receive(fifo, 8) is None
    assert receive(tmp_path / "nothing", 8) is None
    assert receive(plain, 7) is None and receive(plain, 9) is None
    data = receive(plain, 8)
    assert data is not None and bytes(data.tolist()) == b"12345678"
    assert not plain.exists()


def test_signatures(column_sum: Task) -> None:
    assert c_signature(column_sum) == (
        'extern "C" int launch(const float* x, const float* scale, float* y, '
        "int64_t M, int64_t N, void* stream)"
    )
    text = python_signature(column_sum)
    assert "def __init__(self, N: int)" in text and "def forward(self, x: Tensor) -> Tensor" in text
    assert "scale: float32[N]" in text


@pytest.mark.parametrize(
    ("flag", "allowed"),
    [
        ("-O3", True),
        ("-lineinfo", True),
        ("--expt-relaxed-constexpr", True),
        ("-maxrregcount=64", True),
        ("-DTILE=64", True),
        ("--use_fast_math", False),
        ("-use_fast_math", False),
        ("-I/usr/include", False),
        ("-lcublas", False),
        ("-L.", False),
        ("-Xcompiler=-fplugin=x.so", False),
        ("-O3;id", False),
        ("-std=c++17", True),
        ("-include/etc/passwd", False),
    ],
)
def test_flags(column_sum: Task, flag: str, allowed: bool) -> None:
    solution = cpp(column_sum, "flagged", 'extern "C" int launch() { return 0; }')
    plain = solution.to_plain() | {"compile_flags": [flag]}
    plain.pop("id")
    found = list(screen(column_sum, type(solution).from_plain(plain)))
    assert [f.rule for f in found] == ([] if allowed else ["screen.flag"])


def test_evidence_names_no_folder_of_the_machine() -> None:
    text = "in /dev/shm/concur-judge-ab12/solution-1/source/m.py and /usr/lib/python3.12/x.py"
    assert scrub(text.replace("n-1", "n-" + "0a" * 10)) == "in m.py and lib/python3.12/x.py"
    errors = errors_of(
        "a\n[1/2] nvcc\nk.cu(3): error: no x\n  here\n      ^\nb\nninja: build stopped"
    )
    assert errors.startswith("k.cu(3): error: no x\n  here")


def test_kernels_of_libraries_are_known_by_name() -> None:
    for name in (
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)",
        "ampere_sgemm_128x64_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n",
        "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT",
    ):
        assert LIBRARY.search(name), name
    assert not LIBRARY.search("(anonymous namespace)::fused4(float4 const*, float4*)")
    assert not LIBRARY.search("void gelu_sm90_kernel<128>(float*)")


def test_a_kernel_in_the_own_binary_is_own() -> None:
    symbols = "_ZN3cub16DeviceScanKernelIfEEvPf\n_ZN50_GLOBAL__N__k_cu_fused1EPf"
    assert _is_own("void cub::DeviceScanKernel<float>(float*)", symbols)
    assert not _is_own("void at::native::reduce_kernel<512>(float*)", symbols)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_kernels_are_found_in_a_compiled_launcher(tmp_path: Path) -> None:
    source = """namespace {
template <int N> __global__ void twice(float* y) { y[threadIdx.x] *= N; } }
extern "C" int launch(float* y) { twice<2><<<1, 32>>>(y); return cudaGetLastError(); }
"""
    plain = cpp(task_of("scaled-column-sum"), "own", source).to_plain()
    plain.pop("id")
    solution = Solution.from_plain(
        plain
        | {"contract": "cuda_function", "entry": "k.cu"}
        | {"files": [{"path": "k.cu", "content": source}]}
    )
    library = compile_solution(solution, tmp_path, "sm_90", 300)
    assert _is_own("void (anonymous namespace)::twice<2>(float*)", own_symbols([library]))
    assert compile_solution(solution, tmp_path, "sm_90", 0.001) == library


def test_interval_of_a_clear_difference() -> None:
    mine = [10.0 + 0.01 * (i % 7) for i in range(60)]
    base = [20.0 + 0.01 * (i % 5) for i in range(60)]
    timing = summarize("w", mine, base, seed=1)
    assert timing.speedup_low <= timing.speedup <= timing.speedup_high
    assert timing.calls == 60 and abs(timing.speedup - 2.0) < 0.01
    assert timing == summarize("w", mine, base, seed=1)


def test_exclusive_use_waits_and_is_not_starved(tmp_path: Path) -> None:
    path = tmp_path / "gpu.lock"
    events: list[str] = []
    inside = threading.Event()

    def share() -> None:
        with DeviceLock(path).shared():
            inside.set()
            time.sleep(0.2)
            events.append("shared ends")

    def alone() -> None:
        with DeviceLock(path).exclusive():
            events.append("exclusive begins")

    def late() -> None:
        with DeviceLock(path).shared():
            events.append("late shared begins")

    threads = [threading.Thread(target=t) for t in (share, alone, late)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    time.sleep(0.05)
    threads[2].start()
    for thread in threads:
        thread.join()
    assert events == ["shared ends", "exclusive begins", "late shared begins"]
