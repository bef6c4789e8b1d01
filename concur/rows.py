"""Rows on their way into shards: sorted by id, each id once, held on disk rather than in memory."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from concur.errors import BuildError
from concur.schemas.arrow import to_row
from concur.schemas.base import Identified
from concur.schemas.solution import DecidedSolution
from concur.schemas.task import AdmittedTask
from concur.schemas.trajectory import Trajectory
from concur.schemas.triplet import Triplet
from concur.schemas.verdict import Verdict
from concur.splits import SPLITS, Split

RECORDS: dict[str, type[Identified]] = {
    "triplets": Triplet,
    "trajectories": Trajectory,
    "tasks": AdmittedTask,
    "solutions": DecidedSolution,
    "verdicts": Verdict,
}
"""Record class of the rows of every config."""
CONFIGS = tuple(RECORDS)
"""Configs of a data set; the first that has rows is the default."""


class RowStore:
    """A scratch file of rows by config and split. Worth nothing after a crash: it is made anew."""

    def __init__(self, path: Path) -> None:
        """Create an empty store, in place of whatever an earlier run left at the path."""
        path.unlink(missing_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
            "CREATE TABLE rows (config TEXT, split TEXT, id TEXT, row TEXT,"
            "PRIMARY KEY (config, id));"
        )

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._connection.close()

    def add(self, config: str, split: Split, record: Identified) -> None:
        """Add a record's row. Raises BuildError when the config has a row of that id already."""
        row = json.dumps(to_row(record), ensure_ascii=False, allow_nan=False)
        try:
            self._connection.execute(
                "INSERT INTO rows VALUES (?, ?, ?, ?)", (config, split, record.id, row)
            )
        except sqlite3.IntegrityError:
            raise BuildError(f"config {config}: two rows have the id {record.id}") from None

    def counts(self, config: str) -> dict[str, int]:
        """Return the number of rows of one config by split; splits without rows are left out."""
        cursor = self._connection.execute(
            "SELECT split, count(*) FROM rows WHERE config = ? GROUP BY split", (config,)
        )
        found = dict(cursor.fetchall())
        return {split: found[split] for split in SPLITS if split in found}

    def rows(self, config: str, split: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of one split of one config, sorted by id."""
        cursor = self._connection.execute(
            "SELECT row FROM rows WHERE config = ? AND split = ? ORDER BY id", (config, split)
        )
        for (row,) in cursor:
            yield json.loads(row)
