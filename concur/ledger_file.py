"""The file under the ledger: SQLite in WAL mode, one process at a time, faults in plain words."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from concur.errors import BuildError


class LedgerFile:
    """A database that one process has open. Use it as a context manager.

    `synchronous = FULL`: what has been committed survives kill -9 and a power cut.
    """

    TABLES: str
    """Statements that make the tables."""
    VERSION: int
    """Layout of the tables; a file with another number is refused."""
    APPLICATION_ID: int
    """Tells our file from anybody else's SQLite file."""

    def __init__(self, folder: Path) -> None:
        """Open or create the database in a folder.

        Raises BuildError when another process has it open, when the file is broken, or when it
        was written by another version.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "ledger.sqlite"
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
                f"BEGIN IMMEDIATE; {self.TABLES} PRAGMA application_id = {self.APPLICATION_ID}; "
                f"PRAGMA user_version = {self.VERSION}; COMMIT;"
            )
        elif application != self.APPLICATION_ID or version != self.VERSION:
            raise BuildError(
                f"{self.path} has layout {version}, but this version of concur knows only "
                f"{self.VERSION}; use the version that wrote it, or move the file away"
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
