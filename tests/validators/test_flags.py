"""Compiler flags of launchers: which the screens let through."""

import pytest

from concur.schemas import Solution
from concur.validators.screens import screen

from .conftest import cpp, task_of


@pytest.mark.parametrize(
    ("flag", "allowed"),
    [
        ("-O3", True),
        ("-lineinfo", True),
        ("--expt-relaxed-constexpr", True),
        ("-maxrregcount=64", True),
        ("-DTILE=64", True),
        ("-std=c++17", True),
        ("--use_fast_math", False),
        ("-use_fast_math", False),
        ("-I/usr/include", False),
        ("-lcublas", False),
        ("-L.", False),
        ("-Xcompiler=-fplugin=x.so", False),
        ("-O3;id", False),
        ("-include/etc/passwd", False),
    ],
)
def test_flags(flag: str, allowed: bool) -> None:
    task = task_of("scaled-column-sum")
    plain = cpp(task, "flagged", 'extern "C" int launch() { return 0; }').to_plain()
    plain |= {"compile_flags": [flag]}
    plain.pop("id")
    found = list(screen(task, Solution.from_plain(plain)))
    assert [f.rule for f in found] == ([] if allowed else ["screen.flag"])
