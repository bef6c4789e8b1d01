"""Right code passes; every fault and cheat gets the status that it deserves."""

from pathlib import Path

import pytest

from concur.schemas import Verdict
from concur.schemas.feedback import render
from concur.schemas.verdict import Fault, Outcome
from concur.validators.environment import cuda_available
from concur.validators.rules import RULES
from tests.sampling import SampleCase
from tests.table import main

from .conftest import ON_CPU, name_of

RIGHT = [case for case in ON_CPU if "passed" in case.expectation.status]
WRONG = [case for case in ON_CPU if "passed" not in case.expectation.status]
FEEDBACK = {
    "scaled-column-sum/compile-error": ["kernel.cpp:", "was not declared"],
    "scaled-column-sum/tail-missed": ["y[16] = nan, oracle", "Stopped at: first-workload."],
    "scaled-column-sum/segfault": ["SIGSEGV"],
    "scaled-column-sum/writes-behind": ["4 bytes behind"],
}


@pytest.mark.parametrize("case", RIGHT, ids=map(name_of, RIGHT))
def test_what_is_right_passes(case: SampleCase, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[name_of(case)]
    assert not case.expectation.mismatch(verdict.to_plain()), render(verdict)
    assert verdict.fault is Fault.NONE
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.environment.device_kind == "cpu"
    assert verdict.speedup is None and not verdict.timings


@pytest.mark.parametrize("case", WRONG, ids=map(name_of, WRONG))
def test_what_is_wrong_is_rejected(case: SampleCase, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[name_of(case)]
    assert not case.expectation.mismatch(verdict.to_plain()), render(verdict)
    assert verdict.fault is Fault.CANDIDATE
    assert verdict.outcome is Outcome.REJECTED


@pytest.mark.parametrize("case", ON_CPU, ids=map(name_of, ON_CPU))
def test_findings_follow_rules_and_name_no_machine(
    case: SampleCase, verdicts: dict[str, Verdict]
) -> None:
    verdict = verdicts[name_of(case)]
    text = verdict.model_dump_json()
    for private in ("/tmp/", "/dev/shm", "concur-judge", "/home/", str(Path.cwd())):
        assert private not in text
    assert {found.rule for found in verdict.findings} <= RULES.keys()


def test_every_workload_and_trial_is_compared(good: dict[str, Verdict]) -> None:
    compared = good["row-order/std-sort"].comparisons
    seen = {(c.workload, c.trial, c.result) for c in compared}
    assert seen >= {
        (w, t, r) for w in ("rows", "odd") for t in range(3) for r in ("values", "order")
    }
    assert all(c.wrong == 0 and c.elements > 200 for c in compared)


def test_the_reference_uses_a_part_of_the_tolerance(good: dict[str, Verdict]) -> None:
    ratios = [c.reference_bound_ratio for c in good["scaled-column-sum/by-row"].comparisons]
    assert ratios and all(0 < r <= 0.25 for r in ratios)


@pytest.mark.parametrize(
    ("case", "expected"), [(c, FEEDBACK[c.key]) for c in WRONG if c.key in FEEDBACK]
)
def test_feedback_says_where_and_what(
    case: SampleCase, expected: list[str], verdicts: dict[str, Verdict]
) -> None:
    told = render(verdicts[name_of(case)])
    for part in expected:
        assert part in told, told


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.skipif(not cuda_available(), reason="needs a GPU, nvcc and PyTorch")
def test_samples_that_need_a_gpu(tmp_path: Path) -> None:
    out = tmp_path / "verdicts.jsonl"
    assert main(["--device", "cuda", "--workers", "4", "--out", str(out)]) == 0
