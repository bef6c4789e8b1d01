import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from concur.schemas import AttemptLog, SolutionHeader, Task, TaskHeader, Verdict
from concur.schemas.json_text import Positions, deeper_than, path_text
from concur.schemas.strict import LIMIT, MAX_DEPTH, load_record, read_json


def test_a_good_record_is_read(make_task: Any) -> None:
    task = make_task()
    record, findings = load_record(Task, json.dumps(task.to_plain()).encode(), "t.json")
    assert (record, findings) == (task, [])


def test_fifty_megabytes_get_one_short_finding_without_parsing() -> None:
    data = b'{"title": "' + b"x" * 50_000_000 + b'"}'
    started = time.perf_counter()
    value, findings = read_json(data, "t.json")
    assert time.perf_counter() - started < 0.05
    assert value is None
    assert [f.rule for f in findings] == ["json.too-large"]
    assert len(findings[0].message) < 80


def test_a_document_at_the_limit_is_read() -> None:
    filling = LIMIT - len(b'{"a": ""}')
    value, findings = read_json(b'{"a": "' + b"x" * filling + b'"}', "t.json")
    assert findings == []
    assert value == {"a": "x" * filling}


def test_depth_is_bounded_but_not_fooled_by_text() -> None:
    levels = MAX_DEPTH - 1
    deepest = b'{"a":' + b"[" * levels + b"]" * levels + b"}"
    assert read_json(deepest, "t.json")[1] == []
    text = json.dumps({"a": "[" * 1000 + '\\"{'})
    assert read_json(text.encode(), "t.json")[1] == []
    assert deeper_than('{"a": 1,\n"b": [[[]]]}', 2) == 2


@pytest.mark.parametrize(
    "text",
    [
        '"[[[[',
        '{"a": "\\',
        "{" * 100,
        "[" * 100 + '"',
        '{"a"',
        "[1,,2]",
        "]]]]",
        "\x00",
        '{"a":"\\u12"}',
    ],
)
def test_broken_text_never_raises(text: str) -> None:
    value, findings = read_json(text.encode(), "t.json")
    assert value is None
    assert len(findings) == 1
    Positions(text).line(("a", 0, "b"))


def test_a_pair_of_surrogate_escapes_is_one_character() -> None:
    value, findings = read_json(rb'{"a": "\ud83d\ude00"}', "t.json")
    assert (value, findings) == ({"a": "\U0001f600"}, [])


def test_numbers_at_the_edges() -> None:
    data = b'{"a": [9223372036854775807, -9223372036854775808, 1.7976931348623157e308, 5e-324]}'
    assert read_json(data, "t.json")[1] == []
    for beyond in (b"9223372036854775808", b"-9223372036854775809"):
        findings = read_json(b'{"a": ' + beyond + b"}", "t.json")[1]
        assert [f.rule for f in findings] == ["json.integer-range"]


def test_lines_are_those_of_the_file() -> None:
    text = (
        '{\n "a": {"b": [1,\n {"c": ":{[,"},\n 3]},\n "d\\n": "x\\"y",\n "e": [[], {}, [5\n, 6]]\n}'
    )
    positions = Positions(text)
    lines = {
        ("a",): 2,
        ("a", "b", 0): 2,
        ("a", "b", 1): 3,
        ("a", "b", 1, "c"): 3,
        ("a", "b", 2): 4,
        ("d\n",): 5,
        ("e", 1): 6,
        ("e", 2, 0): 6,
        ("e", 2, 1): 7,
        ("a", "missing"): 2,
        (): 1,
    }
    assert {path: positions.line(path) for path in lines} == lines
    assert Positions(text, first_line=10).line(("e",)) == 15


def test_every_position_of_a_corpus_file_holds_its_value(make_task: Any) -> None:
    text = json.dumps(make_task().to_plain(), indent=1)
    rows = text.split("\n")
    positions = Positions(text)
    for index, workload in enumerate(make_task().workloads):
        row = rows[positions.line(("workloads", index, "name")) - 1]
        assert row.strip() == f'"name": "{workload.name}",'


def test_odd_keys_are_quoted_and_short() -> None:
    assert path_text(("a", 0, "b c", "k" * 100)) == f'$.a[0]["b c"]["{"k" * 37}..."]'


def test_all_problems_of_one_file_are_told_once_and_in_order() -> None:
    data = b'{\n"contract": "cuda",\n"entry": 3,\n"orign": {},\n"compile_flags": ["O3"]\n}'
    record, findings = load_record(SolutionHeader, data, "solution.json")
    assert record is None
    assert [(f.where, f.rule, f.line) for f in findings] == [
        ("$", "schema.missing-key", 1),
        ("$.compile_flags[0]", "schema.pattern", 5),
        ("$.contract", "schema.choice", 2),
        ("$.entry", "schema.type", 3),
        ("$.orign", "schema.unknown-key", 4),
    ]
    assert "model_new" in findings[2].remedy


