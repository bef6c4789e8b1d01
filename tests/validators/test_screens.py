"""Screens: what sources show, on which line, and that texts which are not code show nothing."""

import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from concur.builders.folder import read_sample
from concur.schemas.sample import Sample
from concur.schemas.solution import Solution
from concur.validators.screens import hints, screen
from concur.validators.screens_cuda import look_at_cuda
from concur.validators.screens_python import look_at_python

CORPUS = Path(__file__).parent.parent.parent / "builders" / "corpus"
GOOD = Path(__file__).parent.parent / "samples" / "good"

BUILD = "from torch.utils.cpp_extension import load_inline\nload_inline('n', '', a)"

PROSE = """
Never call cublasSgemm(handle) or at::matmul(a, b); don't use torch.softmax(x, -1) either.
Threads such as std::thread t(work); and pthread_create(&t) would outlive the call. It isn't
allowed to fopen("/proc/self/maps", "r"), dlopen("libcublas.so"), system("ls") or fork().
asm volatile("createpolicy.fractional.L2::evict_last.b64 p, 1.0;"); keeps lines in L2.
import threading, ctypes, gc, sys; sys.modules["reference"].Model; torch.cuda.Event = Fake
try: y = kernel(x)
except Exception: y = x @ w  # and cudaStreamCreate(&s); static std::map<void*, float*> cache;
"""


def cuda(text: str) -> list[tuple[str, int, str]]:
    return [(h.rule.removeprefix("screen."), h.line, h.severity) for h in look_at_cuda(text)]


def python(text: str) -> list[tuple[str, int, str]]:
    found = [(h.rule.removeprefix("screen."), h.line, h.severity) for h in look_at_python(text)]
    return sorted(set(found), key=lambda each: each[1:])


