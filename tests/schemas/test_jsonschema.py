import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from concur.builders.folder import CORPUS
from concur.schemas.base import Record
from concur.schemas.jsonschema import GENERATED, SCHEMAS, file_text, schema_of, validator_of

NAMES = pytest.mark.parametrize(("name", "cls"), SCHEMAS.items(), ids=SCHEMAS.keys())


def nodes(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [node for item in schema for node in nodes(item)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(node for item in schema.values() for node in nodes(item))]


def test_generated_files_are_up_to_date() -> None:
    on_disk = {p.name: p.read_text(encoding="utf-8") for p in GENERATED.glob("*")}
    expected = {f"{name}.schema.json": file_text(cls) for name, cls in SCHEMAS.items()}
    assert on_disk == expected, "run `python -m concur.schemas.jsonschema`"


@NAMES
def test_schemas_are_sound_and_bear_a_version(name: str, cls: type[Record]) -> None:
    schema = schema_of(cls)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://concur-kernels.github.io/schemas/{name}-1.schema.json"
    assert schema["x-version"] == 1


@NAMES
def test_schemas_are_closed_and_every_reference_resolves(name: str, cls: type[Record]) -> None:
    schema = schema_of(cls)
    for node in nodes(schema):
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
        if "$ref" in node:
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]
        assert "format" not in node or isinstance(node["format"], dict)


@NAMES
def test_every_field_is_described_on_one_line(name: str, cls: type[Record]) -> None:
    for node in nodes(schema_of(cls)):
        if isinstance(node.get("properties"), dict) and node.get("type") == "object":
            for field in node["properties"].values():
                assert field["description"].strip()
                assert "\n" not in field["description"]


@NAMES
def test_no_pattern_lets_a_last_newline_pass(name: str, cls: type[Record]) -> None:
    """Python's `$` matches before a newline at the end, which JSON Schema's must not."""
    patterns = {n["pattern"] for n in nodes(schema_of(cls)) if isinstance(n.get("pattern"), str)}
    assert patterns
    texts = ("abc", "9.0", "sm_90a", "MIT", "-O3", "2026-12-01", "kernel.cu", "", "N+1")
    for pattern in patterns:
        assert any(re.search(pattern, text) for text in texts)
        assert not any(re.search(pattern, text + "\n") for text in texts)


def test_a_float_is_no_integer(make_task: Any) -> None:
    plain = make_task().to_plain()
    plain["workloads"][0]["axes"]["N"] = 8.0
    [error] = validator_of(SCHEMAS["task"]).iter_errors(plain)
    assert list(error.path) == ["workloads", 0, "axes", "N"]


def test_the_corpus_and_the_factories_are_valid(
    make_sample: Any, make_verdict: Any, make_solution: Any
) -> None:
    headers = [json.loads(p.read_text(encoding="utf-8")) for p in CORPUS.glob("*/task.json")]
    assert headers
    for header in headers:
        assert not list(validator_of(SCHEMAS["task-header"]).iter_errors(header))
    for name, record in (
        ("sample", make_sample()),
        ("verdict", make_verdict()),
        ("solution", make_solution()),
    ):
        assert not list(validator_of(SCHEMAS[name]).iter_errors(record.to_plain()))
