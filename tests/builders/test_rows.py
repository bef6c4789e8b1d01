"""Rows of every kind as records: what is in them, and what never is."""

from collections.abc import Callable
from typing import Any

import pytest

from concur import tokens
from concur.builders.decisions import Ruling, rule_solution, rule_task, rule_trajectory
from concur.builders.tasks import build_solutions, build_task
from concur.builders.trajectories import build_trajectory
from concur.builders.triplets import build_triplets
from concur.schemas import Admission, Attempt, AttemptLog, Outcome, Sample, Solution, Task, Verdict
from concur.schemas.feedback import render
from concur.schemas.provenance import Origin
from concur.schemas.signature import c_signature

Factory = Callable[..., Any]

ACCEPTED = Ruling(Outcome.ACCEPTED)
WRONG: dict[str, Any] = {
    "status": "wrong_values",
    "fault": "candidate",
    "gates": ["checks", "values"],
    "findings": [{"rule": "values.tolerance", "severity": "error", "message": "Three are wrong."}],
    "timings": [],
    "baseline": "",
    "speedup": None,
}


@pytest.fixture
def make_cuda(make_solution: Factory) -> Factory:
    def make(source: str = "// kernel", **changes: Any) -> Solution:
        files = [{"path": "kernel.cu", "content": source}]
        cuda = {"contract": "cuda_function", "entry": "kernel.cu", "files": files}
        solution: Solution = make_solution(**{**cuda, **changes})
        return solution

    return make


def triplets_of(task: Task, solution: Solution, verdict: Verdict | None = None) -> list[Any]:
    sample = Sample(task=task, solutions=(solution,))
    return list(build_triplets(sample, {solution.id: verdict} if verdict else {}))


def test_a_triplet_holds_what_was_judged(
    make_task: Factory, make_cuda: Factory, make_verdict: Factory
) -> None:
    task, solution = make_task(), make_cuda()
    verdict = make_verdict(solution)
    (row,) = triplets_of(task, solution, verdict)
    assert (row.task_id, row.solution_id, row.verdict_id) == (task.id, solution.id, verdict.id)
    assert row.forms == ("language", "program", "mathematics")
    assert row.kernel == "// kernel" and row.signature == c_signature(task)
    assert row.reference == task.program.source and row.reference_language == "pytorch"
    assert [row.reasoning_tokens, row.kernel_tokens] == tokens.count([row.reasoning, row.kernel])
    assert (row.speedup, row.speedup_low, row.median_us) == (1.5, 1.4, 10.0)
    assert (row.device, row.judged_on, row.writer) == ("NVIDIA H200", "2026-12-01", "unknown")


def cpu(verdict: Verdict) -> dict[str, Any]:
    return {"environment": {**verdict.environment.to_plain(), "device_kind": "cpu"}}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda v: WRONG,
        lambda v: {"rules_version": 0},
        lambda v: {"task_id": "task-other"},
        lambda v: {"solution_id": "solution-other"},
        lambda v: cpu(v),
        lambda v: {"timings": [], "speedup": None},
    ],
    ids=["failed", "old rules", "other task", "other solution", "cpu", "untimed"],
)
def test_no_triplet_without_a_verdict_that_counts(
    make_task: Factory, make_cuda: Factory, make_verdict: Factory, spoil: Callable[..., Any]
) -> None:
    solution = make_cuda()
    spoilt = make_verdict(solution, **spoil(make_verdict(solution)))
    assert triplets_of(make_task(), solution, spoilt) == []
    assert triplets_of(make_task(), solution) == []


def test_no_triplet_for_a_cpu_contract_or_without_reasoning(
    make_task: Factory, make_solution: Factory, make_cuda: Factory, make_verdict: Factory
) -> None:
    for solution in (make_solution(), make_cuda(reasoning="", reasoning_kind="none")):
        assert triplets_of(make_task(), solution, make_verdict(solution)) == []