def in_forward(*statements: str, before: str = "") -> str:
    """A module with statements in its forward, which begins on line 10."""
    head = ["import torch", "from torch import nn", *before.split("\n")]
    head += [""] * (7 - len(head))
    head += ["class ModelNew(nn.Module):", "    def forward(self, x, w):"]
    return "\n".join(head + [f"        {s}" for s in statements])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void f() {\n  cublasSgemm(h);\n}", [("library-call", 2, "warning")]),
        ("void f() {\n  cubl\\\nasSgemm(h);\n}", [("library-call", 2, "warning")]),
        ("#define MM at::matmul\n", [("library-call", 1, "warning")]),
        ("auto g = &cudnnConvolutionForward;", [("library-call", 1, "warning")]),
        ("#include <cublas_v2.h>\n", [("library-call", 1, "info")]),
        ('#include "cudnn.h"\n', [("library-call", 1, "info")]),
        ("\nauto y = torch::softmax(x, -1);", [("library-call", 2, "warning")]),
        ("#define J(a, b) a##b\nauto y = at::J(mat, mul)(x);", [("library-call", 2, "warning")]),
        ("#define J(a, b) a##b\nint r = J(dl, open)(n, 1);", [("host", 2, "warning")]),
        ("auto y = at::native::foo(x);", [("library-call", 1, "warning")]),
        ("auto y = ::at::_ops::mm::call(x);", [("library-call", 1, "warning")]),
        ("namespace t = at;\nauto y = t::bmm(x, w);", [("library-call", 2, "warning")]),
        (
            "using namespace torch;\nT f() { return matmul(x, w); }",
            [("library-call", 2, "warning")],
        ),
        ("using at::conv2d;", [("library-call", 1, "warning")]),
        ("auto y = x.matmul(w);", [("library-call", 1, "warning")]),
        (
            "T f() { try { k(x); } catch (...) {\n return at::mm(x, w); } }",
            [("library-call", 2, "warning"), ("fallback", 1, "warning")],
        ),
        ("int launch() { return system(c); }", [("host", 1, "warning")]),
        ("int f() {\n std::ifstream in(p); }", [("host", 2, "warning")]),
        ("void* h = dlopen(n, 1);", [("host", 1, "warning")]),
        ("auto p = &dlsym;", [("host", 1, "warning")]),
        ("__attribute__((constructor)) void f() {}", [("host", 1, "warning")]),
        ('void f() { asm("syscall" ::: "memory"); }', [("host", 1, "warning")]),
        ('#include "/proc/self/maps"\n', [("host", 1, "warning")]),
        ("void f() { std::thread t(g); }", [("async", 1, "warning")]),
        ("void f() { pthread_create(&t, 0, g, 0); }", [("async", 1, "warning")]),
        ("void f() { cudaStreamCreate(&s); }", [("async", 1, "warning")]),
        (
            "void f() { cudaStreamCreate(&s); cudaStreamWaitEvent(t, e); }",
            [("async", 1, "info")],
        ),
        (
            'void f() { asm volatile(\n"createpolicy.L2::evict_last" ::); }',
            [("timing", 1, "warning")],
        ),
        ("cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, n);", [("timing", 1, "warning")]),
        (
            'extern "C" cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { return 0; }',
            [("timing", 1, "warning")],
        ),
        ("static std::unordered_map<const void*, T> seen;", [("cache", 1, "info")]),
        ("int f() { static float* kept = nullptr; }", [("cache", 1, "info")]),
    ],
)
def test_cuda_shows(text: str, expected: list[tuple[str, int, str]]) -> None:
    assert cuda(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "// " + PROSE.replace("\n", "\n// "),
        "/*" + PROSE + "*/",
        f'const char* s = R"x({PROSE})x";',
        "const char* s = "
        + "\n".join(f'"{line}"' for line in PROSE.replace('"', "'").split("\n"))
        + ";",
        "#if 0\n" + PROSE + "\n#endif\n",
        "torch::Tensor f(torch::Tensor x) { auto y = torch::empty_like(x); return y; }",
        "const at::cuda::CUDAGuard guard(x.device()); auto s = at::cuda::getCurrentCUDAStream();",
        "__global__ void softmax(float* y) { y[0] = max(expf(1.f), 0.f); }",
        "struct P { float sum; }; void f(P p) { p.sum += 1; file.open(); it->system(); }",
        "static void read_all(int open) { signal(1); } static void signal(int x) {}",
        "static __device__ float* next(float* p) { return p + 1; }",
        "static int count = 0; static bool ready = false; static const int kSize = 4;",
        "cub::BlockReduce<float, 128>(temp).Sum(x); thrust::sort(a, b);",
        'asm volatile("createpolicy.x" :: "r"(1)); asm("ld.global.f32 %0, [%1];" : "=f"(x));',
    ],
)
def test_cuda_that_is_honest_or_no_code_gives_no_warning(text: str) -> None:
    assert [hint for hint in cuda(text) if hint[2] == "warning"] == []


@pytest.mark.parametrize(
    ("statement", "before"),
    [
        ("return torch.matmul(x, w)", ""),
        ("return x @ w", ""),
        ("x @= w", ""),
        ("return x.matmul(w)", ""),
        ("return x.view(-1).sum()", ""),
        ("return torch.empty(3).softmax(0)", ""),
        ("return G.conv2d(x, w)", "from torch.nn import functional as G"),
        ("return conv(x, w)", "from torch.nn.functional import conv2d as conv"),
        ("return softmax(x, -1)", "from torch.nn.functional import *"),
        ("return op(x, w)", "op = torch.mm"),
        ("return getattr(torch, 'mat' + 'mul')(x, w)", ""),
        ("return getattr(torch, NAME)(x, w)", "NAME = 'bmm'"),
        ("return m.matmul(x, w)", "import importlib; m = importlib.import_module('torch')"),
        ("return __import__('torch').mm(x, w)", ""),
        ("return torch.__dict__['mm'](x, w)", ""),
        ("return vars(torch)['mm'](x, w)", ""),
        ("return torch.ops.aten.mm.default(x, w)", ""),
        ("return torch.ops.aten.mm(x, w)", ""),
        ("return torch.Tensor.matmul(x, w)", ""),
        ("return torch._C._nn.gelu(x)", ""),
        ("return torch.linalg.multi_dot([x, w])", ""),
        ("return partial(torch.mm, x)(w)", "from functools import partial"),
        ("return nn.Linear(3, 4)(x)", ""),
        ("f = lambda a: torch.relu(a)", ""),
        ("return torch.compile(f)(x)", ""),
        ("return tl.dot(x, w)", "import triton.language as tl"),
        ("return sys_torch.mm(x, w)", "import sys; sys_torch = sys.modules['torch']"),
    ],
)
def test_python_shows_library_calls(statement: str, before: str) -> None:
    found = python(in_forward(statement, before=before))
    assert any(rule == "library-call" and severity == "warning" for rule, _, severity in found)
    lines = {line for rule, line, _ in found if rule == "library-call"}
    assert lines <= ({3} if "triton" in before else {10})


