"""Right code passes; every fault and cheat gets the status that it deserves."""

from pathlib import Path

import pytest

from concur.schemas import Verdict
from concur.schemas.feedback import render
from concur.schemas.verdict import Fault, Outcome
from concur.validators.rules import RULES

SAMPLES = Path(__file__).parent.parent / "samples"

FAULTS = {
    "accumulates": ("non_finite", "first-workload"),
    "coarse": ("wrong_values", "first-workload"),
    "compile-error": ("compile_error", "compile"),
    "hang": ("timeout", "first-workload"),
    "last-row-missed": ("wrong_values", "first-workload"),
    "no-write": ("non_finite", "first-workload"),
    "overflow": ("non_finite", "first-workload"),
    "returns-error": ("runtime_error", "first-workload"),
    "search-path": ("screened_out", "screens"),
    "segfault": ("runtime_error", "first-workload"),
    "tail-missed": ("non_finite", "first-workload"),
    "throws": ("runtime_error", "first-workload"),
    "writes-behind": ("runtime_error", "first-workload"),
    "writes-input": ("input_mutated", "first-workload"),
    "wrong-axis": ("wrong_values", "first-workload"),
    "wrong-scale": ("wrong_values", "first-workload"),
    "wrong-symbol": ("load_error", "load"),
}

# Where a memoised result is caught depends on whether an address is met again before the gate that
# makes sure of it: only the status is stated for those.
CHEATS = {
    "copies-input": "wrong_values",
    "exits-with-zero": "runtime_error",
    "forges-reply": "cheating",
    "memo-by-pointer": "wrong_values",
    "memo-by-shape": "wrong_values",
    "prints-verdict": "non_finite",
    "replaces-result-file": "wrong_structure",
    "zeros": "wrong_values",
}


def test_right_solutions_pass(good: dict[str, Verdict]) -> None:
    assert len(good) == 5
    for name, verdict in good.items():
        assert verdict.status == "passed", (name, render(verdict))
        assert verdict.fault is Fault.NONE
        assert verdict.gates[-1] == "repeat-call"
        assert verdict.environment.device_kind == "cpu"
        assert verdict.speedup is None and not verdict.timings


def test_every_workload_and_trial_is_compared(good: dict[str, Verdict]) -> None:
    compared = good["row-order/std-sort"].comparisons
    seen = {(c.workload, c.trial, c.result) for c in compared}
    assert seen == {
        (w, t, r) for w in ("rows", "odd") for t in range(3) for r in ("values", "order")
    }
    assert all(c.wrong == 0 and c.elements > 200 for c in compared)


def test_the_reference_uses_a_part_of_the_tolerance(good: dict[str, Verdict]) -> None:
    ratios = [c.reference_bound_ratio for c in good["scaled-column-sum/by-row"].comparisons]
    assert ratios and all(0 < r <= 0.25 for r in ratios)


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str, faults: dict[str, Verdict]) -> None:
    verdict = faults[name]
    assert (verdict.status, verdict.gates[-1]) == FAULTS[name], render(verdict)
    assert verdict.fault is Fault.CANDIDATE
    assert verdict.outcome is Outcome.REJECTED


@pytest.mark.parametrize("name", CHEATS)
def test_cheats(name: str, cheats: dict[str, Verdict]) -> None:
    verdict = cheats[name]
    assert verdict.status == CHEATS[name], render(verdict)
    assert verdict.fault is Fault.CANDIDATE
    assert verdict.outcome is Outcome.REJECTED


def test_every_sample_has_an_expectation() -> None:
    for kind, table in (("faults", FAULTS), ("cheats", CHEATS)):
        folder = SAMPLES / kind / "scaled-column-sum" / "solutions"
        assert sorted(p.name for p in folder.iterdir()) == sorted(table)


def test_findings_follow_rules_and_name_no_machine(
    good: dict[str, Verdict], faults: dict[str, Verdict], cheats: dict[str, Verdict]
) -> None:
    for verdict in (*good.values(), *faults.values(), *cheats.values()):
        text = verdict.model_dump_json()
        for private in ("/tmp/", "/dev/shm", "concur-judge", "/home/", str(Path.cwd())):
            assert private not in text
        for found in verdict.findings:
            assert found.rule in RULES


def test_feedback_says_where_and_what(faults: dict[str, Verdict]) -> None:
    compiled = render(faults["compile-error"])
    assert "kernel.cpp:" in compiled and "was not declared" in compiled
    tail = render(faults["tail-missed"])
    assert "y[16] = nan, oracle" in tail and "Stopped at: first-workload." in tail
    assert "SIGSEGV" in render(faults["segfault"])
    assert "wrote 4 bytes behind the memory of y" in render(faults["writes-behind"])
