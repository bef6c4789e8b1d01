"""Checks of samples: each finds what it is for, and our own samples show nothing wrong."""

import subprocess
import sys
from typing import Any

import pytest

from concur.schemas import Sample
from concur.validators.checks import CHECKS, check_sample
from tests.sampling import cases, task_of


def sample_with(**task: Any) -> Sample:
    """A good task without solutions, changed."""
    plain = task_of("scaled-column-sum").to_plain() | task
    plain.pop("id")
    return Sample.from_plain({"task": plain})


MODEL = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        {}\n"


@pytest.mark.parametrize(
    ("changes", "rule", "severity"),
    [
        ({"oracle": "def oracle(x, scale, **_:\n"}, "check.python", "error"),
        (
            {"oracle": "def oracle(x, **_):\n    return " + "-" * 100_000 + "x\n"},
            "check.python",
            "error",
        ),
        ({"oracle": "def other(**_):\n    return 1\n"}, "check.oracle", "error"),
        (
            {"oracle": "def oracle(x, scale):\n    return x.sum(0) * scale\n"},
            "check.oracle",
            "error",
        ),
        (
            {"oracle": "import torch\ndef oracle(x, **_):\n    return x + torch.rand(1)\n"},
            "check.random",
            "error",
        ),
        ({"program": {"language": "pytorch", "source": "Model = 1\n"}}, "check.reference", "error"),
        (
            {
                "program": {
                    "language": "pytorch",
                    "source": MODEL.replace("x)", "x, y, z)").format("return x"),
                }
            },
            "check.reference",
            "error",
        ),
        ({"mathematics": "$$ a = b $$"}, "check.symbols", "error"),
        ({"operations": ["conv2d"]}, "check.operations", "warning"),
        ({"description": "See /home/somebody/notes."}, "check.leak", "warning"),
        ({"description": "Token hf_" + "a" * 24}, "check.leak", "warning"),
        (
            {"provenance": {"source": "x", "license": "WTF-1.0", "group": "sum"}},
            "check.license",
            "error",
        ),
        (
            {"provenance": {"source": "x", "license": "unknown", "group": "sum"}},
            "check.license",
            "warning",
        ),
    ],
)
def test_each_check_finds_its_fault(changes: dict[str, Any], rule: str, severity: str) -> None:
    found = [(f.rule, f.severity) for f in check_sample(sample_with(**changes))]
    assert (rule, severity) in found


def test_random_weights_in_a_constructor_are_fine() -> None:
    assert not list(check_sample(sample_with()))


@pytest.mark.parametrize("name", ["scaled-column-sum", "row-order"])
def test_good_samples_show_nothing(name: str) -> None:
    task = task_of(name)
    solutions = tuple(c.solution for c in cases("good") if c.task.id == task.id)
    assert solutions and not list(check_sample(Sample(task=task, solutions=solutions)))
    assert len(CHECKS) >= 10


def test_checks_do_not_import_torch() -> None:
    code = (
        "import sys, concur.validators.checks, concur.validators.environment, "
        "concur.schemas.feedback; sys.exit('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-P", "-c", code], check=False, timeout=120)
    assert run.returncode == 0


def test_a_twin_that_no_judge_could_hold_is_refused_before_anything_is_drawn() -> None:
    plain = sample_with().task.to_plain()
    axis = next(iter(plain["workloads"][0]["twin"]))
    plain["workloads"][0]["twin"][axis] = 99_999_999_999
    plain.pop("id")
    found = [f for f in check_sample(Sample.from_plain({"task": plain})) if f.severity == "error"]
    assert [(f.rule, f.where) for f in found] == [("check.sizes", "$.workloads[0].twin")]
    assert "256 MiB" in found[0].remedy
