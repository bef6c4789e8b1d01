"""Further baselines: measured once, kept, left out where they fail."""

from pathlib import Path
from typing import Any

import pytest
import torch

from concur.schemas.task import Task
from concur.schemas.timing import Baseline
from concur.schemas.verdict import Fault, Status
from concur.validators import baselines
from concur.validators.baselines import further_baselines
from concur.validators.ended import Ended, finding
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions

Measured = list[str]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """The kinds that were measured, in order; `compile` is at fault."""
    asked: Measured = []

    def measure(way: Any, task: Task, *_: Any) -> list[Baseline]:
        asked.append(way.kind)
        if way.kind == "compile":
            found = finding("task.reference", "reference: unsupported")
            raise Ended(Status.INVALID_TASK, Fault.TASK, found)
        return [Baseline(kind=way.kind, workload=w.name, median_us=7.5) for w in task.workloads]

    monkeypatch.setattr(baselines, "_measure", measure)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H200")
    return asked


def asked_for(task: Task, cache: Path, **options: Any) -> tuple[list[Baseline], list[str]]:
    settings = JudgeOptions(**{"device": "cuda", "build_cache": cache, **options})
    found, notes = further_baselines(task, settings, DeviceLock(None), 1)
    assert all(n.severity == "info" for n in notes)
    return found, [n.message for n in notes]


def test_each_is_measured_once_for_a_task(
    make_task: Any, measured: Measured, tmp_path: Path
) -> None:
    first = asked_for(make_task(), tmp_path / "cache")
    again = asked_for(make_task(), tmp_path / "cache")
    assert first == again and measured == ["eager-tf32", "compile"]
    found, notes = first
    assert [(b.kind, b.workload) for b in found] == [
        ("eager-tf32", "typical"),
        ("eager-tf32", "prime"),
    ]
    assert notes == ["the baseline compile could not be measured: reference: unsupported"]
    asked_for(make_task(name="another-task"), tmp_path / "cache")
    assert len(measured) == 4


def test_what_the_machine_prevented_is_tried_again(
    make_task: Any, measured: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(way: Any, *_: Any) -> list[Baseline]:
        measured.append(way.kind)
        found = finding("task.reference", "reference: out of memory")
        raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)

    monkeypatch.setattr(baselines, "_measure", busy)
    for _ in range(2):
        found, notes = asked_for(make_task(), tmp_path / "cache")
        assert found == [] and len(notes) == 2
    assert len(measured) == 4


def test_a_file_that_nobody_can_read_is_measured_anew(
    make_task: Any, measured: Measured, tmp_path: Path
) -> None:
    asked_for(make_task(), tmp_path / "cache")
    (kept,) = (tmp_path / "cache" / "baselines").iterdir()
    for broken in ("", "[]", '{"eager-tf32": [{"kind": "x"}]}', '{"eager-tf32": 5}'):
        kept.write_text(broken, encoding="utf-8")
        assert len(asked_for(make_task(), tmp_path / "cache")[0]) == 2
    assert measured.count("eager-tf32") == 5


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"level": "quick"}])
def test_a_cpu_and_a_quick_run_have_none(
    make_task: Any, measured: Measured, tmp_path: Path, options: dict[str, str]
) -> None:
    assert asked_for(make_task(), tmp_path, **options) == ([], [])
    assert measured == []


def test_a_task_without_a_program_has_none(
    make_task: Any, measured: Measured, tmp_path: Path
) -> None:
    assert asked_for(make_task(program=None), tmp_path) == ([], [])


def test_calls_alone_are_timed_as_pairs_are(make_task: Any) -> None:
    task, sent = make_task(), []

    class Helper:
        def call(self, request: Any) -> Any:
            sent.append(request)
            slow = len(sent) % (baselines.CALLS + 5) < 5
            return type("Called", (), {"us": 90.0 if slow else 12.0})

    helper: Any = Helper()
    options = JudgeOptions(device="cpu")
    requests = baselines._requests(task, options, 3, baselines.CALLS + 5)
    found = baselines._times(helper, baselines._WAYS[0], requests)
    assert [b.median_us for b in found] == [12.0, 12.0]
    assert all(r.lead == "long" and r.parameters == "keep" for r in sent)
    assert len({r.layout for r in sent}) == len(sent)
    assert len({r.tensors["x"].numpy().tobytes() for r in sent}) == len(sent)
