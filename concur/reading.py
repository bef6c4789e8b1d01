"""The first stage of a build: samples from sources into the ledger, each checked on the CPU.

Whatever cannot be used is decided here, with its reason; everything else awaits the later stages.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from concur.builders.decisions import admission_fault, verdict_fault
from concur.builders.folder import CORPUS, SampleRead, find_samples, read_samples
from concur.builders.sample_builder import is_ours
from concur.ledger import Candidate, Decision, Ledger, StoredSample
from concur.schemas.sample import Sample
from concur.schemas.solution import Contract, Solution
from concur.schemas.verdict import Finding, Outcome
from concur.validators.checks import check_sample

_PART = re.compile(r"\$\.(solutions|trajectories)\[\d+\]")

STAGES = ("task", "solution", "trajectory")
"""Kinds of record that are accounted for."""


@dataclass
class Reading:
    """What was read, counted apart from what was decided about it."""

    read: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STAGES, 0))
    """Records by stage."""
    ignored: int = 0
    """Verdict and admission files that were not believed because of where they stand."""
    stale_admissions: int = 0
    """Recorded admissions that no longer say anything about their task."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the build's report should know about what was read."""
        told = []
        if self.ignored:
            told.append(
                f"{self.ignored} verdict and admission files were ignored: files of the judge are "
                "believed in our own corpus only"
            )
        if self.stale_admissions:
            told.append(f"{self.stale_admissions} recorded admissions are stale")
        return tuple(told)


@dataclass(frozen=True)
class _Place:
    """One sample on its way into the ledger."""

    ordinal: int
    subject: str
    trusted: bool


def read_sources(
    ledger: Ledger, sources: tuple[Path, ...], trust_recorded: bool, limit: int | None
) -> Reading:
    """Read every sample of the sources into the ledger; our own corpus when there are none.

    Recorded verdicts and admissions are believed in our own corpus, elsewhere only when
    `trust_recorded` says so.
    """
    reading = Reading()
    # One transaction: a build that is killed here reads again anyway.
    with ledger.transaction():
        for ordinal, read in enumerate(_reads(sources or (CORPUS,))):
            if limit is not None and ordinal >= limit:
                break
            trusted = trust_recorded or is_ours(read.path)
            _take(ledger, reading, read, ordinal, trusted)
    return reading


def _reads(sources: tuple[Path, ...]) -> Iterator[SampleRead]:
    for source in sources:
        for path in find_samples(source):
            yield from read_samples(path)


def _take(ledger: Ledger, reading: Reading, read: SampleRead, ordinal: int, trusted: bool) -> None:
    reading.read["task"] += 1
    sample = read.sample
    name = sample.task.name if sample else f"{read.path.name}{f':{read.line}' if read.line else ''}"
    subject = f"{name}@{ordinal}" if ledger.is_known(name) else name
    if sample is None:
        _reject(ledger, "task", subject, "", _reason(read.findings, "could not be read"))
        return
    _reject_left_out(ledger, reading, read, subject)
    first = ledger.subject_of_task(sample.task.id)
    if first:
        _reject_repeated(ledger, reading, sample, subject, first)
        return
    place = _Place(ordinal, subject, trusted)
    _carry_over(ledger, reading, read, sample, trusted)
    candidates = list(_candidates(read, sample, place))
    content = sample.model_dump_json()
    ledger.add_sample(StoredSample(ordinal, subject, content), sample.task.id, candidates)
    reading.read["solution"] += len(candidates)
    reading.read["trajectory"] += len(sample.trajectories)
    _check(ledger, sample, subject, {c.solution_id: c.subject for c in candidates})


def _candidates(read: SampleRead, sample: Sample, place: _Place) -> Iterator[Candidate]:
    verdicts = read.recorded.verdicts if place.trusted else {}
    solutions = {s.id: s for s in sample.candidates}
    for solution_id, subject in subjects(sample, place.subject).items():
        verdict = verdicts.get(solution_id)
        solution = solutions[solution_id]
        # Whatever is recorded about a C++ function, it is never published: nothing can be stale.
        counts = verdict is not None and solution.contract is not Contract.CPP_FUNCTION
        fault = verdict_fault(verdict, solution) if verdict and counts else ""
        yield Candidate(solution_id, subject, counts, fault)


def subjects(sample: Sample, task: str) -> dict[str, str]:
    """Return what every candidate is called in decisions, by solution id, in order."""
    named: dict[str, str] = {}
    for solution in sample.solutions:
        named.setdefault(solution.id, f"{task}/solutions/{solution.name}")
    for log in sample.trajectories:
        for attempt in log.attempts:
            place = f"{task}/trajectories/{log.name}/{attempt.solution.name}"
            named.setdefault(attempt.solution.id, place)
    return named


