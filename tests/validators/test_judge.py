"""What is not the solution's fault, what must not hurt the judge, and what a GPU alone can show."""

import queue
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from concur.builders.folder import CORPUS, read_sample
from concur.errors import JudgeError
from concur.rejudge import Rejudged, RejudgeOptions, is_fresh, rejudge
from concur.rejudge_workers import Work, Workers
from concur.schemas import Task, Verdict
from concur.schemas.feedback import render
from concur.schemas.verdict import Fault, Outcome
from concur.validators.environment import cuda_available, probe
from concur.validators.judge import JudgeOptions, judge

from .conftest import LIMITS, ON_CPU, cpp, name_of, task_of

RIGHT = """#include <cstdint>
#include <cstdio>
extern "C" int launch(const float* x, const float* scale, float* y, int64_t M, int64_t N, void*) {
  BEFORE
  for (int64_t j = 0; j < N; ++j) {
    float sum = 0.0f;
    for (int64_t i = 0; i < M; ++i) sum += x[i * N + j];
    y[j] = scale[j] * sum;
  }
  return 0;
}
"""


def verdict_on(task: Task, source: str, cache: Path, **options: Any) -> Verdict:
    options = {"level": "quick", **options}
    chosen = JudgeOptions(device="cpu", timeouts=LIMITS, build_cache=cache, **options)
    return next(judge(task, [cpp(task, "candidate", source)], chosen))


def test_a_flood_of_output_does_not_hurt(cache: Path) -> None:
    flood = """static bool done = false;
  if (!done) for (int i = 0; i < 2000000; ++i) std::puts("0123456789012345678901234567890123456789"
      "0123456789012345678901234567890123456789012345678901234567890123456789");
  done = true;"""
    verdict = verdict_on(task_of("scaled-column-sum"), RIGHT.replace("BEFORE", flood), cache)
    assert [f.rule for f in verdict.findings] == ["quick.only"], render(verdict)


def test_quick_never_passes_and_the_same_seed_repeats_a_verdict(cache: Path) -> None:
    task = task_of("scaled-column-sum")
    one, two = (verdict_on(task, RIGHT.replace("BEFORE", ""), cache, seed=99) for _ in range(2))
    assert one.comparisons and one.comparisons == two.comparisons
    assert one.gates == two.gates and one.gates[-1] == "quick"
    assert (one.status, one.fault, one.level) == ("undecided", Fault.NONE, "quick")
    assert [f.severity for f in one.findings] == ["info"]


def test_a_fault_of_the_judge_is_undecided(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("in the judge")

    monkeypatch.setattr("concur.validators.gates.check", fail)
    verdict = verdict_on(task_of("scaled-column-sum"), RIGHT.replace("BEFORE", ""), cache)
    assert (verdict.status, verdict.fault) == ("undecided", Fault.JUDGE)
    assert verdict.outcome is Outcome.UNDECIDED
    assert "ZeroDivisionError: in the judge" in verdict.findings[0].message


@pytest.mark.parametrize(
    ("trust", "rules"), [(False, ["isolation.missing"]), (True, ["quick.only"])]
)
def test_without_isolation_only_trusted_code_runs(
    cache: Path, monkeypatch: pytest.MonkeyPatch, trust: bool, rules: list[str]
) -> None:
    monkeypatch.setattr("concur.validators.gates.missing_layers", lambda: ("no network",))
    task = task_of("scaled-column-sum")
    verdict = verdict_on(task, RIGHT.replace("BEFORE", ""), cache, trust=trust)
    assert [f.rule for f in verdict.findings] == rules
    assert verdict.outcome is Outcome.UNDECIDED


def test_cuda_is_not_judged_on_a_cpu(cache: Path) -> None:
    sample = read_sample(CORPUS / "bias-gelu-residual").sample
    assert sample is not None
    solutions = [s for s in sample.solutions if s.contract == "cuda_function"]
    options = JudgeOptions(device="cpu", build_cache=cache)
    verdict = next(judge(sample.task, solutions, options))
    assert (verdict.status, verdict.outcome) == ("unsupported", Outcome.UNDECIDED)


def test_verdicts_of_a_cpu_are_never_fresh(good: dict[str, Verdict]) -> None:
    (solution,) = [c.solution for c in ON_CPU if name_of(c) == "good/row-order/std-sort"]
    verdict = good["row-order/std-sort"]
    assert not is_fresh(verdict, solution)
    plain = verdict.to_plain()
    plain.pop("id")
    plain["environment"]["device_kind"] = "cuda"
    on_gpu = Verdict.from_plain(plain)
    assert is_fresh(on_gpu, solution)
    plain["rules_version"] += 1
    assert not is_fresh(Verdict.from_plain(plain), solution)
    assert not is_fresh(None, solution)


@pytest.mark.skipif(cuda_available(), reason="there is a GPU here")
def test_rejudge_refuses_without_a_gpu(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="on a GPU only"):
        list(rejudge([CORPUS], RejudgeOptions()))


@pytest.mark.skipif(cuda_available(), reason="would judge on the GPU that is here")
def test_a_worker_that_crashes_costs_only_its_task(tmp_path: Path) -> None:
    lines: queue.SimpleQueue[Rejudged | None] = queue.SimpleQueue()
    workers = Workers(JudgeOptions(device="cuda", build_cache=tmp_path / "cache"), lines)
    work = Work(tmp_path, task_of("row-order"), (), (), admit=("cuda",))
    # Without a GPU the judge itself fails: undecided, written, and no crash.
    workers.attend(work)
    line = lines.get()
    assert line is not None and (line.subject, line.outcome) == (
        "admission-cuda",
        Outcome.UNDECIDED,
    )
    assert line.path is not None and line.path.is_file()
    assert lines.get() is None
    workers.attend(replace(work, path=tmp_path / "not-there"))
    line = lines.get()
    assert line is not None and (line.subject, line.outcome) == ("task", Outcome.UNDECIDED)
    assert "exit code 1" in line.detail
    assert lines.get() is None


def test_the_environment_names_no_host() -> None:
    text = probe("cpu").model_dump_json()
    assert socket.gethostname() not in text or len(socket.gethostname()) < 4
    assert '"device_kind":"cpu"' in text


@pytest.mark.gpu
@pytest.mark.skipif(not cuda_available(), reason="needs a GPU, nvcc and PyTorch")
def test_a_solution_of_the_corpus_passes_on_the_gpu(cache: Path, tmp_path: Path) -> None:
    sample = read_sample(CORPUS / "bias-gelu-residual").sample
    assert sample is not None
    solutions = [s for s in sample.solutions if s.contract == "cuda_function"]
    options = JudgeOptions(device="cuda", build_cache=cache, lock=tmp_path / "gpu.lock")
    for verdict in judge(sample.task, solutions, options):
        assert verdict.status == "passed", render(verdict)
        assert len(verdict.timings) == len(sample.task.workloads)
        assert verdict.speedup is not None and verdict.speedup > 1
