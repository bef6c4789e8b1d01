"""The trusted side of a task: what it expects, what it keeps, and what happens when it dies."""

from typing import Any

import pytest
import torch

from concur.schemas.task import Task
from concur.schemas.verdict import Fault, Status
from concur.validators import helper
from concur.validators.draw import Case, case_of, draw
from concur.validators.ended import Ended
from concur.validators.failures import ChildDied, ChildError, ChildGreedy, ChildTimeout
from concur.validators.helper import Helper
from concur.validators.options import JudgeOptions, Timeouts
from concur.validators.process import ChildSettings
from concur.validators.reference import Reference
from tests.sampling import task_of

OPTIONS = JudgeOptions(device="cpu", timeouts=Timeouts(compile=120, load=60, run=20))


def altered(task: Task, **texts: Any) -> Task:
    plain = task.to_plain() | texts
    plain.pop("id")
    return Task.from_plain(plain)


def first_case(task: Task, label: str = "trial-0", seed: int = 3) -> Case:
    return case_of(task, task.workloads[0], "cpu", label, seed)


def test_what_is_expected_and_what_is_kept() -> None:
    task = task_of("layer-norm-affine")
    case = first_case(task)
    reference = Reference(task, OPTIONS)
    try:
        expected = reference.expected(case)
        assert reference.expected(case) is expected
        assert expected.results[0].dtype is torch.float64
        assert 0 < expected.rtol[0] < 1e-3 and expected.reference_ratio[0] <= 1
        tensors = draw(task, case, "cpu")
        again = reference.expected_of(case, tensors)
        assert torch.equal(again.results[0], expected.results[0])
        scaled = {name: 2 * t if name == "bias" else t for name, t in tensors.items()}
        other = reference.expected_of(case, scaled)
        assert not torch.equal(other.results[0], expected.results[0])
        assert reference.agreement(case)[0] <= reference.agreement(case)[1]
        for seed in range(20):
            reference.expected(first_case(task, seed=seed))
        assert len(reference._cache) <= 8
    finally:
        reference.close()


def test_a_timed_call_keeps_the_parameters_of_its_drawing() -> None:
    task = task_of("layer-norm-affine")
    one, two = first_case(task, "timed-0"), first_case(task, "timed-1")
    reference = Reference(task, OPTIONS)
    try:
        first, again = draw(task, one, "cpu"), draw(task, two, "cpu")
        called = reference.timed(one, first, 1, 0xFF)
        wanted = reference.run("reference", one, first, "native")
        assert torch.equal(called.results[0], wanted[0])
        reference.timed(one, first, 1, 0xFF)
        # Parameters that are handed over with a later call of the same drawing are not looked at.
        mangled = {n: t if n == "x" else torch.zeros_like(t) for n, t in again.items()}
        kept = reference.timed(two, mangled, 2, 0xFF)
        wanted = reference.run("reference", two, again, "native")
        assert torch.equal(kept.results[0], wanted[0])
        elsewhere = first_case(task, "another-0", seed=9)
        other = draw(task, elsewhere, "cpu")
        called = reference.timed(elsewhere, other, 3, 0xFF)
        assert torch.equal(
            called.results[0], reference.run("reference", elsewhere, other, "native")[0]
        )
        reference.free()
        assert torch.equal(reference.timed(one, first, 4, 0xFF).results[0], called_of(first, task))
    finally:
        reference.close()


def called_of(tensors: dict[str, torch.Tensor], task: Task) -> torch.Tensor:
    namespace: dict[str, Any] = {}
    assert task.program is not None
    exec(task.program.source, namespace)
    case = first_case(task)
    values = {**case.sizes, **case.workload.attributes}
    model = namespace["Model"](*(values[name] for name in task.constructor)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name.replace(".", "_")])
        extra = [v for n, v in case.workload.attributes.items() if n not in task.constructor]
        return torch.as_tensor(model(tensors["x"], *extra))


