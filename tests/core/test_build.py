"""Building small data sets: what comes out, what is refused, and that bytes do not vary."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from concur import manifest
from concur.builders.folder import read_sample, write_verdict
from concur.errors import BuildError
from concur.pipeline import BuildOptions, BuildReport, build
from concur.report import render_build
from concur.schemas import Admission, Outcome, Task, Verdict

Factory = Callable[..., Any]


def never(task: Task) -> Admission:
    raise AssertionError(f"{task.name}: no admission is due")


def run(out: Path, corpus: Path, **changes: Any) -> BuildReport:
    given = {"sources": (corpus,), "trust_recorded": True, **changes}
    return build(BuildOptions(out, **given), admit=never)


def files_of(out: Path) -> dict[str, bytes]:
    return {
        p.relative_to(out).as_posix(): p.read_bytes()
        for p in sorted(out.rglob("*"))
        if p.is_file() and ".concur" not in p.parts
    }


def test_every_config_has_its_rows(tmp_path: Path, write_corpus: Factory) -> None:
    report = run(tmp_path / "out", write_corpus(3))
    each = {"train": 1, "validation": 1, "test": 1}
    assert report.rows["triplets"] == report.rows["tasks"] == each
    assert report.rows["trajectories"] == each
    assert report.rows["solutions"] == report.rows["verdicts"] == {s: 3 for s in each}
    solutions = report.accounting["solution"]
    assert (solutions.read, solutions.accepted, solutions.rejected) == (9, 6, 3)
    assert {d.reason for d in report.not_accepted} == {"wrong_values: Wrong. [values.tolerance]"}
    known = manifest.read(tmp_path / "out")
    assert known.version == report.version
    manifest.verify(tmp_path / "out", known.files)


def test_the_same_samples_give_the_same_bytes(tmp_path: Path, write_corpus: Factory) -> None:
    corpus = write_corpus(4)
    run(tmp_path / "one", corpus)
    run(tmp_path / "two", corpus, workers=2)
    one, two = files_of(tmp_path / "one"), files_of(tmp_path / "two")
    assert one == two
    assert {"README.md", "manifest.json"} < set(one)
    assert not any(str(tmp_path).encode() in data for data in one.values())


def test_rows_are_sorted_by_id_and_unique(tmp_path: Path, write_corpus: Factory) -> None:
    run(tmp_path / "out", write_corpus(9))
    for path in (tmp_path / "out").glob("data/*/*.parquet"):
        ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
        assert ids == sorted(set(ids))


def test_a_rebuild_removes_what_is_no_longer_planned(tmp_path: Path, write_corpus: Factory) -> None:
    out = tmp_path / "out"
    run(out, write_corpus(3))
    (out / "data" / "mine.parquet").write_bytes(b"not ours")
    (out / "data" / "tasks" / "notes.txt").write_text("not ours either")
    run(out, write_corpus(1, "smaller"))
    left = set(files_of(out))
    assert {"data/mine.parquet", "data/tasks/notes.txt"} <= left
    known = manifest.read(out)
    assert {f for f in left if f.endswith("00001.parquet")} == {f.path for f in known.files}
    assert known.rows("triplets") == {"train": 1}


def test_recorded_files_of_other_sources_are_ignored(tmp_path: Path, write_corpus: Factory) -> None:
    corpus = write_corpus(2)
    with pytest.raises(BuildError, match="no row"):
        build(BuildOptions(tmp_path / "out", sources=(corpus,)), admit=forged_refusal)
    report = json.loads((tmp_path / "out" / ".concur" / "report.json").read_text())
    assert "8 verdict and admission files were ignored" in report["notes"][0]
    assert report["accounting"]["task"]["undecided"] == 2
    assert not (tmp_path / "out" / "manifest.json").exists()


def forged_refusal(task: Task) -> Admission:
    raise ValueError("no admission is needed to see what is ignored")


def test_more_than_a_tenth_stale_fails_and_leaves_the_old(
    tmp_path: Path, write_corpus: Factory
) -> None:
    out, corpus = tmp_path / "out", write_corpus(3)
    run(out, corpus)
    before = files_of(out)
    kernel = corpus / "add-vectors-0" / "solutions" / "plain-loop" / "kernel.cu"
    kernel.write_text(kernel.read_text() + "// edited\n")
    with pytest.raises(BuildError, match="1 of 9 recorded verdicts are stale, more than a tenth"):
        run(out, corpus)
    assert files_of(out) == before
    report = json.loads((out / ".concur" / "report.json").read_text())
    stale = [d for d in report["not_accepted"] if d["reason"].startswith("stale")]
    assert [d["subject"] for d in stale] == ["add-vectors-0/solutions/plain-loop"]


def test_a_tenth_stale_leaves_them_out(tmp_path: Path, write_corpus: Factory) -> None:
    corpus = write_corpus(4)
    kernel = corpus / "add-vectors-0" / "solutions" / "plain-loop" / "kernel.cu"
    kernel.write_text(kernel.read_text() + "// edited\n")
    report = run(tmp_path / "out", corpus)
    assert (report.stale, report.recorded) == (1, 12)
    assert sum(report.rows["triplets"].values()) == 3
    assert report.accounting["solution"].undecided == 1


@pytest.mark.parametrize("change", [{"rules_version": 0}, {"environment": "cpu"}])
def test_a_verdict_of_other_rules_or_a_cpu_never_counts(
    tmp_path: Path, write_corpus: Factory, change: dict[str, Any]
) -> None:
    corpus = write_corpus(4)
    read = read_sample(corpus / "add-vectors-1")
    assert read.sample is not None
    solution = read.sample.solutions[0]
    verdict = read.recorded.verdicts[solution.id].to_plain()
    if "environment" in change:
        change = {"environment": {**verdict["environment"], "device_kind": "cpu"}}
    del verdict["id"]
    forged = type(read.recorded.verdicts[solution.id]).from_plain({**verdict, **change})
    write_verdict(read.recorded.folders[solution.id], forged)
    report = run(tmp_path / "out", corpus)
    assert report.rows["triplets"] == {"train": 2, "test": 1}
    assert report.accounting["solution"].undecided == 1
    assert (report.stale, report.recorded) == (int("rules_version" in change), 12)


def test_a_cpp_function_is_rejected_whatever_is_recorded(
    tmp_path: Path, write_corpus: Factory, write_sample_folder: Factory, forge: Factory
) -> None:
    corpus = write_corpus(1)
    solution = write_sample_folder("plain-cpp", corpus) / "solutions" / "plain-loop"
    forge(corpus / "plain-cpp")
    kernel = solution / "kernel.cpp"
    kernel.write_text(kernel.read_text() + "// edited\n")
    report = run(tmp_path / "out", corpus)
    (decided,) = (d for d in report.not_accepted if d.subject == "plain-cpp/solutions/plain-loop")
    assert decided.outcome is Outcome.REJECTED
    assert decided.reason == "runs on a CPU; never published as a kernel"
    assert (report.stale, report.recorded) == (0, 3)


def test_what_is_accepted_but_no_triplet_is_told(tmp_path: Path, write_corpus: Factory) -> None:
    corpus = write_corpus(3)
    read = read_sample(corpus / "add-vectors-1")
    assert read.sample is not None
    solution = read.sample.solutions[0]
    verdict = read.recorded.verdicts[solution.id].to_plain()
    del verdict["id"]
    untimed = Verdict.from_plain({**verdict, "timings": [], "speedup": None, "baseline": ""})
    write_verdict(read.recorded.folders[solution.id], untimed)
    silent = corpus / "add-vectors-2" / "solutions" / "plain-loop"
    header = json.loads((silent / "solution.json").read_text())
    (silent / "solution.json").write_text(json.dumps({**header, "reasoning_kind": "none"}))
    (silent / "reasoning.md").unlink()
    report = run(tmp_path / "out", corpus)
    assert report.accounting["solution"].accepted == 6
    assert sum(report.rows["triplets"].values()) == 1
    expected = {
        "add-vectors-1/solutions/plain-loop": "passed untimed",
        "add-vectors-2/solutions/plain-loop": "has no reasoning",
    }
    assert report.no_triplet == expected
    told = render_build(report, {})
    assert all(f"{subject} is no triplet: {why}" in told for subject, why in expected.items())
    assert "accepted solutions that are no triplets: 2" in told
    plain = json.loads((tmp_path / "out" / ".concur" / "report.json").read_text())
    assert plain["no_triplet"] == expected


def test_a_missing_verdict_costs_its_trajectory(tmp_path: Path, write_corpus: Factory) -> None:
    corpus = write_corpus(3)
    (corpus / "add-vectors-0" / "trajectories" / "first-try" / "a1-wrong" / "verdict.json").unlink()
    report = run(tmp_path / "out", corpus)
    assert report.rows["trajectories"] == {"validation": 1, "test": 1}
    reasons = {d.subject: d.reason for d in report.not_accepted if d.stage == "trajectory"}
    assert reasons == {
        "add-vectors-0/trajectories/first-try": "attempt a1-wrong: not judged on a GPU yet"
    }


def test_a_stale_attempt_is_told_as_the_reason(tmp_path: Path, write_corpus: Factory) -> None:
    corpus = write_corpus(4)
    attempt = corpus / "add-vectors-0" / "trajectories" / "first-try" / "a2-right"
    (attempt / "kernel.cu").write_text("// edited\n" + (attempt / "kernel.cu").read_text())
    report = run(tmp_path / "out", corpus)
    reasons = [d.reason for d in report.not_accepted if d.stage == "trajectory"]
    assert reasons == ["attempt a2-right: stale: the solution has changed since it was judged"]


def test_broken_and_repeated_samples_are_accounted_for(
    tmp_path: Path, write_corpus: Factory
) -> None:
    corpus = write_corpus(3)
    (corpus / "add-vectors-1" / "task.json").write_text("{")
    (corpus / "add-vectors-2" / "solutions" / "plain-loop" / "solution.json").write_text("{}")
    report = run(tmp_path / "out", corpus, sources=(corpus, corpus / "add-vectors-0"))
    tasks, solutions = report.accounting["task"], report.accounting["solution"]
    assert (tasks.read, tasks.accepted, tasks.rejected, tasks.undecided) == (4, 2, 2, 0)
    assert (solutions.read, solutions.accepted, solutions.rejected) == (9, 3, 6)
    reasons = {d.subject: d.reason for d in report.not_accepted}
    assert reasons["add-vectors-0@3"] == "the same task as add-vectors-0"
    assert "json.syntax" in reasons["add-vectors-1"]
    assert "schema.missing-key" in reasons["add-vectors-2/solutions/plain-loop"]


def test_a_folder_that_is_no_data_set_is_left_alone(tmp_path: Path, write_corpus: Factory) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "README.md").write_text("mine")
    with pytest.raises(BuildError, match="holds no data set"):
        run(home, write_corpus(1))
    assert [p.name for p in home.iterdir()] == ["README.md"]


def test_limit_reads_no_more(tmp_path: Path, write_corpus: Factory) -> None:
    report = run(tmp_path / "out", write_corpus(3), limit=2)
    assert report.accounting["task"].read == 2
