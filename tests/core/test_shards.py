"""Shards: one plan for the same rows, and what a Parquet file of ours is made of."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from concur import shards
from concur.manifest import sha256_file
from concur.schemas import Solution
from concur.schemas.arrow import arrow_schema, to_row
from concur.shards import write_split

Factory = Callable[..., Any]


@pytest.fixture
def rows(make_solution: Factory) -> list[dict[str, Any]]:
    made = (to_row(make_solution(source=f"// {n}\n" + "x = 1;\n" * n)) for n in range(250))
    return sorted(made, key=lambda row: str(row["id"]))


def write(folder: Path, rows: list[dict[str, Any]]) -> list[shards.Shard]:
    return write_split(folder, "solutions", "train", arrow_schema(Solution), iter(rows), len(rows))


def test_bytes_are_the_same_twice(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    one, two = write(tmp_path / "one", rows), write(tmp_path / "two", rows)
    assert one == two
    assert one[0].sha256 == sha256_file(tmp_path / "one" / one[0].path)


def test_rows_come_back(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    (shard,) = write(tmp_path, rows)
    assert shard.path == "data/solutions/train-00000-of-00001.parquet"
    assert pq.read_table(tmp_path / shard.path).to_pylist() == rows
    assert [p.name for p in (tmp_path / "data" / "solutions").iterdir()] == [
        "train-00000-of-00001.parquet"
    ]


def test_the_format(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    (shard,) = write(tmp_path, rows)
    metadata = pq.ParquetFile(tmp_path / shard.path).metadata
    columns = [metadata.row_group(0).column(i) for i in range(metadata.num_columns)]
    assert {c.compression for c in columns} == {"ZSTD"}
    with_statistics = {c.path_in_schema for c in columns if c.is_stats_set}
    assert {"id", "name", "task_id", "contract"} <= with_statistics
    assert not with_statistics & {"reasoning", "files.list.element.content"}
    assert all(c.has_offset_index for c in columns)
    assert b"huggingface" in pq.read_schema(tmp_path / shard.path).metadata


def test_rows_fill_shards_and_row_groups_in_order(
    tmp_path: Path, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "ROWS_PER_SHARD", 120)
    monkeypatch.setattr(shards, "GROUP_BYTES", 60_000)
    written = write(tmp_path, rows)
    assert [s.rows for s in written] == [120, 120, 10]
    names = [s.path.rpartition("/")[2] for s in written]
    assert names == [f"train-0000{n}-of-00003.parquet" for n in range(3)]
    ids = [i for s in written for i in pq.read_table(tmp_path / s.path)["id"].to_pylist()]
    assert ids == [row["id"] for row in rows]
    assert pq.ParquetFile(tmp_path / written[0].path).metadata.num_row_groups > 1


def test_a_wrong_count_is_an_error(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    schema = arrow_schema(Solution)
    for count in (249, 251):
        with pytest.raises(ValueError, match="rows were announced"):
            write_split(tmp_path, "solutions", "train", schema, iter(rows), count)


def test_no_rows_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, []) == []
    assert not (tmp_path / "data").exists()
