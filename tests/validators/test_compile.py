"""Compiling in a child: what it gives, what it keeps, and what hostile sources get out of it."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from concur.schemas import Solution, Status
from concur.schemas.task import Program
from concur.schemas.verdict import Fault
from concur.validators import compile as compiling
from concur.validators.compile import compile_reference, compile_solution
from concur.validators.ended import Ended
from concur.validators.inside.compiling import quotable
from concur.validators.store import Store

GOOD = 'extern "C" int launch() { return 7; }\n'
KEY = "a" * 64
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def solution(source: str, *flags: str, **files: str) -> Solution:
    """A solution in C++ with flags and further files."""
    name = files.pop("name", "kernel.cpp")
    listed = {name: source, **files}
    return Solution.from_plain(
        {
            "name": "compiled",
            "task_id": "task-" + "0" * 20,
            "contract": "cuda_function" if name.endswith(".cu") else "cpp_function",
            "entry": name,
            "compile_flags": list(flags),
            "origin": {"method": "authored", "license": "Apache-2.0"},
            "files": [{"path": p, "content": c} for p, c in sorted(listed.items())],
        }
    )


def built(source: Solution, cache: Path, timeout: float = 100.0) -> bytes:
    return compile_solution(source, cache, "sm_90", timeout)


def refused(source: Solution, cache: Path, timeout: float = 100.0) -> Ended:
    with pytest.raises(Ended) as ended:
        built(source, cache, timeout)
    return ended.value


def test_a_library_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = built(solution(GOOD), tmp_path)
    assert library.startswith(b"\x7fELF") and b"launch" in library
    monkeypatch.setattr(compiling, "build", None)
    assert built(solution(GOOD), tmp_path) == library


def test_a_spoilt_entry_is_built_again(tmp_path: Path) -> None:
    library = built(solution(GOOD), tmp_path)
    (entry,) = tmp_path.glob("*.so")
    entry.write_bytes(library + b"more")
    assert built(solution(GOOD), tmp_path) == library
    assert [p.read_bytes() for p in tmp_path.glob("*.so")] == [library]


@pytest.mark.parametrize("change", ["source", "flags", "files", "entry"])
def test_another_build_has_another_key(tmp_path: Path, change: str) -> None:
    built(solution(GOOD, more="int x;"), tmp_path)
    other = {
        "source": solution(GOOD + "int y;", more="int x;"),
        "flags": solution(GOOD, "-DX", more="int x;"),
        "files": solution(GOOD, more="int z;"),
        "entry": solution(GOOD, more="int x;", name="other.cpp"),
    }[change]
    built(other, tmp_path)
    assert len(list(tmp_path.glob("*.so"))) == 2


@needs_nvcc
def test_a_cuda_launcher_is_built(tmp_path: Path) -> None:
    source = "__global__ void k(int* p) { *p = 1; }\n" + GOOD
    assert b"_Z1kPi" in built(solution(source, name="kernel.cu"), tmp_path)


@needs_nvcc
def test_errors_of_nvcc_name_the_solutions_file(tmp_path: Path) -> None:
    source = "__global__ void k(int* p) { *p = missing; }\n" + GOOD
    ended = refused(solution(source, name="kernel.cu"), tmp_path)
    assert ended.status is Status.COMPILE_ERROR and ended.fault is Fault.CANDIDATE
    assert ended.findings[0].message.startswith('kernel.cu(1): error: identifier "missing"')


def test_errors_name_the_solutions_file(tmp_path: Path) -> None:
    ended = refused(solution("int launch() { return missing; }\n"), tmp_path)
    assert ended.findings[0].message.startswith("kernel.cpp:1:23: error:")
    assert str(tmp_path) not in ended.findings[0].evidence
    assert "concur-home" not in ended.findings[0].evidence


def test_a_missing_symbol_is_told(tmp_path: Path) -> None:
    source = solution('int other(); extern "C" int launch() { return other(); }', "-Wl,-z,defs")
    assert "undefined reference" in refused(source, tmp_path).findings[0].evidence


def test_endless_templates_end_by_time(tmp_path: Path) -> None:
    source = "template <long N> struct S { static const long v = S<N+1>::v + S<N+2>::v; };\n"
    source += "long x = S<0>::v;\n"
    ended = refused(solution(source, "-ftemplate-depth=2000000000"), tmp_path, 2.0)
    assert ended.status is Status.TIMEOUT and ended.findings[0].rule == "compile.timeout"


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "#include </etc/passwd>",
        '#include "../../../../../../../../etc/passwd"',
        '#line 1 "/usr/include/stdio.h"\n#include "/etc/passwd"',
        'const char* x =\n#include "/etc/passwd"\n;',
        'asm(".include \\"/etc/passwd\\"");',
    ],
)
def test_files_of_the_machine_are_not_quoted(tmp_path: Path, line: str) -> None:
    ended = refused(solution(f"{line}\n{GOOD}"), tmp_path)
    said = " ".join(f.message + f.evidence for f in ended.findings)
    assert ended.status is Status.COMPILE_ERROR
    assert "root" not in said and "/bin/" not in said


@needs_nvcc
def test_files_of_the_machine_are_not_quoted_by_nvcc(tmp_path: Path) -> None:
    ended = refused(solution(f'#include "/etc/passwd"\n{GOOD}', name="kernel.cu"), tmp_path)
    said = " ".join(f.message + f.evidence for f in ended.findings)
    assert "root" not in said and "/bin/" not in said


@pytest.mark.parametrize("flag", ["-Wl,@/etc/passwd", "-Xcompiler=@/etc/passwd", "-optf=x"])
def test_flags_from_files_are_refused(tmp_path: Path, flag: str) -> None:
    assert "reads flags from a file" in refused(solution(GOOD, flag), tmp_path).findings[0].message


def test_the_judges_environment_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden.h").write_text("#define HIDDEN 1\n")
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path))
    ended = refused(solution(f"#include <hidden.h>\n{GOOD}"), tmp_path / "cache")
    assert "hidden.h: No such file" in ended.findings[0].message


def test_folders_outside_the_toolchain_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "secret.h").write_text("#define SECRET 1\n")
    ended = refused(solution(f'#include "{tmp_path}/secret.h"\n{GOOD}'), tmp_path / "cache")
    assert ended.status is Status.COMPILE_ERROR


def test_a_compiler_that_is_missing_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "tool_version", lambda _: "")
    ended = refused(solution(GOOD), tmp_path)
    assert ended.fault is Fault.INFRASTRUCTURE and ended.findings[0].rule == "compile.tool"


def test_a_reference_that_does_not_compile_is_the_tasks(tmp_path: Path) -> None:
    with pytest.raises(Ended) as ended:
        compile_reference(Program.from_plain({"language": "c", "source": "int x"}), tmp_path, 60)
    assert ended.value.status is Status.INVALID_TASK and ended.value.fault is Fault.TASK


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert built(solution(GOOD), blocked / "cache").startswith(b"\x7fELF")


def test_a_full_disk_means_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fdopen", full)
    store = Store(tmp_path)
    store.put(KEY, b"library")
    assert store.get(KEY) is None and list(tmp_path.iterdir()) == []


def test_the_oldest_entries_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path, most_bytes=30)
    for number, key in enumerate("abc"):
        store.put(key * 64, bytes(10))
        (entry,) = tmp_path.glob(f"{key * 64}-*")
        os.utime(entry, (number, number))
    assert store.get("a" * 64) == bytes(10)  # Now the youngest.
    store.put("d" * 64, bytes(10))
    assert [store.get(key * 64) is not None for key in "abcd"] == [True, False, True, True]


def test_output_is_cut_and_relative(tmp_path: Path) -> None:
    text = quotable(f"{tmp_path}/a.cpp:1:1: error: x\n" + "y\n" * 100_000, tmp_path, tmp_path)
    assert text.startswith("a.cpp:1:1: error: x\n") and len(text) < 66_000
