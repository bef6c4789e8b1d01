"""Emptying kernels: what a text looks like afterwards, and that it still compiles."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from concur.validators.ghost import emptied

CORPUS = Path(__file__).parents[2] / "builders" / "corpus"
K = "__global__ void k(float* x)"

# Kernels write WORK where they must not any more, and everything else writes KEPT.
CASES = {
    "plain": f"{K} {{ WORK; }} int KEPT;",
    "two": f"{K} {{ WORK; }} {K} {{ WORK; }} int KEPT;",
    "braces": f"{K} {{ if (a) {{ WORK; }} else {{ WORK; }} }} int KEPT;",
    "comment": f"{K} {{ /* }} */ WORK; // }}\n WORK; }} int KEPT;",
    "string": f'{K} {{ f("}}\\"}}"); WORK; }} int KEPT;',
    "raw string": f'{K} {{ f(R"x(}}}})x"); WORK; }} int KEPT;',
    "character": f"{K} {{ c = '}}'; d = '\\''; WORK; }} int KEPT;",
    "digit separator": f"{K} {{ n = 1'000; WORK; m = 2'0; }} int KEPT;",
    "in a comment": f"// {K}\n/* {K} */ void KEPT() {{ KEPT; }}",
    "in a string": f'const char* KEPT = "{K}"; void f() {{ KEPT; }}',
    "in a raw string": f'const char* KEPT = R"({K} {{ KEPT; }})"; void f() {{ KEPT; }}',
    "declaration": f"{K}; void f() {{ KEPT; }}",
    "template": "template <int N = (1 > 0)> __global__ void k(T<N> x) { WORK; } int KEPT;",
    "specialisation": "template <> __global__ void k<float>(float* x) { WORK; } int KEPT;",
    "instantiation": "template __global__ void k<float>(float*); void f() { KEPT; }",
    "launch bounds": "__global__ void __launch_bounds__(2 * (N)) k(int a) { WORK; } int KEPT;",
    "attribute": "__attribute__((global)) void k(int a) { WORK; } void f() { KEPT; }",
    "macro of attribute": "#define G __attribute__((global))\nG void k() { WORK; } int KEPT;",
    "order": 'extern "C" void __global__ k(int a) { WORK; } int KEPT;',
    "default arguments": "__global__ void k(int4 a = int4{1}, F f = [] { return 1; }) { WORK; }",
    "lambda": f"{K} {{ auto f = [&](int i) {{ WORK; }}; f(1); }} int KEPT;",
    "macro": "#define KERNEL __global__\nKERNEL void k(int a) { WORK; } int KEPT;",
    "macro of a macro": "#define A __global__\n#define B static A\nB void k() { WORK; } int KEPT;",
    "macro with a name": "#define D(n) __global__ void n\nD(k)(int a) { WORK; } int KEPT;",
    "macro of a head": "#define D(n) __global__ void n(int a)\nD(k) { WORK; } int KEPT;",
    "macro of all": "#define D(n) \\\n __global__ void n() { \\\n WORK; }\nD(k) int KEPT;",
    "macro with opening": "#define B(n) __global__ void n() { WORK;\nB(k) WORK; } int KEPT;",
    "macros of both": (
        "#define B(n) __global__ void n() { WORK; {\n#define E } }\nB(k) WORK; E int KEPT;"
    ),
    "conditional macro": (
        "#ifdef X\n#define G __global__\n#else\n#define G\n#endif\nG void k() { WORK; } int KEPT;"
    ),
    "two heads": (
        "#ifdef X\n__global__ void k(int a) {\n#else\n__global__ void k() {\n#endif\n"
        "WORK; if (a) { WORK; } } int KEPT;"
    ),
    "branches with braces": (
        f"{K} {{\n#ifdef X\n if (a) {{\n#else\n if (b) {{\n#endif\n WORK; }} }} int KEPT;"
    ),
    "dead code": f"{K} {{\n#if 0\n don't {{ {{\n#else\n WORK;\n#endif\n WORK; }} int KEPT;",
    "dead kernel": f"#if 0\n{K} {{\n#endif\nvoid f() {{ KEPT; }}",
    "nested dead code": f"{K} {{\n#if 0\n#if A\n }} }}\n#else\n#endif\n#endif\n WORK; }} int KEPT;",
    "define inside": f"{K} {{\n#define KEPT 1\n WORK; }} int a = KEPT;",
    "include inside": f'{K} {{\n#include "WORK.inc"\n#pragma unroll WORK\n }} int KEPT;',
    "continued line": "__glo\\\nbal__ void k() { WORK; } int KEPT;",
    "digraphs": "__global__ void k() <% WORK; %> int KEPT;",
    "namespace": f"namespace a {{ {K} {{ WORK; }} void f() {{ KEPT; }} }}",
    "no end": f"int KEPT; {K} {{ WORK;",
    "host after": f"{K} {{ WORK; }}\nvoid f() {{ k<<<1, {{KEPT}}>>>(x); }}",
}


@pytest.mark.parametrize("name", CASES)
def test_only_kernels_are_emptied(name: str) -> None:
    source = CASES[name]
    text = emptied(source)
    assert "WORK" not in text
    assert text.count("KEPT") == source.count("KEPT")
    assert [len(line) for line in text.split("\n")] == [len(line) for line in source.split("\n")]


def test_macros_of_other_files_count() -> None:
    source = "KERNEL void k() { WORK; }"
    assert "WORK" not in emptied(source, ["#define KERNEL __global__\n"])
    assert emptied(source) == source


def test_emptying_twice_changes_nothing() -> None:
    for source in CASES.values():
        assert emptied(emptied(source)) == emptied(source)


def test_long_and_broken_texts_take_no_time() -> None:
    for part in ("{", "__global__ ", "#if 0\n", "#define A A {\n", "(", "__global__ void k() {"):
        emptied(part * 20_000)


def _kernel_texts() -> dict[str, str]:
    """CUDA texts of the corpus, by where they are from."""
    found = {}
    for path in sorted(CORPUS.glob("*/solutions/*/*.cu")):
        found[str(path.relative_to(CORPUS))] = path.read_text(encoding="utf-8")
    for path in sorted(CORPUS.glob("*/solutions/*/*.py")):
        texts = [
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        for number, text in enumerate(t for t in texts if "__global__" in t):
            found[f"{path.relative_to(CORPUS)}:{number}"] = text
    return found


TEXTS = _kernel_texts()
PLAIN = [name for name in TEXTS if name.endswith(".cu")]


def _compile(text: str, folder: Path) -> None:
    source = folder / "kernel.cu"
    source.write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-arch=sm_90", "-c", "-o", str(folder / "kernel.o")]
    run = subprocess.run(["nvcc", *flags, str(source)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_kernel_of_the_corpus_is_emptied() -> None:
    assert TEXTS
    for name, text in TEXTS.items():
        assert emptied(text) != text, name
        assert "threadIdx" not in emptied(text).split("__device__")[0], name


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.long] if i > 1 else []) for i, n in enumerate(PLAIN)],
)
def test_emptied_kernels_compile(name: str, tmp_path: Path) -> None:
    _compile(emptied(TEXTS[name]), tmp_path)
