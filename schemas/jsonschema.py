"""JSON Schema (Draft 2020-12) of every record that is exchanged, derived from the record classes.

`python -m concur.schemas.jsonschema` writes `schemas/generated/*.schema.json`; a test fails when
those files and the classes differ. Single-line text gets a pattern here that pydantic does not
need to know: which fields are prose is said by `PROSE`.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from concur.schemas.base import Record
from concur.schemas.review import Review
from concur.schemas.sample import Sample
from concur.schemas.solution import DecidedSolution, Solution, SolutionHeader
from concur.schemas.task import Task, TaskHeader
from concur.schemas.trajectory import AttemptLogHeader, Trajectory
from concur.schemas.triplet import Triplet
from concur.schemas.verdict import Admission, Verdict

VERSION = 1
"""Version of the schemas; raised when a record of an older release would no longer be valid."""
BASE = "https://concur-kernels.github.io/schemas/"
GENERATED = Path(__file__).parent / "generated"
"""Folder of the generated files."""
SINGLE_LINE = "^[^\\u0000-\\u001f\\u007f\\u0085\\u2028\\u2029]*$(?!\\n)"
"""Pattern of text that may hold no line break or control character."""
PROSE: Final = frozenset(
    {"arguments_json", "content", "description", "evidence", "feedback", "meaning", "message"}
    | {"model_terms", "note", "reason", "remedy"}
)
"""Fields that may hold several lines, beside those of the type `Text`."""
LONG_TEXT = 4000
"""Text that may be at least this long is prose, whatever its name."""

SCHEMAS: Final[dict[str, type[Record]]] = {
    "task-header": TaskHeader,
    "solution-header": SolutionHeader,
    "attempt-log-header": AttemptLogHeader,
    "sample": Sample,
    "task": Task,
    "solution": Solution,
    "verdict": Verdict,
    "admission": Admission,
    "triplet": Triplet,
    "trajectory": Trajectory,
    "review": Review,
    "decided-solution": DecidedSolution,
}
"""Record classes by the name of their schema."""


def schema_of(cls: type[Record]) -> dict[str, Any]:
    """Return the JSON Schema of a record class, with `$id` and version where it has a name."""
    schema = cls.model_json_schema(mode="validation")
    head: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    for name, known in SCHEMAS.items():
        if known is cls:
            head["$id"] = f"{BASE}{name}-{VERSION}.schema.json"
            head["title"] = f"{name}, version {VERSION}"
            head["x-version"] = VERSION
    definitions = schema.pop("$defs", {})
    return {
        **head,
        **_tidy(schema, ""),
        **({"$defs": {k: _tidy(v, "") for k, v in definitions.items()}} if definitions else {}),
    }


@cache
def validator_of(cls: type[Record]) -> Any:
    """Return the validator of a record class, built once.

    Reads the generated file where the class has one. 1.0 is not taken for an integer.
    """
    for name, known in SCHEMAS.items():
        if known is cls:
            schema = json.loads((GENERATED / f"{name}.schema.json").read_text(encoding="utf-8"))
            break
    else:
        schema = schema_of(cls)
    return _Strict(schema)


def write_all(folder: Path) -> list[Path]:
    """Write every schema as `<name>.schema.json` into a folder; returns the paths, sorted."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, cls in sorted(SCHEMAS.items()):
        path = folder / f"{name}.schema.json"
        path.write_text(file_text(cls), encoding="utf-8", newline="\n")
        paths.append(path)
    return paths


def file_text(cls: type[Record]) -> str:
    """Return the text of a class's generated file."""
    return json.dumps(schema_of(cls), indent=2, ensure_ascii=True) + "\n"


def _tidy(schema: dict[str, Any], field: str) -> dict[str, Any]:
    """Return a subschema without pydantic's noise, strict where pydantic's own checks are."""
    result = {k: v for k, v in schema.items() if k != "title"}
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if "pattern" in result:
        result["pattern"] = _portable(result["pattern"])
    elif result.get("type") == "string" and _is_single_line(result, field):
        result["pattern"] = SINGLE_LINE
    if "properties" in result:
        result["properties"] = {n: _tidy(sub, n) for n, sub in result["properties"].items()}
    if "patternProperties" in result:
        result["patternProperties"] = {
            _portable(p): _tidy(sub, "") for p, sub in result["patternProperties"].items()
        }
        # Pydantic leaves this out, and a key of another form would pass unseen.
        result["additionalProperties"] = False
    for key in ("items", "propertyNames"):
        if isinstance(result.get(key), dict):
            result[key] = _tidy(result[key], field)
    if "anyOf" in result:
        result["anyOf"] = [_tidy(sub, field) for sub in result["anyOf"]]
    return result


def _portable(pattern: str) -> str:
    """Return a pattern that says the same in Python, where `$` would let a last newline pass."""
    ended = re.sub(r"\$$", lambda _: r"$(?!\n)", pattern)
    return ended.replace(r"\d", "[0-9]")


def _is_single_line(schema: dict[str, Any], field: str) -> bool:
    choices = "enum" in schema or "const" in schema
    return not choices and field not in PROSE and schema.get("maxLength", 0) < LONG_TEXT


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_Strict: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


if __name__ == "__main__":
    for written in write_all(GENERATED):
        sys.stdout.write(f"{written}\n")
