"""Extensions that a module asks for: built by the judge, loaded by the child that asked."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concur.schemas import Solution
from concur.validators import builds
from concur.validators.arena import take
from concur.validators.builds import MOST_BUILDS, Builder
from concur.validators.compile import Built
from concur.validators.failures import ChildError
from concur.validators.process import Child, ChildSettings

FILE = {"path": "extensions/e/main.cpp", "content": "int x;"}
NEED: dict[str, Any] = {
    "need": "build",
    "nonce": "n",
    "name": "e",
    "files": [FILE],
    "sources": [FILE["path"]],
    "flags": {"extra_cflags": ["-O2"], "extra_cuda_cflags": [], "extra_ldflags": []},
    "include": [],
    "with_cuda": False,
    "architectures": "",
}
BODY = """
from torch.utils.cpp_extension import load_inline
source = "#include <torch/extension.h>\\nint seven() { return SEVEN; }"
flags = {"extra_cflags": ["-DSEVEN=7", "-O0"], "no_implicit_headers": True}
first = load_inline("small", [source], functions="seven", **flags)
again = load_inline("small", [source], functions="seven", **flags)
assert first is again and first.seven() == 7
class ModelNew: pass
"""
WRONG = """
from torch.utils.cpp_extension import load_inline
load_inline("wrong", ["int seven() { return missing; }"], no_implicit_headers=True)
"""


def solution() -> Solution:
    return Solution.from_plain(
        {
            "name": "module",
            "task_id": "task-" + "0" * 20,
            "contract": "model_new",
            "entry": "model.py",
            "origin": {"method": "authored", "license": "Apache-2.0"},
            "files": [{"path": "model.py", "content": "x"}],
        }
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The jobs of build children, which are not started: the library is the first text."""
    jobs: list[dict[str, Any]] = []

    def built(do: str, _program: str, _timeout: float, env: dict[str, str], **job: Any) -> Built:
        jobs.append({"do": do, "env": env, **job})
        text = job["files"][0]["content"]
        return Built(code=1, output="no") if text == "wrong" else Built(text.encode())

    monkeypatch.setattr(builds, "build", built)
    monkeypatch.setattr(builds, "required", lambda tool: tool)
    yield jobs


def answered(to: Builder, **changes: Any) -> tuple[str, bytes]:
    answer, descriptors = to.answer({**NEED, **changes}, [])
    libraries = [take(d, 1 << 20) for d in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    return answer.get("error", ""), b"".join(libraries)


def test_a_build_is_answered_with_a_library(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    to = Builder(solution(), tmp_path, "sm_90a", 9.0)
    assert answered(to) == ("", b"int x;")
    assert to.libraries == [b"int x;"] and to.sources == [{FILE["path"]: "int x;"}]
    assert asked[0]["env"]["TORCH_CUDA_ARCH_LIST"] == "9.0a"


def test_the_same_build_is_done_once(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    for _ in range(2):
        assert answered(Builder(solution(), tmp_path, "sm_90", 9.0))[1] == b"int x;"
    answered(Builder(solution(), tmp_path, "sm_90", 9.0), with_cuda=True)
    answered(Builder(solution(), tmp_path, "sm_90", 9.0), architectures="8.0")
    assert len(asked) == 3


def test_a_failed_build_is_told_and_not_kept(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    to = Builder(solution(), tmp_path, "sm_90", 9.0)
    wrong = [{**FILE, "content": "wrong"}]
    assert answered(to, files=wrong) == ("no", b"") == answered(to, files=wrong)
    assert len(asked) == 2 and to.libraries == []


def test_builds_have_an_end(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    to = Builder(solution(), tmp_path, "sm_90", 9.0)
    errors = [answered(to)[0] for _ in range(MOST_BUILDS + 1)]
    assert not any(errors[:-1]) and "more than 8" in errors[-1]


def test_texts_are_changed_before_they_are_built(
    tmp_path: Path, asked: list[dict[str, Any]]
) -> None:
    to = Builder(solution(), tmp_path, "sm_90", 9.0)
    to.transform = str.upper
    assert answered(to)[1] == b"INT X;"


@pytest.mark.parametrize(
    "change",
    [
        {"need": "money"},
        {"name": "../e"},
        {"name": None},
        {"files": "x"},
        {"files": [{"path": "/etc/x", "content": ""}]},
        {"files": [{"path": "a/../../x", "content": ""}]},
        {"files": [{"path": "a", "content": 3}]},
        {"files": [{**FILE, "content": "x" * 5_000_000}]},
        {"sources": []},
        {"sources": ["other.cpp"]},
        {"flags": None},
        {"flags": {**NEED["flags"], "extra_cflags": ["-a\nrule x"]}},
        {"flags": {**NEED["flags"], "extra_cflags": ["-x"] * 1000}},
        {"flags": {**NEED["flags"], "extra_ldflags": ["-Wl,@/etc/passwd"]}},
        {"include": ["/etc"]},
        {"architectures": "9.0\n"},
    ],
)
def test_a_strange_request_is_refused(
    tmp_path: Path, asked: list[dict[str, Any]], change: dict[str, Any]
) -> None:
    error, library = answered(Builder(solution(), tmp_path, "sm_90", 9.0), **change)
    assert error.startswith("no such build") and not library and not asked


@pytest.mark.long
def test_a_module_builds_through_the_judge(tmp_path: Path) -> None:
    to = Builder(solution(), tmp_path, "sm_90", 500.0)
    with Child(ChildSettings("torch", "cpu")) as child:
        child.needs = to.answer
        job: Any = {
            "slot": "s",
            "kind": "module",
            "entry": "m.py",
            "name": "ModelNew",
            "module": "m",
        }
        child.ask("load", 590, files=[{"path": "m.py", "content": BODY}], **job)
        assert len(to.libraries) == 1
        with pytest.raises(ChildError, match=r"Error building extension 'wrong'(.|\n)*missing"):
            child.ask("load", 590, files=[{"path": "m.py", "content": WRONG}], **job)