def test_a_wrong_id_is_told_with_the_right_one(make_verdict: Any) -> None:
    verdict = make_verdict()
    plain = {**verdict.to_plain(), "seed": verdict.seed + 1}
    _, [finding] = load_record(Verdict, json.dumps(plain).encode(), "verdict.json")
    assert finding.rule == "record.id-mismatch"
    assert make_verdict(seed=verdict.seed + 1).id in finding.remedy


@pytest.mark.parametrize("shape", ["N // (N - N)", "1e999", "*".join(["N"] * 40) + "*1.5", "((N"])
def test_a_shape_that_cannot_be_evaluated_is_a_finding(shape: str, make_task: Any) -> None:
    plain = make_task().to_plain()
    plain["workloads"][0]["axes"]["N"] = 2**62
    plain["results"][0]["shape"] = [shape]
    plain.pop("id")
    _, [finding] = load_record(Task, json.dumps(plain).encode(), "t.json")
    assert finding.rule == "record.invalid"
    assert repr(shape) in finding.message


def test_a_hundred_faults_are_capped(sample_folder: Path) -> None:
    plain = json.loads((sample_folder / "task.json").read_text(encoding="utf-8"))
    plain["workloads"] = [{f"key{i}": i for i in range(100)}] * 16
    _, findings = load_record(TaskHeader, json.dumps(plain).encode(), "task.json")
    assert len(findings) == 21
    assert findings[-1].rule == "json.more"
    assert "further" in findings[-1].message


LIST_OF_NUMBERS = b"[" + b",".join([b"1"] * 400_000) + b"]"
MANY = {
    "unknown keys": b"{" + b",".join(b'"k%d":1' % i for i in range(100_000)) + b"}",
    "one key, often": b"{" + b",".join([b'"a":1'] * 200_000) + b"}",
    "a key twice beyond the scan": b'{"x":' + LIST_OF_NUMBERS + b',"late":1,"late":2}',
    "bad items": b'{"arguments":[' + b",".join([b"{}"] * 100_000) + b"]}",
    "items": b'{"operations":[' + b",".join([b'"add"'] * 100_000) + b"]}",
}


@pytest.mark.parametrize("data", MANY.values(), ids=MANY.keys())
def test_many_small_faults_cost_neither_time_nor_output(data: bytes) -> None:
    started = time.perf_counter()
    record, findings = load_record(TaskHeader, data, "task.json")
    assert time.perf_counter() - started < 20  # about one second; hours when it is quadratic
    assert record is None
    assert 1 <= len(findings) <= 21
    assert sum(len(f.model_dump_json()) for f in findings) < 20_000


def test_random_damage_never_raises_and_is_always_explained(make_task: Any) -> None:
    draw = random.Random(20261201)
    whole = json.dumps(make_task().to_plain(), indent=1).encode()
    pieces = [
        b'"',
        b"{",
        b"]",
        b",",
        b"NaN",
        b"\\ud800",
        b"\xff",
        b"\0",
        b"1e999",
        b"null",
        b"\n",
        b"",
    ]
    refused = 0
    for _ in range(400):
        start = draw.randrange(len(whole))
        end = start + draw.choice([0, 0, 1, 3, 40])
        damaged = whole[:start] + draw.choice(pieces) + whole[end:]
        record, findings = load_record(Task, damaged, "t.json")
        assert (record is None) == bool(findings)
        assert all(len(f.message) <= 240 and f.remedy and f.path for f in findings)
        assert all(1 <= f.line <= damaged.count(b"\n") + 1 for f in findings)
        refused += record is None
    assert refused > 300


@pytest.mark.parametrize("odd", [3, -1.5, True, None, "", "x\n", [], [[]], {}, {"a": {}}])
def test_any_value_in_any_place_is_accepted_or_explained(odd: Any, make_task: Any) -> None:
    plain = {k: v for k, v in make_task().to_plain().items() if k != "id"}
    for path in _paths(plain):
        changed = json.loads(json.dumps(plain))
        target = changed
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = odd
        record, findings = load_record(Task, json.dumps(changed).encode(), "t.json")
        assert (record is None) == bool(findings)
        assert record is None or record.id.startswith("task-")


def _paths(value: Any) -> list[tuple[Any, ...]]:
    if not isinstance(value, (dict, list)):
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [path for key, item in items for path in [(key,), *((key, *p) for p in _paths(item))]]


def test_two_attempts_of_one_name_are_refused(make_sample: Any) -> None:
    plain = make_sample().to_plain()
    attempt = {"phase": "implement", "solution": plain["solutions"][0]}
    again = {"phase": "optimise", "solution": plain["solutions"][0]}
    origin = plain["solutions"][0]["origin"]
    log = {"name": "twice", "origin": origin, "attempts": [attempt, again]}
    with pytest.raises(ValueError, match="two attempts have one name"):
        AttemptLog.from_plain(log)
    assert AttemptLog.from_plain(log | {"attempts": [attempt]}).attempts
