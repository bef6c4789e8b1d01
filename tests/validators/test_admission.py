"""Admission of sound and unsound tasks, at the small sizes of their twins."""

from typing import Any

import pytest

from concur.schemas.task import Task
from concur.schemas.verdict import Outcome
from concur.validators.admission import admit
from tests.sampling import task_of


def altered(task: Task, **texts: Any) -> Task:
    plain = task.to_plain() | texts
    plain.pop("id")
    return Task.from_plain(plain)


@pytest.mark.parametrize("name", ["scaled-column-sum", "row-order", "two-layer", "histogram"])
def test_a_sound_task_is_admitted(name: str) -> None:
    admission = admit(task_of(name), device="cpu", seed=5)
    assert admission.outcome is Outcome.ACCEPTED, admission.findings
    gates = {m.gate for m in admission.measurements}
    assert gates >= {"finite", "constant", "seeds", "trivial", "influence", "repeatable", "native"}
    assert all(m.passed for m in admission.measurements)
    assert admission.sizes == "twin"


@pytest.mark.parametrize(
    ("oracle", "rule"),
    [
        ("    return x.sum(0) * scale + 1e-3\n", "admission.agreement"),
        ("    return x.sum(0) * 0 + 1\n", "admission.constant"),
        ("    return x.sum(0) + scale * 0\n", "admission.influence"),
        ("    return scale + x.sum(0) * 0\n", "admission.copy"),
        ("    return x.sum(0) * scale / 0\n", "admission.finite"),
        ("    return x.sum(0) * scale + torch.rand(1).double()\n", "admission.repeatable"),
        ("    return x.sum(0) * 0\n", "admission.trivial"),
    ],
)
def test_an_unsound_task_is_rejected(oracle: str, rule: str) -> None:
    text = f"import torch\n\n\ndef oracle(x, scale, **_):\n{oracle}"
    admission = admit(altered(task_of("scaled-column-sum"), oracle=text), device="cpu", seed=5)
    assert admission.outcome is Outcome.REJECTED
    assert rule in {f.rule for f in admission.findings}


def test_a_task_that_crashes_is_rejected_and_no_fault_of_the_judge() -> None:
    text = "import os\n\n\ndef oracle(**_):\n    os._exit(0)\n"
    admission = admit(altered(task_of("scaled-column-sum"), oracle=text), device="cpu", seed=5)
    assert admission.outcome is Outcome.REJECTED
    assert [f.rule for f in admission.findings] == ["task.oracle"]
