import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features, List, Value, load_dataset

from concur.builders.folder import CORPUS, find_samples, read_sample
from concur.schemas import Task, Trajectory, Triplet, Verdict
from concur.schemas.arrow import arrow_schema, column_table, features, from_row, to_row
from concur.schemas.base import Record
from concur.schemas.jsonschema import SCHEMAS


@pytest.mark.parametrize("cls", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_every_schema_has_explicit_features_and_metadata(cls: type[Record]) -> None:
    schema = arrow_schema(cls)
    assert not any(pa.types.is_null(field.type) for field in schema)
    assert schema.names == list(cls.model_fields)
    restored = Features.from_arrow_schema(schema)
    assert restored == features(cls)
    assert b"huggingface" in schema.metadata


def test_maps_are_lists_of_name_and_value() -> None:
    workload = features(Task)["workloads"].feature
    assert workload["axes"] == List({"name": Value("string"), "value": Value("int64")})
    assert features(Task)["program"] == {"language": Value("string"), "source": Value("string")}
    assert features(Triplet)["speedup"] == Value("float64")


def varied_tasks(make_task: Any) -> list[Task]:
    """Tasks that differ in every optional and nested thing, from a fixed seed."""
    draw = random.Random(20261201)
    tasks = []
    for index in range(40):
        axes = {chr(65 + i): draw.randint(1, 2**40) for i in range(draw.randint(1, 5))}
        axes = dict(draw.sample(sorted(axes.items()), len(axes)))
        values = {"eps": draw.choice([1e-5, 5e-324, 1.7976931348623157e308, -0.0, 0.1 + 0.2, 3])}
        attributes = values if draw.random() < 0.7 else {}
        workload = {"axes": axes, "twin": axes, "attributes": attributes}
        if draw.random() < 0.5:
            workload["distributions"] = {"x": {"kind": "uniform", "low": "-1", "high": "1"}}
        text = draw.choice(
            ["é \u2028 \u0085 \U0001f600", "a\r\nb\n", "x" * 5000, '{"a": 1}', "null"]
        )
        tasks.append(
            make_task(
                title=f"case {index}",
                description=draw.choice([None, text]),
                mathematics=None,
                symbols=[],
                arguments=[{"name": "x", "role": "input", "dtype": "int64", "shape": []}],
                results=[{"name": "out", "dtype": "bool", "shape": ["1"] * draw.randint(0, 4)}],
                attributes=[{"name": n, "kind": "float"} for n in attributes],
                workloads=[{"name": "only", "role": "boundary", **workload}],
                allowed_precision=draw.choice([[], ["tf32", "float16"]]),
            )
        )
    return tasks


def through_parquet(records: list[Any], path: Path) -> list[dict[str, Any]]:
    schema = arrow_schema(type(records[0]))
    pq.write_table(pa.Table.from_pylist([to_row(r) for r in records], schema=schema), path)
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_tasks_survive_parquet(make_task: Any, tmp_path: Path) -> None:
    tasks = varied_tasks(make_task)
    rows = through_parquet(tasks, tmp_path / "tasks.parquet")
    assert [from_row(Task, row) for row in rows] == tasks
    assert len({t.id for t in tasks}) > 30


def test_tasks_survive_load_dataset(make_task: Any, tmp_path: Path) -> None:
    tasks = varied_tasks(make_task)
    through_parquet(tasks, tmp_path / "tasks.parquet")
    data = load_dataset(
        "parquet",
        data_files=str(tmp_path / "tasks.parquet"),
        split="train",
        cache_dir=str(tmp_path / "cache"),
    )
    assert isinstance(data, Dataset)
    assert data.features == features(Task)
    assert [from_row(Task, row) for row in data] == tasks


def test_verdicts_keep_every_double(make_verdict: Any, tmp_path: Path) -> None:
    draw = random.Random(7)
    verdicts = [
        make_verdict(speedup=math.ldexp(draw.random(), draw.randint(-900, 900))) for _ in range(50)
    ]
    verdicts += [make_verdict(speedup=None, timings=[], isolation=["landlock", "seccomp"])]
    rows = through_parquet(verdicts, tmp_path / "verdicts.parquet")
    assert [from_row(Verdict, row) for row in rows] == verdicts


def test_trajectory_with_nested_lists_survives(make_solution: Any, tmp_path: Path) -> None:
    solution = make_solution()
    call = {"id": "1", "name": "judge", "arguments_json": '{"n": 1}'}
    turn = {
        "index": 0,
        "phase": "implement",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "reasoning_content": "…", "tool_calls": [call]},
        ],
        "solution_id": solution.id,
        "contract": "cpp_function",
        "files": [f.to_plain() for f in solution.files],
        "verdict_id": "v",
        "status": "passed",
        "fault": "none",
        "feedback": "",
        "speedup": None,
        "best": True,
    }
    texts = "task_id task_name family device writer method model license note source tokenizer"
    plain: dict[str, Any] = dict.fromkeys(texts.split(), "t")
    plain |= {"name": "first", "forms": ["language"], "turns": [turn], "outcome": "solved"}
    plain |= {"best_speedup": None, "total_tokens": 3, "token_encoding": "o200k_base"}
    trajectory = Trajectory.from_plain(plain)
    rows = through_parquet([trajectory], tmp_path / "t.parquet")
    assert from_row(Trajectory, rows[0]) == trajectory


def test_the_corpus_survives(tmp_path: Path) -> None:
    reads = [read_sample(path) for path in find_samples(CORPUS)]
    tasks = [read.sample.task for read in reads if read.sample]
    assert tasks
    rows = through_parquet(tasks, tmp_path / "corpus.parquet")
    assert [from_row(Task, row).id for row in rows] == [task.id for task in tasks]


def test_rows_do_not_depend_on_the_order_of_keys(make_task: Any) -> None:
    workloads = make_task().to_plain()["workloads"]
    for order in (["M", "N"], ["N", "M"]):
        workloads[0] |= {"axes": dict.fromkeys(order, 8), "twin": dict.fromkeys(order, 4)}
        workloads[1] |= {"axes": dict.fromkeys(order, 9), "twin": dict.fromkeys(order, 5)}
        row = to_row(make_task(workloads=workloads))
        assert json.dumps(row["workloads"][0]["axes"]) == (
            '[{"name": "M", "value": 8}, {"name": "N", "value": 8}]'
        )


def test_a_row_that_was_changed_is_refused(make_task: Any) -> None:
    row = to_row(make_task())
    with pytest.raises(ValueError, match="does not match the content"):
        from_row(Task, {**row, "description": "Subtract."})
    with pytest.raises(ValueError, match="Extra inputs"):
        from_row(Task, {**row, "surprise": 1})


def test_column_table_tells_name_type_and_meaning() -> None:
    table = {name: (kind, text) for name, kind, text in column_table(Triplet)}
    assert table["speedup"][0] == "float64"
    assert table["files"] == ("list of {path, content}", "Every file of the solution.")
    assert all(text for _, text in table.values())
