"""What a failing child or a foreign answer means: whose fault it is, what a record holds of it."""

from pathlib import Path
from typing import Any

import pytest

from concur.errors import JudgeError
from concur.validators.ended import ended_by, finding
from concur.validators.failures import ChildDied
from concur.validators.isolation import private_folder
from concur.validators.process import _has_shape, signal_name


def test_what_the_machine_lacks_is_nobody_elses_fault() -> None:
    killed = ended_by(ChildDied("was killed by SIGKILL", killed=True), "run.failed", "w")
    assert (killed.status.value, killed.fault.value) == ("undecided", "infrastructure")
    crashed = ended_by(ChildDied("was killed by SIGSEGV"), "run.failed", "w")
    assert (crashed.status.value, crashed.fault.value) == ("runtime_error", "candidate")


def test_texts_that_no_record_could_hold_are_scrubbed() -> None:
    assert finding("run.failed", "lone \ud800 surrogate").message == "lone ? surrogate"
    assert signal_name(40) == "signal 40"


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