def test_a_library_operation_that_the_constructor_keeps_is_seen_where_it_is_called() -> None:
    text = """
    import torch
    from torch import nn
    class ModelNew(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(n, n).mul(0.5).exp())
            self.linear = nn.Linear(n, n)
            self.op = torch.mm
        def forward(self, x):
            y = self.linear(x)
            return self.op(y, self.weight)
    """
    found = python(textwrap.dedent(text))
    assert found == [("library-call", 11, "warning"), ("library-call", 12, "warning")]


@pytest.mark.parametrize(
    ("statement", "before", "rule"),
    [
        ("pass", "from reference import Model", "reference"),
        ("pass", "class Other(Model): pass", "reference"),
        ("m = sys.modules['reference']", "import sys", "reference"),
        ("f = sys._getframe(1).f_back.f_locals", "import sys", "reference"),
        ("f = (lambda: 0).__globals__", "", "reference"),
        ("pass", "import gc", "reference"),
        ("pass", "from ctypes import cdll", "reference"),
        ("pass", "__import__('in' + 'spect')", "reference"),
        ("torch.cuda.Event.elapsed_time = f", "", "timing"),
        ("setattr(torch.cuda, 'synchronize', f)", "", "timing"),
        ("time.perf_counter = f", "import time", "timing"),
        ("pass", "allclose = torch; torch.allclose = print", "timing"),
        ("pass", "class Lazy(torch.Tensor): pass", "timing"),
        ("pass", "from unittest import mock", "timing"),
        ("pass", "import threading", "async"),
        ("s = torch.cuda.Stream()", "", "async"),
        ("os.system('ls')", "import os", "host"),
        ("pass", "import subprocess as sp", "host"),
        ("x = torch.load('x.pt')", "", "host"),
        ("with suppress(Exception): pass", "from contextlib import suppress", "fallback"),
    ],
)
def test_python_shows(statement: str, before: str, rule: str) -> None:
    found = python(in_forward(statement, before=before))
    assert (rule, 10 if statement != "pass" else 3, "warning") in found


def test_a_fallback_is_seen_on_the_line_of_its_handler() -> None:
    caught = in_forward("try:", "    return ext.f(x)", "except RuntimeError:", "    return x")
    assert python(caught) == [("fallback", 12, "warning")]
    raised = in_forward("try:", "    return ext.f(x)", "except RuntimeError:", "    raise")
    assert python(raised) == []


@pytest.mark.parametrize(
    "source",
    [
        'A = """\n\n  cublasSgemm(h);\n"""\nload_inline("n", cuda_sources=A)',
        'A = "//\\n" + "\\n" + \\\n  "\\n"\\\n  "cublasSgemm(h);\\n"\n'
        'load_inline("n", cuda_sources=[A])',
        'def f(s):\n  load_inline("n", "", s)\n\n\nf("cublasSgemm(h);")'.replace("\n\n\n", "\n\n"),
        'X = "Sgemm"\n\nA = (\n  f"cublas{X}(h);" f"")\nload_inline("n", "", A)',
        'X = "cublas"\n\n\nA = "%sSgemm(%d);" % (X, 3)\nload_inline("n", "", A)',
        'X = "cublas"\n\n\nA = "{}Sgemm(h);".format(X)\nload_inline("n", "", A)',
        'X = ["cublas", "Sgemm(h);"]\n\n\nload_inline("n", "", "".join(["cublas", "Sgemm(h);"]))',
        'A = ""\n\n\nA += "cublasXgemm(h);".replace("X", "S")\nload_inline("n", "", A)',
        'import textwrap\nA = textwrap.dedent("""\n//\n  cublasSgemm(h);""")\n'
        'load_inline("n", "", A)',
    ],
)
def test_sources_of_cuda_are_put_together(source: str) -> None:
    head = "from torch.utils.cpp_extension import load_inline\n"
    found = [hint for hint in python(head + source) if hint[0] == "library-call"]
    assert [(hint[0], hint[2]) for hint in found] == [("library-call", "warning")]
    assert found[0][1] in (4, 5, 6)


