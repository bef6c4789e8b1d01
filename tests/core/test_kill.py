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


class Kills:
    """Whole builds of one corpus to compare with, and builds of it that are killed on the way."""

    def __init__(self, folder: Path, corpus: Path) -> None:
        self.folder, self.corpus = folder, corpus
        began = time.monotonic()
        told = finish(folder / "whole", corpus)
        self.whole_s = time.monotonic() - began
        assert len([line for line in told if "accepted" in line]) == SAMPLES
        self.expected = files_of(folder / "whole")

    def kill(self, attempt: int, share: float) -> int:
        """Kill a build after a share of what a whole one takes, finish it; returns how it ended."""
        out = self.folder / f"killed-{attempt}"
        process = start(out, self.corpus, workers=1 + attempt % 2)
        time.sleep(share * self.whole_s)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        told = finish(out, self.corpus, workers=2 - attempt % 2)
        assert files_of(out) == self.expected, f"attempt {attempt}, {share:.3f}: {told}"
        left = {p.name for p in (out / ".concur").iterdir() if not p.name.startswith("ledger")}
        assert left == {"report.json"}
        return process.returncode


def test_killed_at_random_moments(tmp_path: Path, write_corpus: Factory) -> None:
    kills = Kills(tmp_path, write_corpus(SAMPLES))
    finish(tmp_path / "two", kills.corpus, workers=2)
    assert files_of(tmp_path / "two") == kills.expected
    moments = random.Random(20261201)
    ended = [kills.kill(attempt, moments.uniform(0.3, 0.9)) for attempt in range(2)]
    assert -signal.SIGKILL in ended, f"no build was killed before it ended: {ended}"


@pytest.mark.long
def test_killed_at_many_more_moments(tmp_path: Path, write_corpus: Factory) -> None:
    kills = Kills(tmp_path, write_corpus(SAMPLES))
    moments = random.Random(20261202)
    ended = [kills.kill(attempt, moments.uniform(0.05, 1.0)) for attempt in range(12)]
    assert ended.count(-signal.SIGKILL) >= 6, f"most builds ended before the kill: {ended}"


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
