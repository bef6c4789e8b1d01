"""What a failing child or a foreign answer means: whose fault it is, what a record holds of it."""

from pathlib import Path
from typing import Any

import pytest

from concur.errors import JudgeError
from concur.validators.ended import ended_by, errors_of, finding, scrub
from concur.validators.failures import ChildDied, ChildUnstarted
from concur.validators.helper import task_fault
from concur.validators.isolation import private_folder
from concur.validators.process import _has_shape, signal_name


def test_what_the_machine_lacks_is_nobody_elses_fault() -> None:
    killed = ended_by(ChildDied("was killed by SIGKILL", killed=True), "run.failed", "w")
    assert (killed.status.value, killed.fault.value) == ("undecided", "infrastructure")
    unstarted = ChildUnstarted("OSError: libcuda.so.1: cannot open shared object file")
    for lost in (ended_by(unstarted, "load.failed", ""), task_fault(unstarted, "oracle", "")):
        assert (lost.status.value, lost.fault.value) == ("undecided", "infrastructure")
        assert [f.rule for f in lost.findings] == ["judge.failed"]
    crashed = ended_by(ChildDied("was killed by SIGSEGV"), "run.failed", "w")
    assert (crashed.status.value, crashed.fault.value) == ("runtime_error", "candidate")


def test_texts_that_no_record_could_hold_are_scrubbed() -> None:
    assert finding("run.failed", "lone \ud800 surrogate").message == "lone ? surrogate"
    assert signal_name(40) == "signal 40"


def test_evidence_names_no_folder_of_the_machine() -> None:
    folder = f"/dev/shm/concur-home-12-ab/solution-{'0a' * 10}/source"
    text = f"in {folder}/m.py and /usr/lib/python3.12/x.py"
    assert scrub(text) == "in m.py and lib/python3.12/x.py"
    errors = errors_of(
        "a\n[1/2] nvcc\nk.cu(3): error: no x\n  here\n      ^\nb\nninja: build stopped"
    )
    assert errors.startswith("k.cu(3): error: no x\n  here")


@pytest.mark.parametrize(
    ("do", "answer", "right"),
    [
        ("call", {"results": [{}], "notes": []}, True),
        ("call", {"results": 5, "notes": []}, False),
        ("call", {"results": [[1, 2]], "notes": []}, False),
        ("call", {}, False),
        ("call", {"error": {"kind": "exception", "text": ""}}, True),
        ("call", {"error": "text"}, False),
        ("profile", {"kernels": [["a", 1.0]]}, True),
        ("profile", {"kernels": [["a", "b"]]}, False),
    ],
)
def test_an_answer_of_another_shape_is_a_forgery(do: str, answer: Any, right: bool) -> None:
    assert _has_shape(do, answer) is right


def test_a_build_cache_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    assert private_folder(tmp_path / "new").stat().st_mode & 0o777 == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for folder in (shared, tmp_path / "link"):
        with pytest.raises(JudgeError, match="remove it, or set TMPDIR"):
            private_folder(folder)
