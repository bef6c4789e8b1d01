"""The command that judges all samples: what it reads, keeps and says."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import sampling
from tests.sampling import Expectation, SampleCase, SampleError, cases
from tests.table_report import pairs, repeats, table
from tests.table_runs import Line, Records, sessions, subject_of

SETTINGS = {"level": "full", "device": "cpu"}
KEY = "scaled-column-sum/wrong-scale"


@pytest.fixture
def samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One fault with its task, in a folder of their own."""
    real = sampling.SAMPLES
    shutil.copytree(real / "tasks" / "scaled-column-sum", tmp_path / "tasks" / "scaled-column-sum")
    shutil.copytree(real / "faults" / KEY, tmp_path / "faults" / KEY)
    monkeypatch.setattr(sampling, "SAMPLES", tmp_path)
    write(tmp_path, {KEY: {"status": ["wrong_values"], "mechanism": "One factor for all."}})
    return tmp_path


def write(samples: Path, expected: dict[str, dict[str, Any]]) -> None:
    (samples / "faults.json").write_text(json.dumps(expected), encoding="utf-8")


def line(case: SampleCase, repetition: int, status: str, **times: float) -> Line:
    outcome = {"passed": "accepted", "undecided": "undecided"}.get(status, "rejected")
    verdict = {
        "status": status,
        "outcome": outcome,
        "gates": ["workloads"],
        "findings": [{"rule": "values.tolerance", "severity": "error", "message": "off"}],
        "timings": [{"workload": "square", **times}] if times else [],
    }
    subject = subject_of(case)
    found = {"repetition": repetition, "subject": subject, "key": case.key, "seconds": 1.0}
    return {**found, "verdict": verdict}


def test_a_sample_is_read_with_what_is_expected(samples: Path) -> None:
    (case,) = cases("faults")
    assert (case.key, case.solution.name) == (KEY, "wrong-scale")
    assert case.solution.task_id == case.task.id
    assert case.runs_on("cpu") and not case.runs_on("cuda")
    assert cases("good") == []


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({}, "wrong-scale has no expectation"),
        ({KEY: {"status": []}}, "no status cannot be expected"),
        ({KEY: {"status": ["wrong"]}}, "wrong cannot be expected"),
        ({KEY: {"status": ["timeout"], "rules": []}}, "rules cannot be expected"),
        ({KEY: {"status": ["timeout"]}, "scaled-column-sum/lost": {"status": ["timeout"]}}, "lost"),
    ],
)
def test_what_is_missing_is_named(
    expected: dict[str, dict[str, Any]], said: str, samples: Path
) -> None:
    write(samples, expected)
    with pytest.raises(SampleError, match=said):
        cases("faults")


def test_a_broken_sample_is_named(samples: Path) -> None:
    (samples / "faults" / KEY / "solution.json").write_text("{", encoding="utf-8")
    with pytest.raises(SampleError, match=f"faults/{KEY}"):
        cases("faults")


def test_an_expectation_is_about_status_and_rule(samples: Path) -> None:
    (case,) = cases("faults")
    verdict = line(case, 0, "wrong_values")["verdict"]
    assert case.expectation.mismatch(verdict) == ""
    assert "expected timeout" in Expectation(("timeout",)).mismatch(verdict)
    other = Expectation(("wrong_values",), ("values.exact",))
    assert "expected the rule values.exact" in other.mismatch(verdict)


def test_a_run_goes_on_where_it_was_cut(samples: Path, tmp_path: Path) -> None:
    (case,) = cases("faults")
    path = tmp_path / "verdicts.jsonl"
    records = Records(path, SETTINGS)
    records.add(line(case, 0, "wrong_values"))
    records.close()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    records = Records(path, SETTINGS)
    assert records.done == {(0, subject_of(case))}
    (left,) = sessions([case], 2, records.done)
    assert left.repetition == 1
    records.add(line(case, 1, "wrong_values"))
    records.close()
    assert len(path.read_bytes().splitlines()) == 2
    with pytest.raises(ValueError, match="other settings"):
        Records(path, {**SETTINGS, "level": "quick"})


def test_sessions_share_a_task_and_are_short(samples: Path) -> None:
    (case,) = cases("faults")
    many = [replace(case, key=f"scaled-column-sum/s{i}") for i in range(30)]
    found = sessions(many, 2, set())
    assert sorted({s.repetition for s in found}) == [0, 1]
    assert max(len(s.cases) for s in found) <= 12
    assert sum(len(s.cases) for s in found) == 60


def test_the_table_holds_only_when_everything_does(samples: Path) -> None:
    (case,) = cases("faults")
    right = [line(case, r, "wrong_values") for r in range(2)]
    found = table([case], right, 2, "full")
    assert found.holds and "1 rejected, 0 accepted, 0 undecided" in found.text
    missing = table([case], right[:1], 2, "full")
    assert not missing.holds and "[1] has no verdict" in missing.text
    moved = table([case], [right[0], line(case, 1, "passed")], 2, "full")
    assert not moved.holds and "repetitions disagree" in moved.text
    undecided = [line(case, 0, "undecided")]
    assert table([case], undecided, 1, "quick").holds
    assert not table([case], undecided, 1, "full").holds


def test_repeats_and_pairs_are_counted(samples: Path) -> None:
    (case,) = cases("faults")
    first = [
        line(
            case,
            r,
            "passed",
            median_us=10 + r,
            speedup=2.0 + r / 10,
            speedup_low=low,
            speedup_high=3,
        )
        for r, low in ((0, 1.9), (1, 2.05))
    ]
    told = repeats(first)
    assert "largest move of the median 5.00 %" in told and "covered 50.0% of pairs" in told
    second = [line(case, r, "passed", median_us=10.5) for r in range(2)]
    assert "1 of 2 in the right order" in pairs(first, second)