def _carry_over(
    ledger: Ledger, reading: Reading, read: SampleRead, sample: Sample, trusted: bool
) -> None:
    """Take recorded verdicts and admissions that count, and count the others."""
    recorded = read.recorded
    if not trusted:
        reading.ignored += len(recorded.verdicts) + len(recorded.admissions)
        return
    for kind, admission in recorded.admissions.items():
        if admission_fault(admission, sample.task) or admission.environment.device_kind != kind:
            reading.stale_admissions += 1
        elif ledger.admission(sample.task.id, kind) is None:
            ledger.add_admission(admission, measured=False)
    for solution in sample.candidates:
        verdict = recorded.verdicts.get(solution.id)
        if verdict is not None and not verdict_fault(verdict, solution):
            ledger.add_verdict(verdict)


def _check(ledger: Ledger, sample: Sample, subject: str, named: dict[str, str]) -> None:
    """Run the CPU checks; whatever has an error is rejected with it.

    What a finding is about is found by checking the task alone, then with one solution or attempt
    at a time: an attempt may share a solution's id, but not its licence or its reasoning.
    """
    all_errors = _errors(sample)
    if not all_errors:
        return
    alone = Sample(task=sample.task)
    task_errors = _errors(alone)
    if task_errors:
        _reject(ledger, "task", subject, sample.task.id, _reason(task_errors, ""))
        return
    rejected: set[tuple[str, str]] = set()
    for stage, place, solution in _places(sample, subject, named):
        errors = _errors(alone.model_copy(update={"solutions": (solution,)}))
        if errors and (stage, place) not in rejected:
            rejected.add((stage, place))
            record_id = solution.id if stage == "solution" else ""
            told = "" if stage == "solution" else f"attempt {solution.name}: "
            _reject(ledger, stage, place, record_id, f"{told}{_reason(errors, '')}")
    if not rejected:
        _reject(ledger, "task", subject, sample.task.id, _reason(all_errors, ""))


def _places(
    sample: Sample, subject: str, named: dict[str, str]
) -> Iterator[tuple[str, str, Solution]]:
    """Yield every solution and attempt with the stage and subject that its errors cost.

    An attempt that repeats an earlier candidate costs its trajectory, and spares that candidate.
    """
    for solution in sample.solutions:
        yield "solution", named[solution.id], solution
    for log in sample.trajectories:
        series = f"{subject}/trajectories/{log.name}"
        for attempt in log.attempts:
            place = f"{series}/{attempt.solution.name}"
            is_first = named[attempt.solution.id] == place
            yield (
                "solution" if is_first else "trajectory",
                place if is_first else series,
                attempt.solution,
            )


def _errors(sample: Sample) -> tuple[Finding, ...]:
    return tuple(f for f in check_sample(sample) if f.severity == "error")


def _reject_left_out(ledger: Ledger, reading: Reading, read: SampleRead, task: str) -> None:
    """Reject the parts that reading found broken and left out of the sample."""
    broken: dict[tuple[str, str], Finding] = {}
    for finding in read.findings:
        named = _part_of(finding, read.path) if finding.severity == "error" else None
        if named is not None:
            broken.setdefault(named, finding)
    for (kind, part), finding in broken.items():
        stage = "solution" if kind == "solutions" else "trajectory"
        reading.read[stage] += 1
        _reject(ledger, stage, f"{task}/{part}", "", _reason((finding,), ""))


def _part_of(finding: Finding, path: Path) -> tuple[str, str] | None:
    """Return the kind and name of the solution or series of attempts that a finding is about."""
    found = _PART.match(finding.where)
    if found:
        return found.group(1), found.group(0).removeprefix("$.")
    try:
        parts = Path(finding.path).relative_to(path).parts
    except ValueError:
        return None
    if len(parts) >= 2 and parts[0] in ("solutions", "trajectories"):
        return parts[0], "/".join(parts[:2])
    return None


def _reject_repeated(
    ledger: Ledger, reading: Reading, sample: Sample, subject: str, first: str
) -> None:
    reason = f"the same task as {first}"
    _reject(ledger, "task", subject, sample.task.id, reason)
    for solution_id, named in subjects(sample, subject).items():
        reading.read["solution"] += 1
        _reject(ledger, "solution", named, solution_id, reason)
    for log in sample.trajectories:
        reading.read["trajectory"] += 1
        _reject(ledger, "trajectory", f"{subject}/trajectories/{log.name}", "", reason)


def _reject(ledger: Ledger, stage: str, subject: str, record_id: str, reason: str) -> None:
    ledger.decide(Decision(stage, subject, record_id, Outcome.REJECTED, reason))


def _reason(findings: tuple[Finding, ...], otherwise: str) -> str:
    told = [f for f in findings if f.severity == "error"]
    return f"{told[0].message} [{told[0].rule}]" if told else otherwise
