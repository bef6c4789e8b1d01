"""The ledger: one SQLite file a data set, written by one process; resume point and audit trail.

It stands at `OUT/.concur/ledger.sqlite`, in WAL mode with `synchronous = FULL`: what a method has
returned from survives kill -9 and a power cut. A lock file beside it keeps a second process out.
Decisions and admissions of earlier runs stay; the samples of an earlier run are dropped when the
next one begins, since they are read again anyway.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from concur.ledger_file import LedgerFile
from concur.schemas.verdict import Admission, Outcome, Verdict

SCHEMA_VERSION = 1
"""Layout of the tables; a file with another number is refused."""
_TABLES = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY, options TEXT NOT NULL, state TEXT NOT NULL, begun TEXT NOT NULL,
    ended TEXT NOT NULL DEFAULT '');
CREATE TABLE samples (
    run INTEGER NOT NULL, ordinal INTEGER NOT NULL, subject TEXT NOT NULL, task_id TEXT NOT NULL,
    content TEXT NOT NULL, PRIMARY KEY (run, ordinal)) WITHOUT ROWID;
CREATE INDEX samples_by_task ON samples (run, task_id);
CREATE TABLE candidates (
    run INTEGER NOT NULL, ordinal INTEGER NOT NULL, solution_id TEXT NOT NULL,
    subject TEXT NOT NULL, recorded INTEGER NOT NULL, stale TEXT NOT NULL,
    PRIMARY KEY (run, solution_id)) WITHOUT ROWID;
CREATE TABLE admissions (
    run INTEGER NOT NULL, task_id TEXT NOT NULL, device_kind TEXT NOT NULL, origin TEXT NOT NULL,
    content TEXT NOT NULL, PRIMARY KEY (run, task_id, device_kind)) WITHOUT ROWID;
CREATE TABLE verdicts (
    run INTEGER NOT NULL, solution_id TEXT NOT NULL, content TEXT NOT NULL,
    PRIMARY KEY (run, solution_id)) WITHOUT ROWID;
CREATE TABLE decisions (
    run INTEGER NOT NULL, stage TEXT NOT NULL, subject TEXT NOT NULL, record_id TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('accepted', 'rejected', 'undecided')),
    reason TEXT NOT NULL, PRIMARY KEY (run, stage, subject)) WITHOUT ROWID;
"""
_DECISIONS = "SELECT stage, subject, record_id, outcome, reason FROM decisions"


@dataclass(frozen=True)
class StoredSample:
    """A sample as the ledger holds it."""

    ordinal: int
    """Position among everything that the run read, from 0."""
    subject: str
    """What its task is called in decisions."""
    content: str
    """The sample as JSON text."""


@dataclass(frozen=True)
class Candidate:
    """A solution or attempt as the ledger holds it."""

    solution_id: str
    """Content id."""
    subject: str
    """What it is called in decisions."""
    recorded: bool
    """Whether a verdict stands beside it that is believed where it comes from."""
    fault: str
    """Why that verdict does not count; empty when it does, or when there is none."""


@dataclass(frozen=True)
class Decision:
    """What one stage decided about one record."""

    stage: str
    """task, solution or trajectory."""
    subject: str
    """What it is about, for people: `<task>`, or `<task>/solutions/<name>` and the like."""
    record_id: str
    """Content id; empty for what could not be read."""
    outcome: Outcome
    """One of the three."""
    reason: str
    """Why, in one sentence; empty for what was accepted."""


