import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concur.builders.folder import (
    CORPUS,
    SampleRead,
    find_samples,
    read_sample,
    read_samples,
    write_admission,
    write_verdict,
)
from concur.schemas import Admission


def rules(read: SampleRead) -> list[str]:
    return [finding.rule for finding in read.findings]


def write_lines(path: Path, values: list[Any]) -> Path:
    path.write_text("".join(json.dumps(v, ensure_ascii=False) + "\n" for v in values), "utf-8")
    return path


def test_a_folder_is_read_whole(sample_folder: Path) -> None:
    read = read_sample(sample_folder)
    assert read.findings == ()
    sample = read.sample
    assert sample is not None
    assert [form.value for form in sample.task.forms] == ["language", "program", "mathematics"]
    [solution] = sample.solutions
    assert solution.name == "plain-loop"
    assert solution.task_id == sample.task.id
    assert solution.reasoning == "One pass; memory decides.\n"
    [log] = sample.trajectories
    assert [(a.phase, a.solution.name) for a in log.attempts] == [
        ("implement", "a1-wrong"),
        ("repair", "a2-right"),
    ]
    assert read.recorded.folders == {
        solution.id: sample_folder / "solutions/plain-loop",
        log.attempts[0].solution.id: sample_folder / "trajectories/first-try/a1-wrong",
        log.attempts[1].solution.id: sample_folder / "trajectories/first-try/a2-right",
    }


def test_texts_are_kept_byte_for_byte(sample_folder: Path) -> None:
    text = "// \u2028 \u0085 \x0c é \U0001f600\r\nint x;\n\n"
    (sample_folder / "solutions/plain-loop/kernel.cpp").write_bytes(text.encode())
    read = read_sample(sample_folder)
    assert rules(read) == ["text.carriage-return"]
    assert read.sample is not None
    assert read.sample.solutions[0].source == text


def test_all_files_of_a_solution_are_its_sources(sample_folder: Path) -> None:
    solution = sample_folder / "solutions/plain-loop"
    (solution / "include/deep").mkdir(parents=True)
    (solution / "include/deep/tile.h").write_text("#pragma once\n")
    (solution / "a.h").write_text("#pragma once\n")
    (solution / "include/verdict.json").write_text("{}\n")
    read = read_sample(sample_folder)
    assert read.sample is not None
    assert [f.path for f in read.sample.solutions[0].files] == [
        "a.h",
        "include/deep/tile.h",
        "include/verdict.json",
        "kernel.cpp",
    ]


def test_reading_is_independent_of_the_way_the_path_is_written(
    sample_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_sample(sample_folder).sample
    monkeypatch.chdir(sample_folder)
    for path in (Path(), Path("../add-vectors"), Path("solutions/..")):
        read = read_sample(path)
        assert read.findings == ()
        assert read.sample == whole


def test_a_solution_without_reasoning_may_say_so(sample_folder: Path) -> None:
    solution = sample_folder / "solutions/plain-loop"
    header = json.loads((solution / "solution.json").read_text())
    (solution / "solution.json").write_text(json.dumps({**header, "reasoning_kind": "none"}))
    (solution / "reasoning.md").unlink()
    read = read_sample(sample_folder)
    assert read.findings == ()
    assert read.sample is not None
    assert read.sample.solutions[0].reasoning == ""


BREAKS: dict[str, Callable[[Path], object]] = {
    "no header": lambda s: (s / "solution.json").unlink(),
    "no entry": lambda s: (s / "kernel.cpp").unlink(),
    "no reasoning": lambda s: (s / "reasoning.md").unlink(),
    "binary": lambda s: (s / "kernel.cpp").write_bytes(b"\x00\xff"),
    "link": lambda s: (s / "more.h").symlink_to("/etc/passwd"),
    "deep": lambda s: (s / "a/b/c/d/e/f/g").mkdir(parents=True),
    "large": lambda s: (s / "more.h").write_text("x" * 1_000_001),
    "bad header": lambda s: (s / "solution.json").write_text('{"contract": "cuda"}'),
}


@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS.keys())
def test_a_bad_solution_costs_only_itself(
    breaks: Callable[[Path], object], sample_folder: Path, write_sample_folder: Any, tmp_path: Path
) -> None:
    spare = write_sample_folder("spare", tmp_path / "elsewhere") / "solutions/plain-loop"
    bad = spare.rename(sample_folder / "solutions/a-bad-one")
    breaks(bad)
    read = read_sample(sample_folder)
    assert read.sample is not None
    assert [s.name for s in read.sample.solutions] == ["plain-loop"]
    assert len(read.sample.trajectories) == 1
    errors = [f for f in read.findings if f.severity == "error"]
    assert errors
    assert all(f.path.startswith(str(bad)) for f in errors)