@pytest.mark.parametrize(
    ("oracle", "expected"),
    [
        ("def oracle(x, **_):\n    raise RuntimeError('broken oracle')\n", "broken oracle"),
        ("def oracle(x, scale, **_):\n    return x.sum(0).float() * 2\n", "float32"),
        ("def oracle(x, scale, **_):\n    return x.sum(0), scale\n", "returns 2 results, not 1"),
        ("def oracle(x, scale, **_):\n    return x.sum(0).tolist()\n", "returns"),
        ("import os\n\n\ndef oracle(**_):\n    os._exit(3)\n", "oracle: the process"),
        ("x = 1\n", "oracle: oracle defines no 'oracle'"),
    ],
)
def test_a_broken_oracle_is_the_tasks_fault(oracle: str, expected: str) -> None:
    task = altered(task_of("scaled-column-sum"), oracle=oracle)
    reference = None
    with pytest.raises(Ended) as ended:
        reference = Reference(task, OPTIONS)
        reference.expected(first_case(task))
    assert (ended.value.status, ended.value.fault) == (Status.INVALID_TASK, Fault.TASK)
    (found,) = ended.value.findings
    assert found.rule == "task.oracle" and expected in found.message
    if reference is not None:
        reference.close()


def test_a_hanging_oracle_is_undecided_and_stays_so() -> None:
    hang = "import time\n\n\ndef oracle(**_):\n    time.sleep(60)\n"
    task = altered(task_of("scaled-column-sum"), oracle=hang)
    limits = Timeouts(compile=120, load=60, run=0.5)
    reference = Reference(task, JudgeOptions(device="cpu", timeouts=limits))
    try:
        ends = []
        for _ in range(2):
            with pytest.raises(Ended) as ended:
                reference.expected(first_case(task))
            ends.append(ended.value)
        assert ends[0] is ends[1]
        assert (ends[0].status, ends[0].fault) == (Status.UNDECIDED, Fault.INFRASTRUCTURE)
    finally:
        reference.close()


class Dying:
    """A child and its line in one, which fail as they are told to."""

    def __init__(self, failures: list[Exception]) -> None:
        self.child, self.failures, self.loaded = self, failures, 0

    def ask(self, *_: object, **__: object) -> dict[str, Any]:
        if self.failures:
            raise self.failures.pop(0)
        return {"fine": True}

    def load(self, _: object) -> None:
        self.loaded += 1

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("failures", "fault", "starts"),
    [
        ([ChildDied("was killed", killed=True)], None, 2),
        ([ChildTimeout("no answer")], None, 2),
        ([ChildDied("died")] * 2, Fault.TASK, 2),
        ([ChildDied("died"), ChildDied("was killed", killed=True)], Fault.INFRASTRUCTURE, 2),
        ([ChildGreedy("run.host-memory", "too much")] * 2, Fault.INFRASTRUCTURE, 2),
        ([ChildError("oom", "out of memory")], Fault.INFRASTRUCTURE, 1),
        ([ChildError("exception", "ValueError: no")], Fault.TASK, 1),
    ],
)
def test_only_the_second_death_counts(
    monkeypatch: pytest.MonkeyPatch,
    failures: list[Exception],
    fault: Fault | None,
    starts: int,
) -> None:
    dying = Dying(list(failures))
    monkeypatch.setattr(helper, "Child", lambda _: dying)
    monkeypatch.setattr(helper, "Line", lambda *_: dying)
    loads = {"oracle": dying.load}
    child = Helper(ChildSettings("torch", "cpu"), OPTIONS, loads)
    if fault is None:
        assert child.ask("free", "oracle") == {"fine": True}
    else:
        with pytest.raises(Ended) as ended:
            child.ask("free", "oracle")
        assert ended.value.fault is fault and ended.value.findings[0].rule == "task.oracle"
    assert child.starts == dying.loaded == starts
    broken = fault is not None and starts == 2
    if broken:
        with pytest.raises(Ended):
            child.ask("free", "oracle")
    else:
        assert child.ask("free", "oracle") == {"fine": True}
