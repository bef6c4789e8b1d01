"""Judging in the tests: each folder of samples once a session, through the real child."""

from pathlib import Path

import pytest

from concur.builders.folder import read_sample
from concur.schemas import Solution, Task, Verdict
from concur.validators.judge import JudgeOptions, Timeouts, judge

SAMPLES = Path(__file__).parent.parent / "samples"
LIMITS = Timeouts(compile=120, load=60, run=8)


def judged(folder: Path, cache: Path) -> dict[str, Verdict]:
    """Return the verdict on each solution of a sample, by the solution's name."""
    sample = read_sample(folder).sample
    assert sample is not None, folder
    names = {s.id: s.name for s in sample.solutions}
    options = JudgeOptions(device="cpu", timeouts=LIMITS, build_cache=cache)
    verdicts = judge(sample.task, sample.solutions, options)
    return {names[v.solution_id]: v for v in verdicts}


def task_of(name: str, kind: str = "good") -> Task:
    """Return the task of a sample."""
    sample = read_sample(SAMPLES / kind / name).sample
    assert sample is not None
    return sample.task


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
def good(cache: Path) -> dict[str, Verdict]:
    """Verdicts on tests/samples/good, by task and solution."""
    return {
        f"{task}/{name}": verdict
        for task in ("scaled-column-sum", "row-order")
        for name, verdict in judged(SAMPLES / "good" / task, cache).items()
    }


@pytest.fixture(scope="session")
def faults(cache: Path) -> dict[str, Verdict]:
    """Verdicts on tests/samples/faults."""
    return judged(SAMPLES / "faults" / "scaled-column-sum", cache)


@pytest.fixture(scope="session")
def cheats(cache: Path) -> dict[str, Verdict]:
    """Verdicts on tests/samples/cheats."""
    return judged(SAMPLES / "cheats" / "scaled-column-sum", cache)