def test_a_bad_attempt_drops_its_series_alone(sample_folder: Path) -> None:
    (sample_folder / "trajectories/first-try/a1-wrong/kernel.cpp").unlink()
    read = read_sample(sample_folder)
    assert rules(read) == ["solution.entry-missing"]
    assert read.sample is not None
    assert read.sample.trajectories == ()
    assert list(read.recorded.folders.values()) == [sample_folder / "solutions/plain-loop"]


def test_a_broken_task_still_tells_the_faults_of_its_solutions(sample_folder: Path) -> None:
    (sample_folder / "task.json").write_text("{}")
    (sample_folder / "solutions/plain-loop/kernel.cpp").unlink()
    read = read_sample(sample_folder)
    assert read.sample is None
    assert rules(read) == ["schema.missing-key", "solution.entry-missing"]


def test_the_judges_files_are_kept_apart(sample_folder: Path, make_verdict: Any) -> None:
    before = read_sample(sample_folder)
    assert before.sample is not None
    solution = before.sample.solutions[0]
    verdict = make_verdict(solution)
    folder = before.recorded.folders[solution.id]
    admissions = {}
    for kind in ("cpu", "cuda"):
        environment = {**verdict.environment.to_plain(), "device_kind": kind}
        plain = {"task_id": before.sample.task.id, "rules_version": 1, "sizes": "twin"}
        plain |= {"outcome": "accepted", "environment": environment, "seed": 1}
        admissions[kind] = Admission.from_plain({**plain, "judged_on": "2026-12-01"})
        assert write_admission(sample_folder, admissions[kind]).name == f"admission-{kind}.json"
    assert write_verdict(folder, verdict) == folder / "verdict.json"

    read = read_sample(sample_folder)

    assert read.findings == ()
    assert read.sample == before.sample
    assert read.recorded.verdicts == {solution.id: verdict}
    assert read.recorded.admissions == admissions
    assert sorted(path.name for path in folder.iterdir()) == [
        "kernel.cpp",
        "reasoning.md",
        "solution.json",
        "verdict.json",
    ]


def test_a_stale_verdict_is_handed_on_as_it_is(sample_folder: Path, make_verdict: Any) -> None:
    stale = make_verdict(solution_id="solution-of-old")
    write_verdict(sample_folder / "solutions/plain-loop", stale)
    read = read_sample(sample_folder)
    assert read.sample is not None
    assert read.recorded.verdicts == {read.sample.solutions[0].id: stale}


def test_samples_are_found_sorted(tmp_path: Path, write_sample_folder: Any) -> None:
    for name in ("zeta", "alpha"):
        write_sample_folder(name)
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "beta.json").write_text("{}")
    (tmp_path / "gamma.jsonl").write_text("{}\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / "not-a-sample").mkdir()
    names = ["alpha", "beta.json", "gamma.jsonl", "not-a-sample", "zeta"]
    assert [path.name for path in find_samples(tmp_path)] == names
    assert list(find_samples(tmp_path / "alpha")) == [tmp_path / "alpha"]
    assert rules(read_sample(tmp_path / "not-a-sample")) == ["task.header-missing"]


def test_a_path_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    [path] = find_samples(tmp_path / "nowhere")
    assert rules(read_sample(path)) == ["folder.not-found"]
    (tmp_path / "kernel.cu").write_text("x")
    assert rules(read_sample(tmp_path / "kernel.cu")) == ["folder.not-a-sample"]
    (tmp_path / "loop").symlink_to(tmp_path)
    assert rules(read_sample(tmp_path / "loop")) == ["folder.symlink"]


def test_the_corpus_has_no_error() -> None:
    reads = [read for path in find_samples(CORPUS) for read in read_samples(path)]
    assert reads
    assert [f for read in reads for f in read.findings if f.severity == "error"] == []


def test_a_solution_that_repeats_another_costs_only_itself(sample_folder: Path) -> None:
    first, later = sample_folder / "solutions/plain-loop", sample_folder / "solutions/same-loop"
    shutil.copytree(first, later)
    (later / "reasoning.md").write_text("Other words for the same sources.\n")
    read = read_sample(sample_folder)
    [finding] = read.findings
    assert (finding.rule, finding.severity) == ("sample.repeated-solution", "error")
    assert finding.path == str(later)
    assert "plain-loop" in finding.message and "same-loop" in finding.message
    assert read.sample is not None
    assert [s.name for s in read.sample.solutions] == ["plain-loop"]
    assert read.recorded.folders[read.sample.solutions[0].id] == first
