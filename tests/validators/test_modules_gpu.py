"""The host of Python on a GPU: streams, events, the profiler and types that only CUDA sees."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from concur.schemas.task import Task
from concur.schemas.verdict import Outcome
from concur.validators.admission import admit
from concur.validators.calls import Line, Request
from concur.validators.draw import case_of, draw
from concur.validators.environment import cuda_available
from concur.validators.options import JudgeOptions
from concur.validators.process import Child, ChildSettings
from concur.validators.reference import Reference
from tests.sampling import task_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda_available(), reason="needs a CUDA device"),
]

AXPBY = """import torch

class ModelNew(torch.nn.Module):
    def forward(self, x, z, a, b):
        {forward}
"""
TASKS = ("axpby", "half-gelu", "histogram", "int8-matmul", "layer-norm-affine", "row-stats")


@pytest.fixture
def line() -> Iterator[Line]:
    child = Child(ChildSettings("torch", "cuda"))
    opened = Line(child, "cuda")
    yield opened
    opened.close()


def request_of(task: Task, **changes: Any) -> Request:
    case = case_of(task, task.workloads[0], "cuda", "trial-0", 3)
    return Request(task, case, draw(task, case, "cuda"), "candidate", **changes)


def load(line: Line, forward: str) -> None:
    files = [{"path": "entry.py", "content": AXPBY.format(forward=forward)}]
    job: dict[str, Any] = {"kind": "module", "slot": "candidate", "module": "model_new"}
    line.child.ask("load", 60, files=files, entry="entry.py", name="ModelNew", **job)


def wanted(request: Request) -> torch.Tensor:
    values = request.case.workload.attributes
    x, z = (request.tensors[a.name] for a in request.task.arguments)
    return values["a"] * x + values["b"] * z


def test_a_timed_call_has_times_and_right_results(line: Line) -> None:
    load(line, "return a * x + b * z")
    for layout in range(3):
        request = request_of(task_of("axpby"), lead="long", layout=layout)
        called = line.call(request, 60)
        assert called.us is not None and 1 < called.us < called.wall_us
        assert torch.allclose(called.results[0], wanted(request))
        assert not called.mutated and not called.overwritten and not called.answer["notes"]


def test_the_profiler_sees_kernels(line: Line) -> None:
    load(line, "return a * x + b * z")
    kernels = line.profile(request_of(task_of("axpby")), 60)["kernels"]
    assert any("elementwise" in name for name, _ in kernels), kernels


def test_work_on_a_stream_that_nobody_waits_for_comes_too_late(line: Line) -> None:
    late = """stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            y = a * x + b * z
        return y"""
    load(line, late)
    # The first call loads kernels, which waits for the device.
    line.call(request_of(task_of("axpby")), 60)
    request = request_of(task_of("axpby"), lead="long")
    called = line.call(request, 60)
    assert not torch.allclose(called.results[0], wanted(request))


def test_a_stream_that_is_left_current_is_told_and_put_back(line: Line) -> None:
    left = """stream = torch.cuda.Stream()
        torch.cuda.set_stream(stream)
        y = a * x + b * z
        stream.synchronize()
        return y.view(-1, 1).expand(-1, 1).reshape(x.shape)"""
    load(line, left)
    request = request_of(task_of("axpby"))
    for _ in range(2):
        called = line.call(request, 60)
        assert called.answer["notes"] == ["flag: current stream"]
        assert torch.allclose(called.results[0], wanted(request))


def test_a_held_result_can_be_read_again(line: Line) -> None:
    load(line, "return a * x + b * z")
    request = request_of(task_of("axpby"), hold=True)
    line.call(request, 60)
    assert torch.allclose(line.recopy(60)[0], wanted(request))


def test_the_device_runs_out_of_memory(line: Line) -> None:
    load(line, "return torch.empty(1 << 50, dtype=torch.uint8, device='cuda')")
    with pytest.raises(Exception, match="out of memory") as failed:
        line.call(request_of(task_of("axpby")), 60)
    assert getattr(failed.value, "kind", "") == "oom"


def test_a_baseline_is_timed() -> None:
    task = task_of("layer-norm-affine")
    case = case_of(task, task.workloads[0], "cuda", "timed-0", 3)
    tensors = draw(task, case, "cuda")
    reference = Reference(task, JudgeOptions(device="cuda"))
    try:
        times = [reference.timed(case, tensors, n, 0xFF) for n in range(5)]
        assert all(called.us is not None and called.us > 1 for called in times)
        oracle = reference.expected(case).results[0]
        assert torch.allclose(times[-1].results[0].double(), oracle, atol=1e-3)
    finally:
        reference.close()


@pytest.mark.parametrize("name", TASKS)
def test_a_sound_task_is_admitted_at_full_size(name: str) -> None:
    admission = admit(task_of(name), device="cuda", seed=5)
    assert admission.outcome is Outcome.ACCEPTED, admission.findings
    assert any(m.gate == "time" for m in admission.measurements)
