"""What counts and what does not: the decisions between reading samples and publishing rows.

Pure functions over records. A verdict counts when it was made on a GPU, by the current rules, for
exactly this task and this solution; an admission likewise. Anything else is told as a reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from concur.schemas.rules import OLDEST_RULES, RULES_VERSION
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.trajectory import AttemptLog
from concur.schemas.verdict import Admission, Finding, Outcome, Status, Verdict

Verdicts = Mapping[str, Verdict]
"""Verdicts by the id of the solution that they stand beside."""
Admissions = Mapping[str, Admission]
"""Admissions by device kind, cpu or cuda."""


@dataclass(frozen=True)
class Ruling:
    """An outcome and why."""

    outcome: Outcome
    """One of the three."""
    reason: str = ""
    """One sentence; empty for what is accepted."""


ACCEPTED = Ruling(Outcome.ACCEPTED)


def verdict_fault(verdict: Verdict, solution: Solution) -> str:
    """Return why a verdict no longer says anything about a solution; empty when it does."""
    if verdict.task_id != solution.task_id:
        return "stale: the task has changed since it was judged"
    if verdict.solution_id != solution.id:
        return "stale: the solution has changed since it was judged"
    if not OLDEST_RULES <= verdict.rules_version <= RULES_VERSION:
        return f"stale: judged by rules {verdict.rules_version}, now {RULES_VERSION}"
    if verdict.environment.device_kind != "cuda":
        return "judged on a CPU only"
    return ""


def admission_fault(admission: Admission, task: Task) -> str:
    """Return why an admission no longer says anything about a task; empty when it does."""
    if admission.task_id != task.id:
        return "stale: the task has changed since it was admitted"
    if not OLDEST_RULES <= admission.rules_version <= RULES_VERSION:
        return f"stale: admitted by rules {admission.rules_version}, now {RULES_VERSION}"
    return ""


def rule_task(task: Task, admissions: Admissions) -> Ruling:
    """Decide about a task: it needs an admission on a CPU, and none may speak against it."""
    counting = [a for a in admissions.values() if not admission_fault(a, task)]
    for outcome in (Outcome.REJECTED, Outcome.UNDECIDED):
        for admission in counting:
            if admission.outcome is outcome:
                where = admission.environment.device_kind
                told = _first_error(admission.findings) or "no finding says why"
                return Ruling(outcome, f"admission on {where}: {told}")
    if not any(a.environment.device_kind == "cpu" for a in counting):
        return Ruling(Outcome.UNDECIDED, "not admitted on a CPU yet")
    return ACCEPTED


def rule_solution(solution: Solution, verdict: Verdict | None, task: Ruling) -> Ruling:
    """Decide about a solution or an attempt, given the decision about its task."""
    if task.outcome is not Outcome.ACCEPTED:
        return Ruling(task.outcome, f"its task is {task.outcome.value}")
    if solution.contract is Contract.CPP_FUNCTION:
        return Ruling(Outcome.REJECTED, "runs on a CPU; never published as a kernel")
    if verdict is None:
        return Ruling(Outcome.UNDECIDED, "not judged on a GPU yet")
    fault = verdict_fault(verdict, solution)
    if fault:
        return Ruling(Outcome.UNDECIDED, fault)
    if verdict.outcome is Outcome.ACCEPTED:
        return ACCEPTED
    told = _first_error(verdict.findings)
    return Ruling(
        verdict.outcome, f"{verdict.status.value}: {told}" if told else verdict.status.value
    )


def counting_verdict(solution: Solution, verdicts: Verdicts) -> Verdict | None:
    """Return the verdict that decided about a solution, if one has."""
    verdict = verdicts.get(solution.id)
    if verdict is None or solution.contract is Contract.CPP_FUNCTION:
        return None
    if verdict_fault(verdict, solution) or verdict.outcome is Outcome.UNDECIDED:
        return None
    return verdict


def rule_trajectory(log: AttemptLog, verdicts: Verdicts, task: Ruling) -> Ruling:
    """Decide about recorded attempts: every one needs a verdict that counts, all on one device."""
    if task.outcome is not Outcome.ACCEPTED:
        return Ruling(task.outcome, f"its task is {task.outcome.value}")
    devices = set()
    for attempt in log.attempts:
        verdict = counting_verdict(attempt.solution, verdicts)
        if verdict is None:
            ruling = rule_solution(attempt.solution, verdicts.get(attempt.solution.id), task)
            return Ruling(ruling.outcome, f"attempt {attempt.solution.name}: {ruling.reason}")
        if verdict.status is Status.PASSED and verdict.speedup is None:
            return Ruling(Outcome.UNDECIDED, f"attempt {attempt.solution.name}: passed untimed")
        devices.add(verdict.environment.device)
    if len(devices) > 1:
        return Ruling(Outcome.UNDECIDED, f"judged on several GPUs: {', '.join(sorted(devices))}")
    return ACCEPTED


def _first_error(findings: tuple[Finding, ...]) -> str:
    return next((f"{f.message} [{f.rule}]" for f in findings if f.severity == "error"), "")
