import json
from pathlib import Path
from typing import Any

import pytest

from concur.builders.folder import SampleRead, read_sample, read_samples


def rules(read: SampleRead) -> list[str]:
    return [finding.rule for finding in read.findings]


def test_a_json_file_is_the_same_sample(sample_folder: Path, tmp_path: Path) -> None:
    sample = read_sample(sample_folder).sample
    assert sample is not None
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(sample.to_plain(), indent=1))
    read = read_sample(path)
    assert read.findings == ()
    assert read.sample == sample
    assert read.recorded.folders == {}


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_ids(v) for k, v in value.items() if k not in ("id", "task_id")}
    return [without_ids(v) for v in value] if isinstance(value, list) else value


def test_ids_are_derived_and_order_is_free(sample_folder: Path, tmp_path: Path) -> None:
    sample = read_sample(sample_folder).sample
    assert sample is not None
    plain = without_ids(sample.to_plain())
    [solution] = plain["solutions"]
    plain["solutions"] = [
        {**solution, "name": name, "files": [{**solution["files"][0], "content": f"// {name}"}]}
        for name in ("zeta", "alpha")
    ]
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(plain))
    read = read_sample(path)
    assert read.findings == ()
    assert read.sample is not None
    assert read.sample.task == sample.task
    assert [s.name for s in read.sample.solutions] == ["alpha", "zeta"]
    assert read.sample.trajectories == sample.trajectories


def plain_sample(make_sample: Any, make_solution: Any) -> dict[str, Any]:
    solutions = tuple(make_solution(name=n, source=f"// {n}") for n in ("first", "second"))
    plain: dict[str, Any] = make_sample(solutions=solutions).to_plain()
    return plain


BAD_PARTS = {
    "unknown key": ({"colour": "red"}, "schema.unknown-key", "$.solutions[0].colour"),
    "wrong id": ({"id": "solution-0"}, "record.id-mismatch", "$.solutions[0]"),
    "other task": (
        {"task_id": "task-0", "id": ""},
        "record.task-mismatch",
        "$.solutions[0].task_id",
    ),
    "empty reasoning": ({"reasoning": " "}, "text.empty", "$.solutions[0].reasoning"),
    "entry missing": ({"entry": "other.cu", "id": ""}, "record.invalid", "$.solutions[0]"),
}


@pytest.mark.parametrize(("change", "rule", "where"), BAD_PARTS.values(), ids=BAD_PARTS.keys())
def test_a_bad_solution_costs_only_itself(
    change: dict[str, Any],
    rule: str,
    where: str,
    tmp_path: Path,
    make_sample: Any,
    make_solution: Any,
) -> None:
    plain = plain_sample(make_sample, make_solution)
    plain["solutions"][0] |= change
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(plain, indent=1))
    read = read_sample(path)
    assert [(f.rule, f.where) for f in read.findings] == [(rule, where)]
    assert read.findings[0].line > 20
    assert read.sample is not None
    assert [s.name for s in read.sample.solutions] == ["second"]


def test_a_solution_that_is_no_object_costs_only_itself(
    tmp_path: Path, make_sample: Any, make_solution: Any
) -> None:
    plain = plain_sample(make_sample, make_solution)
    plain["solutions"][0] = 3
    plain["trajectories"] = ["x", {"attempts": [4]}]
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(plain))
    read = read_sample(path)
    assert read.sample is not None
    assert [s.name for s in read.sample.solutions] == ["second"]
    assert {f.where for f in read.findings} == {
        "$.solutions[0]",
        "$.trajectories[0]",
        "$.trajectories[1]",
        "$.trajectories[1].attempts[0]",
    }


def test_a_name_that_occurs_twice_is_told(
    tmp_path: Path, make_sample: Any, make_solution: Any
) -> None:
    plain = plain_sample(make_sample, make_solution)
    plain["solutions"][1]["name"] = "first"
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(plain))
    read = read_sample(path)
    assert [(f.rule, f.where) for f in read.findings] == [
        ("sample.repeated-name", "$.solutions[1].name")
    ]


def test_each_line_of_a_file_stands_for_itself(
    tmp_path: Path, make_sample: Any, make_task: Any
) -> None:
    separators = make_task(description="line\u2028separator\u0085and next line")
    lines = [
        json.dumps(make_sample().to_plain()).encode(),
        b"{",
        b'{"task": 3}',
        b"",
        json.dumps(make_sample(task=separators).to_plain(), ensure_ascii=False).encode(),
        b'{"task": {}, "extra": "' + b"x" * 9_000_000 + b'"}',
        json.dumps(make_sample().to_plain()).encode(),
    ]
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b"\n".join(lines))
    reads = list(read_samples(path))
    assert [(r.line, r.sample is not None, rules(r)) for r in reads] == [
        (1, True, []),
        (2, False, ["json.syntax"]),
        (3, False, ["schema.type"]),
        (5, True, []),
        (6, False, ["json.too-large"]),
        (7, True, []),
    ]
    assert all(f.line == r.line for r in reads for f in r.findings if f.rule != "json.too-large")
    assert reads[3].sample is not None
    assert reads[3].sample.task == separators
    assert rules(read_sample(path)) == ["sample.several"]


def test_files_without_a_sample_are_findings(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "link.json").symlink_to("empty.json")
    (tmp_path / "unknown.json").write_text('{"task": {}, "verdicts": []}')
    assert rules(read_sample(tmp_path / "empty.jsonl")) == ["json.empty"]
    assert rules(read_sample(tmp_path / "empty.json")) == ["json.empty"]
    assert rules(read_sample(tmp_path / "link.json")) == ["folder.symlink"]
    assert rules(read_sample(tmp_path / "unknown.json")) == ["schema.unknown-key"]


def test_a_solution_that_repeats_another_costs_only_itself(
    tmp_path: Path, make_sample: Any, make_solution: Any
) -> None:
    plain = plain_sample(make_sample, make_solution)
    first = plain["solutions"][0]
    again = {**first, "name": "again", "reasoning": "Other words for the same sources."}
    path = tmp_path / "sample.json"
    path.write_text(json.dumps({**plain, "solutions": [first, again]}))
    read = read_sample(path)
    [finding] = read.findings
    assert (finding.rule, finding.where) == ("sample.repeated-solution", "$.solutions[1]")
    assert "'first'" in finding.message and "'again'" in finding.message
    assert read.sample is not None
    assert [s.name for s in read.sample.solutions] == ["first"]
