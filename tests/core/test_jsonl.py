import os
import stat
from pathlib import Path

import pytest

from concur import jsonl
from concur.errors import RecordError


def test_only_a_line_feed_ends_a_record(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    values = [{"text": "a\u2028b\u2029c\u0085d\x0b\x0ce\rf"}, {"text": "\n"}, []]
    assert jsonl.write(path, values) == 3
    jsonl.append(path, None)
    assert list(jsonl.read(path)) == [*values, None]
    assert path.read_bytes().count(b"\n") == 4


def test_blank_lines_count_but_are_no_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"1\n\n \n2")
    assert list(jsonl.lines(path)) == [(1, b"1"), (4, b"2")]


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"1\n" + b"[" * 100_000 + b"\n")
    read = jsonl.read(path)
    assert next(read) == 1
    with pytest.raises(RecordError, match=r"records\.jsonl:2: "):
        next(read)


@pytest.mark.parametrize("whole", [b"", b"1\n", b'"' + b"x" * 200_000 + b'"\n'])
def test_appending_cuts_off_what_a_killed_process_left(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(whole + b'{"half": "' + b"y" * 100_000)
    jsonl.append(path, 2)
    assert path.read_bytes() == whole + b"2\n"


def test_a_failed_replacement_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    jsonl.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="Out of range"):
        jsonl.write_json(path, {"a": float("nan")})
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(IsADirectoryError):
        jsonl.replace(target, b"x")
    assert not any(target.iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "verdict.json"]
    assert path.read_bytes() == b'{\n  "a": 1\n}\n'


def test_a_replaced_file_can_be_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    previous = os.umask(0o022)
    try:
        jsonl.replace(path, b"x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
