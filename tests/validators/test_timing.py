"""Timing as the judge sees it, with children that answer from a script instead of a GPU."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from concur.errors import JudgeError
from concur.validators.compile import _run
from concur.validators.ended import Ended, ended_by, finding
from concur.validators.isolation import private_folder
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions
from concur.validators.ownwork import library_findings
from concur.validators.process import ChildDied, _has_shape, signal_name
from concur.validators.reference import Reference
from concur.validators.timing import Stopwatch, summarize

CALLS = 8


class Scripted:
    """A child that times every call alike, and tells what it was asked in which order."""

    def __init__(self, side: str, asked: list[str], us: float) -> None:
        self.side, self.asked, self.us = side, asked, us

    def ask(self, do: str, _timeout: float, **job: Any) -> dict[str, Any]:
        self.asked.append(f"{self.side} {do} {job.get('ring', '')}".strip())
        return {"times": [self.us] * job["calls"]} if do == "time" else {}


@pytest.fixture
def stopwatch(make_task: Any, tmp_path: Path) -> tuple[Stopwatch, list[str]]:
    """A stopwatch over a real reference on the CPU whose timing alone is scripted."""
    task = make_task()
    options = JudgeOptions(device="cpu", timed_calls=CALLS)
    reference = Reference(task, options, tmp_path)
    asked: list[str] = []
    real = reference.child
    script = Scripted("baseline", asked, 30.0)

    class Both:
        def ask(self, do: str, timeout: float, **job: Any) -> dict[str, Any]:
            timed = do in ("prepare", "time", "free")
            return script.ask(do, timeout, **job) if timed else real.ask(do, timeout, **job)

        def close(self) -> None:
            real.close()

    reference.child = Both()  # type: ignore[assignment]
    mine = Scripted("candidate", asked, 10.0)
    folder = tmp_path / "candidate"
    folder.mkdir()
    candidate = SimpleNamespace(
        task=task,
        options=options,
        folder=folder,
        guard=1,
        solution=SimpleNamespace(id="solution-x"),
        ask=lambda do, _case, **job: mine.ask(do, 0.0, **job),
        results_of=lambda case, _targets: [
            t.to(getattr(torch, r.dtype.value))
            for t, r in zip(reference.expected(case).results, task.results, strict=True)
        ],
    )
    return Stopwatch(candidate, reference, DeviceLock(None), seed=7), asked  # type: ignore[arg-type]


def test_blocks_of_both_sides_alternate_and_every_workload_is_timed(
    stopwatch: tuple[Stopwatch, list[str]],
) -> None:
    watch, asked = stopwatch
    try:
        timings = watch.measure()
    finally:
        watch.reference.close()
    names = [w.name for w in watch.task.workloads]
    assert [t.workload for t in timings] == names
    assert all(t.speedup == pytest.approx(3.0) and t.calls == CALLS for t in timings)
    timed = [line for line in asked if " time " in line]
    for name in names:
        order = [line.split()[0] for line in timed if line.endswith(f" {name}")]
        assert order == ["baseline", "candidate", "candidate", "baseline"]
    prepared = [i for i, line in enumerate(asked) if " prepare " in line]
    assert max(prepared) < asked.index(timed[0]), (
        "inputs are handed over before the device is taken"
    )


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_times_that_cannot_be_are_the_fault_of_the_side_that_tells_them(
    stopwatch: tuple[Stopwatch, list[str]], side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, _ = stopwatch
    answer = Scripted.ask

    def lying(self: Scripted, do: str, timeout: float, **job: Any) -> dict[str, Any]:
        told = answer(self, do, timeout, **job)
        return {"times": [-1.0]} if do == "time" and self.side == side else told

    monkeypatch.setattr(Scripted, "ask", lying)
    with pytest.raises(Ended) as ended:
        watch.measure()
    watch.reference.close()
    assert ended.value.fault.value == ("candidate" if side == "candidate" else "judge")


def test_an_interval_of_equal_times_is_a_point() -> None:
    timing = summarize("w", [10.0] * 20, [25.0] * 20, seed=1)
    assert (timing.speedup, timing.speedup_low, timing.speedup_high) == (2.5, 2.5, 2.5)


def test_what_the_machine_lacks_is_nobody_elses_fault(tmp_path: Path) -> None:
    killed = ended_by(ChildDied("was killed by SIGKILL", killed=True), "run.failed", "w")
    assert (killed.status.value, killed.fault.value) == ("undecided", "infrastructure")
    crashed = ended_by(ChildDied("was killed by SIGSEGV"), "run.failed", "w")
    assert (crashed.status.value, crashed.fault.value) == ("runtime_error", "candidate")
    code, _ = _run(["sh", "-c", "kill -9 $$"], tmp_path, 10.0)
    assert code == -9
    code, _ = _run(["sleep", "30"], tmp_path, 0.2)
    assert code is None


def test_a_profile_without_kernels_decides_nothing() -> None:
    with pytest.raises(Ended) as ended:
        list(library_findings([("Memcpy HtoD", 5.0)], []))
    assert (ended.value.status.value, ended.value.fault.value) == ("undecided", "infrastructure")


def test_texts_that_no_record_could_hold_are_scrubbed() -> None:
    assert finding("run.failed", "lone \ud800 surrogate").message == "lone ? surrogate"
    assert signal_name(40) == "signal 40"


@pytest.mark.parametrize(
    ("do", "answer", "right"),
    [
        ("run", {"results": [{}], "mutated": [], "notes": []}, True),
        ("run", {"results": 5, "mutated": [], "notes": []}, False),
        ("run", {"results": [[1, 2]], "mutated": [], "notes": []}, False),
        ("run", {}, False),
        ("run", {"error": {"kind": "exception", "text": ""}}, True),
        ("run", {"error": "text"}, False),
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
