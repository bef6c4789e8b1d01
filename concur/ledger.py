"""The ledger: one SQLite file a data set, written by one process; resume point and audit trail.

It stands at `OUT/.concur/ledger.sqlite`, in WAL mode with `synchronous = FULL`: what a method has
returned from survives kill -9 and a power cut. A lock file beside it keeps a second process out.
Decisions and admissions of earlier runs stay; the samples of an earlier run are dropped when the
next one begins, since they are read again anyway.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from concur.errors import BuildError
from concur.schemas.verdict import Admission, Outcome, Verdict

SCHEMA_VERSION = 1
"""Layout of the tables; a file with another number is refused."""
_APPLICATION_ID = 0x434F4E43  # "CONC": tells our file from anybody else's SQLite file
_TABLES = """
CREATE TABLE runs (
    run INTEGER PRIMARY KEY, options TEXT NOT NULL, state TEXT NOT NULL, begun TEXT NOT NULL,
    ended TEXT NOT NULL DEFAULT '');
CREATE TABLE samples (
    run INTEGER NOT NULL, ordinal INTEGER NOT NULL, place TEXT NOT NULL, task_id TEXT NOT NULL,
    content TEXT NOT NULL, PRIMARY KEY (run, ordinal)) WITHOUT ROWID;
CREATE TABLE candidates (
    run INTEGER NOT NULL, ordinal INTEGER NOT NULL, subject TEXT NOT NULL,
    solution_id TEXT NOT NULL, PRIMARY KEY (run, ordinal, subject)) WITHOUT ROWID;
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


@dataclass(frozen=True)
class StoredSample:
    """A sample as the ledger holds it."""

    ordinal: int
    """Position among everything that the run read, from 0."""
    place: str
    """Where it was read."""
    content: str
    """The sample as JSON text."""


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


class Ledger:
    """An open ledger. Use it as a context manager; only the process that opened it may write."""

    def __init__(self, folder: Path) -> None:
        """Open or create the ledger in a folder.

        Raises BuildError when another process has it open, when the file is broken, or when it
        was written by another version.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "ledger.sqlite"
        self.run = 0
        self._lock = _lock(folder / "ledger.lock")
        try:
            with self._errors():
                self._connection = self._open()
        except BaseException:
            os.close(self._lock)
            raise

    def __enter__(self) -> Self:
        """Return the ledger itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the file and let the next process in."""
        self._connection.close()
        os.close(self._lock)

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

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make everything written inside durable together, or not at all."""
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        with self._errors():
            self._connection.execute("COMMIT")

    def add_sample(
        self, sample: StoredSample, task_id: str, candidates: Iterable[tuple[str, str]]
    ) -> None:
        """Record a sample with its candidates (subject, solution id)."""
        self._write(
            "INSERT INTO samples VALUES (?, ?, ?, ?, ?)",
            (self.run, sample.ordinal, sample.place, task_id, sample.content),
        )
        for subject, solution_id in candidates:
            self._write(
                "INSERT INTO candidates VALUES (?, ?, ?, ?)",
                (self.run, sample.ordinal, subject, solution_id),
            )

    def samples(self) -> Iterator[StoredSample]:
        """Yield the samples of this run in order, one at a time."""
        ordinal = -1
        while True:
            rows = self._read(
                "SELECT ordinal, place, content FROM samples WHERE run = ? AND ordinal > ? "
                "ORDER BY ordinal LIMIT 1",
                (self.run, ordinal),
            )
            if not rows:
                return
            yield StoredSample(*rows[0])
            ordinal = rows[0][0]

    def has_task(self, task_id: str) -> bool:
        """Return whether a sample with this task is already in this run."""
        return bool(
            self._read(
                "SELECT 1 FROM samples WHERE run = ? AND task_id = ? LIMIT 1", (self.run, task_id)
            )
        )

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
        for row in self._read(
            "SELECT stage, subject, record_id, outcome, reason FROM decisions "
            "WHERE run = ? AND stage = ? ORDER BY subject",
            (self.run, stage),
        ):
            yield Decision(row[0], row[1], row[2], Outcome(row[3]), row[4])

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        found = connection.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if (application, version) == (0, 0):
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise BuildError(f"{self.path} is a database, but no ledger; move it away")
            connection.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION_ID}; "
                f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
        elif application != _APPLICATION_ID or version != SCHEMA_VERSION:
            raise BuildError(
                f"{self.path} has layout {version}, but this version of concur knows only "
                f"{SCHEMA_VERSION}; use the version that wrote it, or move the file away"
            )

    def _read(self, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        with self._errors():
            return self._connection.execute(query, values).fetchall()

    def _write(self, statement: str, values: tuple[object, ...] = ()) -> None:
        with self._errors():
            self._connection.execute(statement, values)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise  # a bug of the caller: it is not the file that is at fault
        except sqlite3.OperationalError as error:
            raise BuildError(f"the ledger {self.path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise BuildError(
                f"the ledger {self.path} is damaged ({error}); move it away and run again: "
                "only the record of earlier runs is lost"
            ) from error


def _lock(path: Path) -> int:
    """Take the lock file; the system lets go of it when the process ends, however it ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
        os.close(handle)
        raise BuildError(
            f"another run (process {holder or 'unknown'}) is writing to {path.parent}; "
            "wait for it to end, or choose another --out"
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)
    return handle


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
