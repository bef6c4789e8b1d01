"""kill -9 at any moment: the next build continues, and its files are the same to the byte."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concur import manifest
from concur.errors import IntegrityError

Factory = Callable[..., Any]

SCRIPT = Path(__file__).parent / "slow_build.py"
SAMPLES = 6


def start(out: Path, corpus: Path, workers: int = 1) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", str(SCRIPT), str(out), str(corpus), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def finish(out: Path, corpus: Path, workers: int = 1) -> list[str]:
    process = start(out, corpus, workers)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0, told
    return told.splitlines()


def files_of(out: Path) -> dict[str, bytes]:
    return {
        p.relative_to(out).as_posix(): p.read_bytes()
        for p in sorted(out.rglob("*"))
        if p.is_file() and ".concur" not in p.parts
    }


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_killed_at_random_moments(tmp_path: Path, write_corpus: Factory) -> None:
    corpus = write_corpus(SAMPLES)
    began = time.monotonic()
    assert (
        len([line for line in finish(tmp_path / "whole", corpus) if "accepted" in line]) == SAMPLES
    )
    whole_s = time.monotonic() - began
    finish(tmp_path / "two", corpus, workers=2)
    expected = files_of(tmp_path / "whole")
    assert files_of(tmp_path / "two") == expected
    moments = random.Random(20261201)
    for attempt in range(4):
        out = tmp_path / f"killed-{attempt}"
        process = start(out, corpus, workers=1 + attempt % 2)
        time.sleep(moments.uniform(0.3, 1.0) * whole_s)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        told = finish(out, corpus, workers=2 - attempt % 2)
        assert files_of(out) == expected, f"attempt {attempt}: {told}"
        left = {p.name for p in (out / ".concur").iterdir() if not p.name.startswith("ledger")}
        assert left == {"report.json"}


def test_a_killed_build_continues_and_leaves_no_worker(
    tmp_path: Path, write_corpus: Factory
) -> None:
    out, corpus = tmp_path / "out", write_corpus(SAMPLES)
    process = start(out, corpus)
    assert process.stdout is not None
    admitted = 0
    while admitted < 3:
        admitted += "accepted" in process.stdout.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    told = finish(out, corpus)
    assert told[0] == "continuing a build that was cut short"
    again = sum("accepted" in line for line in told)
    assert 0 < again <= SAMPLES - admitted
    deadline = time.monotonic() + 10
    while any(is_alive(int(pid)) for pid in children):
        assert time.monotonic() < deadline, "a worker outlives the build"
        time.sleep(0.1)


def test_a_build_cut_short_while_moving_files_is_noticed_and_healed(
    tmp_path: Path, write_corpus: Factory
) -> None:
    out = tmp_path / "out"
    finish(out, write_corpus(3, "old"))
    corpus = write_corpus(4, "new")
    finish(tmp_path / "new-out", corpus)
    # What a kill between two renames leaves: some files of the new build under the old manifest.
    name = "data/triplets/train-00000-of-00001.parquet"
    (out / name).write_bytes((tmp_path / "new-out" / name).read_bytes())
    with pytest.raises(IntegrityError, match="triplets/train-00000"):
        manifest.verify(out, manifest.read(out).files)
    finish(out, corpus)
    assert files_of(out) == files_of(tmp_path / "new-out")