@pytest.fixture
def sample(make_task: Factory, make_cuda: Factory) -> Sample:
    attempts = [
        ("implement", make_cuda("// wrong", name="a1", reasoning="First thought.")),
        ("repair", make_cuda("// slow ``` fence", name="a2", reasoning="Second thought.")),
        ("optimise", make_cuda("// fast", name="a3", reasoning="Third thought.")),
        ("optimise", make_cuda("// slower", name="a4", reasoning="Fourth thought.")),
    ]
    log = AttemptLog(
        name="tries",
        origin=Origin(method="authored", license="Apache-2.0", note="a fault was placed in a1"),
        attempts=tuple(Attempt(phase=p, solution=s) for p, s in attempts),  # type: ignore[arg-type]
    )
    return Sample(task=make_task(), trajectories=(log,))


@pytest.fixture
def verdicts(sample: Sample, make_verdict: Factory) -> dict[str, Verdict]:
    changes: list[dict[str, Any]] = [WRONG, {"speedup": 1.1}, {"speedup": 2.5}, {"speedup": 2.0}]
    pairs = zip(sample.candidates, changes, strict=True)
    return {s.id: make_verdict(s, **change) for s, change in pairs}


def test_a_trajectory_tells_each_turn(sample: Sample, verdicts: dict[str, Verdict]) -> None:
    row = build_trajectory(sample, sample.trajectories[0], verdicts)
    assert [t.phase for t in row.turns] == ["implement", "repair", "optimise", "optimise"]
    assert [t.best for t in row.turns] == [False, False, True, False]
    assert [t.speedup for t in row.turns] == [None, 1.1, 2.5, 2.0]
    assert (row.outcome, row.best_speedup, row.device) == ("solved", 2.5, "NVIDIA H200")
    assert row.note == "a fault was placed in a1"
    first, second = row.turns[0], row.turns[1]
    question, answer = first.messages
    assert (question.role, answer.role) == ("user", "assistant")
    for told in ("Add two vectors", "class Model(torch", "z_i = x_i", c_signature(sample.task)):
        assert told in question.content
    assert answer.reasoning_content == "First thought." and "// wrong" in answer.content
    wrong = verdicts[first.solution_id]
    assert first.feedback == render(wrong)
    assert second.messages[0].content.startswith(render(wrong).strip())
    assert "Repair it." in second.messages[0].content
    assert "````cuda\n// slow ``` fence\n````" in second.messages[1].content
    texts = [
        t for turn in row.turns for m in turn.messages for t in (m.content, m.reasoning_content)
    ]
    assert row.total_tokens == sum(tokens.count([t for t in texts if t]))


def test_an_unsolved_trajectory(sample: Sample, make_verdict: Factory) -> None:
    verdicts = {s.id: make_verdict(s, **WRONG) for s in sample.candidates}
    row = build_trajectory(sample, sample.trajectories[0], verdicts)
    assert (row.outcome, row.best_speedup) == ("unsolved", None)
    assert not any(t.best for t in row.turns)


def test_every_attempt_needs_a_verdict_that_counts(
    sample: Sample, verdicts: dict[str, Verdict], make_verdict: Factory
) -> None:
    log = sample.trajectories[0]
    assert rule_trajectory(log, verdicts, ACCEPTED) == ACCEPTED
    last = sample.candidates[-1]
    for spoilt in ({"rules_version": 0}, cpu(verdicts[last.id])):
        ruling = rule_trajectory(log, {**verdicts, last.id: make_verdict(last, **spoilt)}, ACCEPTED)
        assert ruling.outcome is Outcome.UNDECIDED and ruling.reason.startswith("attempt a4: ")
    without = {k: v for k, v in verdicts.items() if k != last.id}
    ruling = rule_trajectory(log, without, ACCEPTED)
    assert ruling == Ruling(Outcome.UNDECIDED, "attempt a4: not judged on a GPU yet")


def test_attempts_on_several_gpus_are_not_mixed(
    sample: Sample, verdicts: dict[str, Verdict], make_verdict: Factory
) -> None:
    last = sample.candidates[-1]
    environment = {**verdicts[last.id].environment.to_plain(), "device": "NVIDIA L4"}
    mixed = {**verdicts, last.id: make_verdict(last, environment=environment)}
    ruling = rule_trajectory(sample.trajectories[0], mixed, ACCEPTED)
    assert ruling == Ruling(Outcome.UNDECIDED, "judged on several GPUs: NVIDIA H200, NVIDIA L4")


