"""Factories of small valid records and folders, shared by all tests.

Every factory takes changes, so that a test states only what it is about.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concur.builders.folder import read_sample, write_verdict
from concur.schemas import Contract, Sample, Solution, Task, Verdict
from concur.schemas.rules import RULES_VERSION
from concur.starter import STARTER

Factory = Callable[..., Any]

REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y
"""
ORACLE = """def oracle(x, y, **_):
    return y + x
"""
KERNEL = """#include <cstdint>

extern "C" int launch(const float* x, const float* y, float* z, int64_t N, void* stream) {
    for (int64_t i = 0; i < N; ++i) z[i] = x[i] + y[i];
    return 0;
}
"""


def task_header() -> dict[str, Any]:
    """A valid task.json: z = x + y over N elements."""
    tensor = {"dtype": "float32", "shape": ["N"]}
    return {
        "name": "add-vectors",
        "title": "Sum of two vectors",
        "family": "elementwise",
        "operations": ["add"],
        "arguments": [
            {"name": "x", "role": "input", **tensor},
            {"name": "y", "role": "input", **tensor},
        ],
        "results": [{"name": "z", **tensor}],
        "symbols": [{"latex": "x_i", "stands_for": "x", "meaning": "first summand"}],
        "workloads": [
            {"name": "typical", "role": "typical", "axes": {"N": 4096}, "twin": {"N": 64}},
            {"name": "prime", "role": "boundary", "axes": {"N": 4099}, "twin": {"N": 37}},
        ],
        "provenance": {"source": "concur", "license": "Apache-2.0", "group": "add"},
    }


def solution_header() -> dict[str, Any]:
    """A valid solution.json in C++."""
    return {
        "contract": "cpp_function",
        "entry": "kernel.cpp",
        "reasoning_kind": "authored",
        "origin": {"method": "authored", "writer": "unknown", "license": "Apache-2.0"},
    }


@pytest.fixture
def make_task() -> Factory:
    """`make_task(**changes) -> Task` with all three specs."""

    def make(**changes: Any) -> Task:
        texts = {
            "description": "Add two vectors element by element.",
            "program": {"language": "pytorch", "source": REFERENCE},
            "mathematics": "$z_i = x_i + y_i$",
            "oracle": ORACLE,
        }
        return Task.from_plain({**task_header(), **texts, **changes})

    return make


@pytest.fixture
def make_solution(make_task: Factory) -> Factory:
    """`make_solution(task=None, source=KERNEL, **changes) -> Solution` in C++."""

    def make(task: Task | None = None, source: str = KERNEL, **changes: Any) -> Solution:
        plain = {
            **solution_header(),
            "name": "plain-loop",
            "task_id": (task or make_task()).id,
            "files": [{"path": "kernel.cpp", "content": source}],
            "reasoning": "One pass; memory decides.",
        }
        return Solution.from_plain({**plain, **changes})

    return make


@pytest.fixture
def make_verdict(make_solution: Factory) -> Factory:
    """`make_verdict(solution=None, **changes) -> Verdict` that passed on a GPU."""

    def make(solution: Solution | None = None, **changes: Any) -> Verdict:
        judged = solution or make_solution()
        timing = {"workload": "typical", "calls": 50, "speedup": 1.5}
        timing |= {"median_us": 10.0, "p10_us": 9.5, "p90_us": 11.0}
        timing |= {"baseline_median_us": 15.0, "baseline_p10_us": 14.0, "baseline_p90_us": 16.0}
        timing |= {"speedup_low": 1.4, "speedup_high": 1.6}
        plain = {
            "task_id": judged.task_id,
            "solution_id": judged.id,
            "rules_version": RULES_VERSION,
            "status": "passed",
            "fault": "none",
            "gates": ["checks", "compile", "values", "timing"],
            "timings": [timing],
            "baseline": "reference",
            "speedup": 1.5,
            "environment": {
                "device_kind": "cuda",
                "device": "NVIDIA H200",
                "compute_capability": "9.0",
                "torch": "2.11.0",
                "python": "3.11.9",
                "os": "Linux 6.1",
            },
            "seed": 7,
            "judged_on": "2026-12-01",
        }
        return Verdict.from_plain({**plain, **changes})

    return make


@pytest.fixture
def make_sample(make_task: Factory, make_solution: Factory) -> Factory:
    """`make_sample(**changes) -> Sample` of one task and one solution."""

    def make(**changes: Any) -> Sample:
        task = changes.get("task") or make_task()
        return Sample(**{"task": task, "solutions": (make_solution(task),), **changes})

    return make


@pytest.fixture
def write_sample_folder(tmp_path: Path) -> Factory:
    """`write_sample_folder(name="add-vectors", parent=None) -> Path` of a valid sample folder.

    Holds the solution `plain-loop` and the trajectory `first-try` (`a1-wrong`, then `a2-right`).
    """

    def write(name: str = "add-vectors", parent: Path | None = None) -> Path:
        folder = (parent or tmp_path) / name
        attempt_log = {
            "origin": solution_header()["origin"],
            "steps": [
                {"folder": "a1-wrong", "phase": "implement"},
                {"folder": "a2-right", "phase": "repair"},
            ],
        }
        texts = {
            "task.json": json.dumps({**task_header(), "name": name}, indent=2),
            "description.md": "Add two vectors element by element.\n",
            "reference.py": REFERENCE,
            "math.md": "$z_i = x_i + y_i$\n",
            "oracle.py": ORACLE,
            **_solution_texts("solutions/plain-loop", KERNEL),
            "trajectories/first-try/trajectory.json": json.dumps(attempt_log, indent=2),
            **_solution_texts("trajectories/first-try/a1-wrong", KERNEL.replace("+ y", "- y")),
            **_solution_texts("trajectories/first-try/a2-right", KERNEL + "// repaired\n"),
        }
        for relative, text in texts.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def sample_folder(write_sample_folder: Factory) -> Any:
    """A valid sample folder, `add-vectors`, in a fresh temporary folder."""
    return write_sample_folder()


@pytest.fixture
def recorded_samples(tmp_path: Path, make_verdict: Factory) -> Path:
    """A folder with the starter sample; beside its kernel a made-up verdict, passed on a GPU."""
    sample = tmp_path / "samples" / STARTER.name
    shutil.copytree(STARTER, sample)
    read = read_sample(sample)
    assert read.sample is not None
    (kernel,) = (s for s in read.sample.solutions if s.contract is Contract.CUDA_FUNCTION)
    write_verdict(read.recorded.folders[kernel.id], make_verdict(kernel))
    return sample.parent


def _solution_texts(folder: str, kernel: str) -> dict[str, str]:
    return {
        f"{folder}/solution.json": json.dumps(solution_header(), indent=2),
        f"{folder}/kernel.cpp": kernel,
        f"{folder}/reasoning.md": "One pass; memory decides.\n",
    }
