"""What the CPU checks cost: the solution, attempt or series that they are about, and no other."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from concur import reading
from concur.ledger import Ledger
from concur.reading import read_sources
from concur.schemas import Finding, Outcome, Sample

Factory = Callable[..., Any]

SOLUTION = "add-vectors-0/solutions/plain-loop"
SERIES = "add-vectors-0/trajectories/first-try"


def rejections(state: Path, corpus: Path) -> dict[tuple[str, str], str]:
    """Read a corpus into a ledger; returns why, by stage and subject, something was rejected."""
    with Ledger(state) as ledger:
        ledger.begin("")
        read_sources(ledger, (corpus,), True, None)
        decided = [d for s in reading.STAGES for d in ledger.decisions(s)]
    assert {d.outcome for d in decided} <= {Outcome.REJECTED}
    return {(d.stage, d.subject): d.reason for d in decided}


@pytest.fixture
def corpus(write_corpus: Factory) -> Path:
    """One sample whose second attempt is its solution."""
    path: Path = write_corpus(1)
    sample = path / "add-vectors-0"
    attempt = sample / "trajectories/first-try/a2-right"
    shutil.copyfile(sample / "solutions/plain-loop/kernel.cu", attempt / "kernel.cu")
    return path


def set_license(folder: Path, text: str) -> None:
    header = json.loads((folder / "solution.json").read_text())
    header["origin"]["license"] = text
    (folder / "solution.json").write_text(json.dumps(header))


def test_an_attempt_does_not_hide_the_licence_of_its_solution(corpus: Path, tmp_path: Path) -> None:
    set_license(corpus / "add-vectors-0/solutions/plain-loop", "Mine-1.0")
    found = rejections(tmp_path / "state", corpus)
    assert set(found) == {("solution", SOLUTION)}
    assert "licence 'Mine-1.0' is not known" in found["solution", SOLUTION]


def test_an_attempt_with_the_id_of_a_solution_costs_its_series_alone(
    corpus: Path, tmp_path: Path
) -> None:
    set_license(corpus / "add-vectors-0/trajectories/first-try/a2-right", "Mine-1.0")
    found = rejections(tmp_path / "state", corpus)
    assert set(found) == {("trajectory", SERIES)}
    assert found["trajectory", SERIES].startswith("attempt a2-right: licence 'Mine-1.0'")


def test_an_error_that_only_the_whole_sample_shows_costs_the_task(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(sample: Sample) -> Iterator[Finding]:
        if sample.trajectories:
            yield Finding(rule="check.whole", severity="error", message="only together")

    monkeypatch.setattr(reading, "check_sample", check)
    found = rejections(tmp_path / "state", corpus)
    assert found == {("task", "add-vectors-0"): "only together [check.whole]"}