def admission(task: Task, kind: str, outcome: str, **changes: Any) -> Admission:
    environment = {"device_kind": kind, "device": kind, "torch": "2", "python": "3", "os": "x"}
    plain = {
        "task_id": task.id,
        "rules_version": 1,
        "sizes": "twin" if kind == "cpu" else "full",
        "outcome": outcome,
        "environment": environment,
        "seed": 1,
        "judged_on": "2026-12-01",
    }
    return Admission.from_plain({**plain, **changes})


@pytest.mark.parametrize(
    ("cpu_says", "cuda_says", "expected"),
    [
        ("accepted", None, "accepted"),
        ("accepted", "accepted", "accepted"),
        ("accepted", "rejected", "rejected"),
        ("accepted", "undecided", "undecided"),
        ("rejected", "accepted", "rejected"),
        (None, "accepted", "undecided"),
        (None, None, "undecided"),
    ],
)
def test_a_task_needs_its_admission_and_none_against_it(
    make_task: Factory, cpu_says: str | None, cuda_says: str | None, expected: str
) -> None:
    task = make_task()
    given = {"cpu": cpu_says, "cuda": cuda_says}
    admissions = {k: admission(task, k, says) for k, says in given.items() if says}
    assert rule_task(task, admissions).outcome.value == expected


def test_a_stale_admission_says_nothing(make_task: Factory) -> None:
    task = make_task()
    for change in ({"task_id": "task-other"}, {"rules_version": 0}):
        stale = admission(task, "cpu", "accepted", **change)
        assert rule_task(task, {"cpu": stale}).outcome is Outcome.UNDECIDED


def test_a_task_row_keeps_the_id_and_says_where_it_was_admitted(make_sample: Factory) -> None:
    sample = make_sample()
    given = {k: admission(sample.task, k, "accepted") for k in ("cuda", "cpu")}
    row = build_task(sample, given)
    assert row.id == sample.task.id
    assert row.forms == ("language", "program", "mathematics")
    assert [(a.device, a.sizes) for a in row.admissions] == [("cpu", "twin"), ("cuda", "full")]


def test_decided_solutions_keep_the_id_and_hold_failures_too(
    sample: Sample, verdicts: dict[str, Verdict]
) -> None:
    rows = list(build_solutions(sample, verdicts))
    assert [r.id for r in rows] == [s.id for s in sample.candidates]
    assert [r.outcome for r in rows] == ["rejected", "accepted", "accepted", "accepted"]
    assert rows[0].status == "wrong_values" and rows[0].source == "// wrong"


def test_infrastructure_faults_are_undecided_and_no_row(
    sample: Sample, verdicts: dict[str, Verdict], make_verdict: Factory
) -> None:
    last = sample.candidates[-1]
    failed = make_verdict(last, **{**WRONG, "status": "timeout", "fault": "infrastructure"})
    assert rule_solution(last, failed, ACCEPTED).outcome is Outcome.UNDECIDED
    rows = list(build_solutions(sample, {**verdicts, last.id: failed}))
    assert last.id not in {r.id for r in rows}


def test_two_solutions_with_one_id_are_refused(make_task: Factory, make_cuda: Factory) -> None:
    twins = tuple(make_cuda(name=name, reasoning=f"It is {name}.") for name in ("one", "two"))
    assert twins[0].id == twins[1].id
    with pytest.raises(ValueError, match="'one' and 'two' have the same sources"):
        Sample(task=make_task(), solutions=twins)


def test_a_solution_comes_before_an_attempt_with_its_id(
    make_task: Factory, make_cuda: Factory
) -> None:
    solution, attempt = make_cuda(name="one"), make_cuda(name="a1", reasoning="Not this.")
    assert solution.id == attempt.id
    origin = Origin(method="authored", license="Apache-2.0")
    log = AttemptLog(
        name="tries", origin=origin, attempts=(Attempt(phase="implement", solution=attempt),)
    )
    sample = Sample(task=make_task(), solutions=(solution,), trajectories=(log,))
    assert sample.candidates == (solution,)
