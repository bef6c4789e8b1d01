"""The ledger: durable, exclusive, and clear about what is wrong with it."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concur.errors import BuildError
from concur.ledger import Candidate, Decision, Ledger, StoredSample
from concur.schemas import Outcome

Factory = Callable[..., Any]


def decision(subject: str, outcome: Outcome = Outcome.REJECTED) -> Decision:
    return Decision("task", subject, "task-1", outcome, "because")


def test_decisions_add_up_and_survive(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        assert not ledger.begin("a")
        ledger.decide(decision("b"))
        ledger.decide(decision("a", Outcome.ACCEPTED))
        ledger.end("done")
    with Ledger(tmp_path) as ledger:
        ledger.run = 1
        assert [d.subject for d in ledger.decisions("task")] == ["a", "b"]
        counts = {Outcome.ACCEPTED: 1, Outcome.REJECTED: 1, Outcome.UNDECIDED: 0}
        assert ledger.counts("task") == counts
        assert ledger.decision("task", "b") == decision("b")
        with pytest.raises(sqlite3.IntegrityError):
            ledger.decide(decision("b"))


def test_only_an_unfinished_run_with_the_same_options_is_resumed(
    tmp_path: Path, make_task: Factory, make_admission: Factory
) -> None:
    task = make_task()
    with Ledger(tmp_path) as ledger:
        ledger.begin("a")
        ledger.add_admission(make_admission(task), measured=True)
    with Ledger(tmp_path) as ledger:
        assert ledger.begin("a")
        assert ledger.is_measured(task.id, "cpu")
    with Ledger(tmp_path) as ledger:
        assert not ledger.begin("b")
        assert ledger.admission(task.id, "cpu") is None
        ledger.end("done")
        assert not ledger.begin("b")


def test_samples_come_back_in_order(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.begin("a")
        for ordinal in (2, 0, 10):
            candidate = Candidate(
                f"solution-{ordinal}", f"s{ordinal}", ordinal > 0, "stale" * (ordinal > 2)
            )
            ledger.add_sample(
                StoredSample(ordinal, f"t{ordinal}", "{}"), f"task-{ordinal}", [candidate]
            )
        assert [s.ordinal for s in ledger.samples()] == [0, 2, 10]
        assert ledger.candidates(10)["solution-10"].fault == "stale"
        assert ledger.staleness() == (1, 2)
        assert ledger.subject_of_task("task-2") == "t2"
        assert ledger.is_known("t2") and not ledger.is_known("t3")


def test_what_was_judged_on_a_cpu_is_not_stale(tmp_path: Path) -> None:
    faults = ("judged on a CPU only", "stale: judged by rules 0, now 1", "")
    with Ledger(tmp_path) as ledger:
        ledger.begin("")
        candidates = [Candidate(f"solution-{f}", f, True, f) for f in faults]
        ledger.add_sample(StoredSample(0, "task", "{}"), "task-0", candidates)
        assert ledger.staleness() == (1, 3)


def test_a_transaction_is_whole_or_nothing(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.begin("a")
        with pytest.raises(KeyError), ledger.transaction():
            ledger.decide(decision("a"))
            raise KeyError
        assert ledger.counts("task")[Outcome.REJECTED] == 0


def test_a_second_process_is_kept_out_and_told_of_the_first(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from concur.ledger import Ledger\n"
        "with Ledger(Path(sys.argv[1])): print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-P", "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "open\n"
        with pytest.raises(BuildError, match=rf"another run \(process {first.pid}\) is writing"):
            Ledger(tmp_path)
        first.kill()
        first.wait()
    with Ledger(tmp_path) as ledger:  # the lock of a killed process is gone
        assert not ledger.begin("a")


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    with Ledger(tmp_path):
        pass
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(BuildError, match="has layout 99, but this version of concur knows only 1"):
        Ledger(tmp_path)


def test_somebody_elses_database_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(BuildError, match="is a database, but no ledger"):
        Ledger(tmp_path)


@pytest.mark.parametrize("offset", [0, 8192])
def test_a_damaged_file_is_an_error_with_a_remedy(tmp_path: Path, offset: int) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.begin("a")
        for number in range(500):
            ledger.decide(decision(f"task-{number}"))
    path = tmp_path / "ledger.sqlite"
    data = bytearray(path.read_bytes())
    data[offset : offset + 4096] = b"\xff" * 4096
    path.write_bytes(bytes(data))
    with pytest.raises(BuildError, match="damaged .*; move it away and run again"):
        Ledger(tmp_path)
    path.unlink()
    with Ledger(tmp_path) as ledger:
        assert not ledger.begin("a")