def test_a_source_that_is_not_constant_is_said_to_be_opaque() -> None:
    head = "from torch.utils.cpp_extension import load_inline\n"
    assert python(head + 'load_inline("n", "", decode(blob))') == [("opaque", 2, "info")]
    flags = head + 'load_inline("n", "", "", extra_ldflags=["-lcublas"])'
    assert python(flags) == [("library-call", 2, "warning")]


@pytest.mark.parametrize(
    "text",
    [
        f'"""{PROSE}"""',
        "# " + PROSE.replace("\n", "\n# "),
        f"NOTE = r'''{PROSE}'''\nprint(NOTE)",
        "from torch.utils.cpp_extension import load_inline\n"
        f"SRC = r'''/*{PROSE}*/ __global__ void k() {{}}'''\n"
        "e = load_inline('n', '', SRC, functions=['softmax'])\n"
        "def f(x, w): return e.softmax(x, w)",
        in_forward(f'"""{PROSE}"""', "y = torch.empty_like(x)", "return self.run(y.contiguous())"),
        in_forward("return ext.matmul(x, w)", before="import ext"),
        in_forward("return torch.ops.mine.softmax(x)"),
        in_forward("B, F = x.shape", "return self.softmax(x) + max(B, F)"),
    ],
)
def test_python_that_is_honest_or_no_code_gives_no_hint(text: str) -> None:
    assert python(text) == []


def _samples(root: Path) -> list[Sample]:
    folders = sorted(path.parent for path in root.glob("*/task.json"))
    return [s for s in (read_sample(folder).sample for folder in folders) if s is not None]


def test_the_corpus_is_honest() -> None:
    seen: Counter[str] = Counter()
    for sample in _samples(CORPUS):
        attempts = [a.solution for log in sample.trajectories for a in log.attempts]
        for solution in (*sample.solutions, *attempts):
            seen.update(hint.severity for hint in screen(sample.task, solution))
            seen["solutions"] += 1
    assert seen["solutions"] > 80
    assert seen["error"] == 0 and seen["warning"] == 0


def solution_of(path: str, content: str) -> Solution:
    return Solution.from_plain(
        {
            "name": "hostile",
            "task_id": "task-" + "0" * 20,
            "contract": "model_new" if path.endswith(".py") else "cuda_function",
            "entry": path,
            "files": [{"path": path, "content": content}],
            "origin": {"method": "authored", "license": "Apache-2.0"},
        }
    )


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("m.py", "x = " + "a." * 5000 + "a"),
        ("m.py", "x = " + "-" * 3000 + "1"),
        ("m.py", "x = " + "(" * 300 + ")" * 300),
        ("m.py", "a0 = 'x'\n" + "".join(f"a{i + 1} = a{i} + a{i}\n" for i in range(60)) + BUILD),
        ("m.py", "a0 = torch\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(3000))),
        ("m.py", "a = '%1000000000d' % 3\n" + BUILD),
        ("m.py", "def f(): return f()\n" * 300 + "a = f()\n" + BUILD),
        ("m.py", "a = a + a\na = [a, a]\n" * 500 + BUILD),
        ("k.cu", "catch (" * 30_000),
        ("k.cu", "x a(" * 30_000),
        ("k.cu", "* " * 60_000 + "f()"),
        ("k.cu", "at::" * 50_000),
        ("k.cu", "asm(" * 30_000),
        ("k.cu", "static " * 50_000),
        ("k.cu", "#define a(b) b##b a(\n" * 20_000),
        ("k.cu", "catch(...){" * 20_000),
    ],
)
def test_hostile_sources_take_little_time_and_raise_nothing(path: str, content: str) -> None:
    start = time.process_time()
    list(hints(solution_of(path, content)))
    assert time.process_time() - start < 10
