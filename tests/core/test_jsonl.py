import os
import stat
from pathlib import Path

import pytest

from concur import jsonl


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
