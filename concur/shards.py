"""Shards: rows in, Parquet files out, byte-identical for the same rows and the same pyarrow.

How rows fall into files depends on the rows alone: they come sorted by id, and every file but the
last of a split holds `ROWS_PER_SHARD`.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from concur.manifest import sha256_file

ROWS_PER_SHARD = 5_000
"""Rows of a file; at the usual 20 to 60 kB a row that is 100 to 300 MB of text."""
GROUP_BYTES = 64 * 1024 * 1024
"""Uncompressed bytes after which a row group ends; one row is at most a few MB beyond it."""
GROUP_ROWS = 1_000
"""Rows after which a row group ends."""
_BATCH_ROWS = 50
_COMPRESSION = "zstd"
_COMPRESSION_LEVEL = 3


@dataclass(frozen=True)
class Shard:
    """One written file."""

    path: str
    """Relative to the data set's folder, with slashes."""
    config: str
    """Config that it belongs to."""
    split: str
    """Split that it belongs to."""
    rows: int
    """Rows in it."""
    bytes: int
    """Size of the file."""
    arrow_bytes: int
    """Size of its rows in memory, uncompressed."""
    sha256: str
    """Of the file, in hexadecimal."""


def write_split(
    folder: Path,
    config: str,
    split: str,
    schema: pa.Schema,
    rows: Iterable[dict[str, Any]],
    count: int,
) -> list[Shard]:
    """Write the rows of one split of one config into `folder`/data/`config`/; returns the shards.

    `rows` come sorted by id; `count` says how many they are, since file names hold the number of
    files. Raises ValueError when it is wrong. Writes nothing for no rows.
    """
    total = -(-count // ROWS_PER_SHARD)
    source = iter(rows)
    shards = []
    for index in range(total):
        path = f"data/{config}/{split}-{index:05d}-of-{total:05d}.parquet"
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        written, arrow_bytes = _write(target, schema, itertools.islice(source, ROWS_PER_SHARD))
        size = target.stat().st_size
        digest = sha256_file(target)
        shards.append(Shard(path, config, split, written, size, arrow_bytes, digest))
    if sum(s.rows for s in shards) != count or next(source, None) is not None:
        raise ValueError(f"{config}/{split}: {count} rows were announced, but others came")
    return shards


def _write(target: Path, schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> tuple[int, int]:
    """Write one file under a temporary name, then rename it. Returns rows and bytes in memory."""
    temporary = target.with_name(f".{target.name}.part")
    count = arrow_bytes = 0
    try:
        with pq.ParquetWriter(
            temporary,
            schema,
            compression=_COMPRESSION,
            compression_level=_COMPRESSION_LEVEL,
            use_content_defined_chunking=True,
            write_page_index=True,
            write_statistics=_with_statistics(schema),
        ) as writer:
            for table in _row_groups(schema, rows):
                writer.write_table(table, row_group_size=table.num_rows)
                count += table.num_rows
                arrow_bytes += table.nbytes
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return count, arrow_bytes


def _row_groups(schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> Iterator[pa.Table]:
    pending: list[pa.Table] = []
    size = count = 0
    while batch := list(itertools.islice(rows, _BATCH_ROWS)):
        table = pa.Table.from_pylist(batch, schema=schema)
        if pending and (size + table.nbytes > GROUP_BYTES or count + len(batch) > GROUP_ROWS):
            yield pa.concat_tables(pending).combine_chunks()
            pending, size, count = [], 0, 0
        pending.append(table)
        size += table.nbytes
        count += len(batch)
    if pending:
        yield pa.concat_tables(pending).combine_chunks()


def _with_statistics(schema: pa.Schema) -> list[str]:
    """Return the columns worth statistics: numbers, flags, ids and other short text, not prose."""
    long_text = {"description", "reference", "mathematics", "signature", "reasoning", "kernel"}
    long_text |= {"oracle", "note", "source"}
    return [
        field.name
        for field in schema
        if not pa.types.is_nested(field.type) and field.name not in long_text
    ]