class Ledger(LedgerFile):
    """An open ledger. Use it as a context manager; only the process that opened it may write."""

    TABLES = _TABLES
    VERSION = SCHEMA_VERSION
    APPLICATION_ID = 0x434F4E43  # "CONC"

    run = 0
    """Number of the run; 0 until `begin`."""

    def begin(self, options: str) -> bool:
        """Begin a run, or take up the last one if it was cut short with the same options.

        `options` is text that says what decides about the work. Returns whether a run was resumed.
        """
        with self.transaction():
            rows = self._read("SELECT run, options FROM runs WHERE state = 'open' ORDER BY run")
            last = rows[-1] if rows else None
            resumed = last is not None and last[1] == options
            if last is not None and resumed:
                self.run = last[0]
            else:
                self._write("UPDATE runs SET state = 'abandoned' WHERE state = 'open'")
                self._write(
                    "INSERT INTO runs (options, state, begun) VALUES (?, 'open', ?)",
                    (options, _now()),
                )
                self.run = self._read("SELECT max(run) FROM runs")[0][0]
            for table in ("samples", "candidates", "verdicts"):
                self._write(f"DELETE FROM {table}")
            self._write("DELETE FROM decisions WHERE run = ?", (self.run,))
            # Recorded ones are read again; only what was measured costs anything to lose.
            self._write("DELETE FROM admissions WHERE run = ? AND origin = 'recorded'", (self.run,))
        return resumed

    def end(self, state: str) -> None:
        """Mark the run as `done` or `failed`; it will not be resumed."""
        self._write("UPDATE runs SET state = ?, ended = ? WHERE run = ?", (state, _now(), self.run))

    def add_sample(
        self, sample: StoredSample, task_id: str, candidates: Iterable[Candidate]
    ) -> None:
        """Record a sample with its candidates."""
        self._write(
            "INSERT INTO samples VALUES (?, ?, ?, ?, ?)",
            (self.run, sample.ordinal, sample.subject, task_id, sample.content),
        )
        for candidate in candidates:
            self._write(
                "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?)",
                (
                    self.run,
                    sample.ordinal,
                    candidate.solution_id,
                    candidate.subject,
                    candidate.recorded,
                    candidate.fault,
                ),
            )

    def candidates(self, ordinal: int) -> dict[str, Candidate]:
        """Return the candidates of one sample by solution id."""
        rows = self._read(
            "SELECT solution_id, subject, recorded, stale FROM candidates "
            "WHERE run = ? AND ordinal = ?",
            (self.run, ordinal),
        )
        return {row[0]: Candidate(row[0], row[1], bool(row[2]), row[3]) for row in rows}

    def staleness(self) -> tuple[int, int]:
        """Return how many recorded verdicts of this run are stale, and how many there are.

        One that was judged on a CPU only does not count either, but has not become stale.
        """
        rows = self._read(
            "SELECT sum(stale LIKE 'stale%'), count(*) FROM candidates WHERE run = ? AND recorded",
            (self.run,),
        )
        return int(rows[0][0] or 0), int(rows[0][1])

    def samples(self) -> Iterator[StoredSample]:
        """Yield the samples of this run in order, one at a time."""
        ordinal = -1
        while True:
            rows = self._read(
                "SELECT ordinal, subject, content FROM samples WHERE run = ? AND ordinal > ? "
                "ORDER BY ordinal LIMIT 1",
                (self.run, ordinal),
            )
            if not rows:
                return
            yield StoredSample(*rows[0])
            ordinal = rows[0][0]

    def subject_of_task(self, task_id: str) -> str:
        """Return what a task is called in this run; empty when it is not there."""
        rows = self._read(
            "SELECT subject FROM samples WHERE run = ? AND task_id = ?", (self.run, task_id)
        )
        return str(rows[0][0]) if rows else ""

    def is_known(self, subject: str) -> bool:
        """Return whether a task of this run is called so already."""
        held = "SELECT 1 FROM samples WHERE run = ? AND subject = ?"
        return bool(self._read(held, (self.run, subject)) or self.is_decided("task", subject))

    def is_decided(self, stage: str, subject: str) -> bool:
        """Return whether a stage has decided about a subject in this run."""
        return self.decision(stage, subject) is not None

    def decision(self, stage: str, subject: str) -> Decision | None:
        """Return what a stage has decided about a subject in this run."""
        rows = self._read(
            f"{_DECISIONS} WHERE run = ? AND stage = ? AND subject = ?", (self.run, stage, subject)
        )
        return _decision(rows[0]) if rows else None

    def add_admission(self, admission: Admission, *, measured: bool) -> None:
        """Record an admission; `measured` ones were made by this run and survive a restart."""
        self._write(
            "INSERT OR REPLACE INTO admissions VALUES (?, ?, ?, ?, ?)",
            (
                self.run,
                admission.task_id,
                admission.environment.device_kind,
                "measured" if measured else "recorded",
                admission.model_dump_json(),
            ),
        )

    def admission(self, task_id: str, device_kind: str) -> Admission | None:
        """Return this run's admission of a task on a kind of device, if there is one."""
        rows = self._read(
            "SELECT content FROM admissions WHERE run = ? AND task_id = ? AND device_kind = ?",
            (self.run, task_id, device_kind),
        )
        return Admission.model_validate_json(rows[0][0]) if rows else None

    def is_measured(self, task_id: str, device_kind: str) -> bool:
        """Return whether this run itself made an admission of a task."""
        return bool(
            self._read(
                "SELECT 1 FROM admissions WHERE run = ? AND task_id = ? AND device_kind = ? "
                "AND origin = 'measured'",
                (self.run, task_id, device_kind),
            )
        )

    def add_verdict(self, verdict: Verdict) -> None:
        """Record a verdict that counts for its solution."""
        self._write(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)",
            (self.run, verdict.solution_id, verdict.model_dump_json()),
        )

    def verdict(self, solution_id: str) -> Verdict | None:
        """Return the verdict that counts for a solution, if there is one."""
        rows = self._read(
            "SELECT content FROM verdicts WHERE run = ? AND solution_id = ?",
            (self.run, solution_id),
        )
        return Verdict.model_validate_json(rows[0][0]) if rows else None

    def decide(self, decision: Decision) -> None:
        """Record a decision; deciding twice about one subject in one stage is an error."""
        self._write(
            "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)",
            (
                self.run,
                decision.stage,
                decision.subject,
                decision.record_id,
                decision.outcome.value,
                decision.reason,
            ),
        )

    def decisions(self, stage: str) -> Iterator[Decision]:
        """Yield the decisions of one stage in this run, sorted by subject."""
        yield from map(
            _decision,
            self._read(
                f"{_DECISIONS} WHERE run = ? AND stage = ? ORDER BY subject", (self.run, stage)
            ),
        )

    def counts(self, stage: str) -> dict[Outcome, int]:
        """Return how often each outcome was decided in one stage of this run."""
        rows = self._read(
            "SELECT outcome, count(*) FROM decisions WHERE run = ? AND stage = ? GROUP BY outcome",
            (self.run, stage),
        )
        found = {row[0]: int(row[1]) for row in rows}
        return {outcome: found.get(outcome.value, 0) for outcome in Outcome}


def _decision(row: tuple[Any, ...]) -> Decision:
    return Decision(row[0], row[1], row[2], Outcome(row[3]), row[4])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
