"""The third stage of a build: what is accepted, what is not and why, and the rows of the former."""

from concur.builders.decisions import (
    Ruling,
    counting_verdict,
    rule_solution,
    rule_task,
    rule_trajectory,
)
from concur.builders.tasks import build_solutions, build_task
from concur.builders.trajectories import build_trajectory
from concur.builders.triplets import build_triplets, lacking
from concur.ledger import Candidate, Decision, Ledger, StoredSample
from concur.rows import RowStore
from concur.schemas.sample import Sample
from concur.schemas.solution import Solution
from concur.schemas.trajectory import AttemptLog
from concur.schemas.verdict import Outcome, Verdict
from concur.splits import split_of


def select(ledger: Ledger, rows: RowStore) -> dict[str, str]:
    """Decide about everything that reading left open, and add the rows of what is accepted.

    Returns why accepted solutions are no triplets all the same, by what they are called in
    decisions. Raises MissingDependency when tokens cannot be counted.
    """
    no_triplet: dict[str, str] = {}
    with ledger.transaction():
        for stored in ledger.samples():
            no_triplet.update(_Selection(ledger, stored).run(rows))
    return no_triplet


class _Selection:
    """Decides about one sample."""

    def __init__(self, ledger: Ledger, stored: StoredSample) -> None:
        self._ledger = ledger
        self._subject = stored.subject
        self._sample = Sample.model_validate_json(stored.content)
        self._candidates = ledger.candidates(stored.ordinal)
        task_id = self._sample.task.id
        found = {kind: ledger.admission(task_id, kind) for kind in ("cpu", "cuda")}
        self._admissions = {kind: a for kind, a in found.items() if a is not None}

    def run(self, rows: RowStore) -> dict[str, str]:
        """Decide and add rows; returns why accepted solutions are no triplets, by subject."""
        task = self._rule_task()
        verdicts = self._rule_solutions(task)
        accepted = self._rule_trajectories(task, verdicts)
        if task.outcome is not Outcome.ACCEPTED:
            return {}
        sample = self._sample
        split = split_of(sample.task.provenance.group)
        rows.add("tasks", split, build_task(sample, self._admissions))
        for triplet in build_triplets(sample, verdicts):
            rows.add("triplets", split, triplet)
        for solution in build_solutions(sample, verdicts):
            rows.add("solutions", split, solution)
            rows.add("verdicts", split, verdicts[solution.id])
        for log in sample.trajectories:
            if log.name in accepted:
                rows.add("trajectories", split, build_trajectory(sample, log, verdicts))
        return self._no_triplet(verdicts)

    def _no_triplet(self, verdicts: dict[str, Verdict]) -> dict[str, str]:
        found = {}
        for solution in self._sample.solutions:
            verdict = verdicts.get(solution.id)
            if verdict is not None and verdict.outcome is Outcome.ACCEPTED:
                found[self._candidates[solution.id].subject] = lacking(solution, verdict)
        return {subject: why for subject, why in found.items() if why}

    def _rule_task(self) -> Ruling:
        earlier = self._ledger.decision("task", self._subject)
        if earlier is not None:
            return Ruling(earlier.outcome, earlier.reason)
        ruling = rule_task(self._sample.task, self._admissions)
        self._decide("task", self._subject, self._sample.task.id, ruling)
        return ruling

    def _rule_solutions(self, task: Ruling) -> dict[str, Verdict]:
        """Decide about every candidate; returns the verdicts that decided, by solution id."""
        deciding = {}
        for solution in self._sample.candidates:
            candidate = self._candidates[solution.id]
            if self._ledger.is_decided("solution", candidate.subject):
                continue
            verdict = self._ledger.verdict(solution.id)
            ruling = self._rule_solution(solution, candidate, verdict, task)
            self._decide("solution", candidate.subject, solution.id, ruling)
            decided = counting_verdict(solution, {solution.id: verdict} if verdict else {})
            if decided is not None and task.outcome is Outcome.ACCEPTED:
                deciding[solution.id] = decided
        return deciding

    def _rule_solution(
        self, solution: Solution, candidate: Candidate, verdict: Verdict | None, task: Ruling
    ) -> Ruling:
        ruling = rule_solution(solution, verdict, task)
        is_open = task.outcome is Outcome.ACCEPTED and ruling.outcome is Outcome.UNDECIDED
        return Ruling(Outcome.UNDECIDED, candidate.fault) if candidate.fault and is_open else ruling

    def _rule_trajectories(self, task: Ruling, verdicts: dict[str, Verdict]) -> set[str]:
        """Decide about every series of attempts; returns the names of the accepted."""
        accepted = set()
        for log in self._sample.trajectories:
            subject = f"{self._subject}/trajectories/{log.name}"
            if self._ledger.is_decided("trajectory", subject):
                continue
            ruling = self._missing(log, verdicts) or rule_trajectory(log, verdicts, task)
            if ruling.outcome is Outcome.ACCEPTED:
                accepted.add(log.name)
            self._decide("trajectory", subject, "", ruling)
        return accepted

    def _missing(self, log: AttemptLog, verdicts: dict[str, Verdict]) -> Ruling | None:
        """Return why an attempt has no verdict that counts, as it was decided about the attempt."""
        for solution in (attempt.solution for attempt in log.attempts):
            if solution.id not in verdicts:
                subject = self._candidates[solution.id].subject
                decided = self._ledger.decision("solution", subject)
                if decided is not None:
                    return Ruling(decided.outcome, f"attempt {solution.name}: {decided.reason}")
        return None

    def _decide(self, stage: str, subject: str, record_id: str, ruling: Ruling) -> None:
        self._ledger.decide(Decision(stage, subject, record_id, ruling.outcome, ruling.reason))
