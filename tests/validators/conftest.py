"""Judging in the tests: each sample once a session, through the real child."""

from pathlib import Path

import pytest

from concur.schemas import Solution, Task, Verdict
from concur.validators.judge import JudgeOptions, Timeouts
from tests.sampling import KINDS, SAMPLES, SampleCase, cases, task_of
from tests.table_runs import run, sessions

__all__ = ["LIMITS", "ON_CPU", "SAMPLES", "cpp", "name_of", "task_of"]

LIMITS = Timeouts(compile=30, load=10, run=8)
ON_CPU = [case for kind in KINDS for case in cases(kind) if case.runs_on("cpu")]
"""Every sample that needs no GPU."""
_PROCESSES = 2  # CI has two cores
_ALWAYS = {"good/row-order/std-sort", "good/scaled-column-sum/by-row"}


def name_of(case: SampleCase) -> str:
    """Return the name of a sample in tests: kind, task and slug."""
    return f"{case.kind}/{case.key}"


def cpp(task: Task, name: str, source: str) -> Solution:
    """Return a solution in C++."""
    return Solution.from_plain(
        {
            "name": name,
            "task_id": task.id,
            "contract": "cpp_function",
            "entry": "kernel.cpp",
            "origin": {"method": "authored", "license": "Apache-2.0"},
            "files": [{"path": "kernel.cpp", "content": source}],
        }
    )


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build cache of this session."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def verdicts(request: pytest.FixtureRequest, cache: Path) -> dict[str, Verdict]:
    """Verdicts on the samples that the chosen tests are about, by kind, task and slug."""
    about = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = [c.params.get("case") for c in about if c is not None]
    asked = {name_of(case) for case in chosen if isinstance(case, SampleCase)}
    wanted = [case for case in ON_CPU if name_of(case) in asked | _ALWAYS]
    options = JudgeOptions(device="cpu", timeouts=LIMITS, build_cache=cache)
    judged = run(sessions(wanted, 1, set()), options, _PROCESSES)
    return {name_of(j.case): j.verdict for j in judged}


@pytest.fixture(scope="session")
def good(verdicts: dict[str, Verdict]) -> dict[str, Verdict]:
    """Verdicts on samples that are right, by task and slug; two are always there."""
    return {n.removeprefix("good/"): v for n, v in verdicts.items() if n.startswith("good/")}
