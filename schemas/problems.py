"""Findings about records: one short sentence and a remedy each, whatever the data holds.

Maps what `jsonschema` and pydantic say to findings. Their own messages embed the whole instance (a
kernel of 50 kB gives a message of 50 kB), so the sentences here are built anew.
"""

import difflib
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from jsonschema.exceptions import ValidationError as SchemaError
from pydantic import ValidationError

from concur.schemas.base import Record
from concur.schemas.json_text import JsonPath, Positions, path_text
from concur.schemas.jsonschema import SINGLE_LINE, validator_of
from concur.schemas.verdict import Finding

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    type(None): "null",
}
_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "null": "null",
}
_LENGTHS = {
    "minLength": ("is shorter than {} characters", "Write at least {} characters."),
    "maxLength": ("is longer than {:,} characters", "Shorten it to {:,} characters."),
    "minItems": ("has fewer than {} items", "Give at least {}."),
    "maxItems": ("has more than {} items", "Give at most {}."),
    "maxProperties": ("has more than {} keys", "Give at most {}."),
}


MAX_LOOKED_AT = 200
"""Findings that a check against a schema goes on to, before they are sorted and cut."""


def excerpt(value: object, limit: int = 60) -> str:
    """Return the first `limit` characters of a value, quoted, as ASCII on one line."""
    if isinstance(value, str) and len(value) > limit:
        return json.dumps(value[: limit - 3] + "...")[: limit * 2]
    shown = json.dumps(value, default=str)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def printable(text: str) -> str:
    """Return text with escapes for what cannot be printed on one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def kind_of(value: object) -> str:
    """Return what a JSON value is, in words."""
    return _KINDS.get(type(value), "something else")


def problem(
    rule: str,
    message: str,
    source: str,
    *,
    remedy: str,
    line: int = 0,
    where: str = "",
) -> Finding:
    """Return an error about a file or record; the message is cut at 240 characters."""
    if len(message) > 240:
        message = message[:237] + "..."
    return Finding(
        rule=rule,
        severity="error",
        message=printable(message),
        path=printable(source),
        line=line,
        where=where,
        remedy=remedy,
    )


def schema_problems(
    cls: type[Record], value: Any, source: str, positions: Positions | None, at: JsonPath
) -> list[Finding]:
    """Check plain data against the generated schema of a class; findings sorted by JSON path.

    Looks for no more than `MAX_LOOKED_AT` of them.
    """
    errors = _leaves(validator_of(cls).iter_errors(value))
    every = itertools.chain.from_iterable(map(_schema_findings, errors))
    found = list(itertools.islice(every, MAX_LOOKED_AT))
    unique = dict.fromkeys(sorted(found, key=lambda f: (path_text(f[0]), f[1:])))
    return [
        problem(
            rule,
            message,
            source,
            line=positions.line((*at, *path)) if positions else 0,
            where=path_text((*at, *path)),
            remedy=remedy,
        )
        for path, rule, message, remedy in unique
    ]


def pydantic_problems(
    error: ValidationError, source: str, positions: Positions | None, at: JsonPath
) -> list[Finding]:
    """Return the findings of pydantic's errors (rules `record.*`)."""
    found = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        path = (*at, *detail["loc"])
        message, _, remedy = detail["msg"].removeprefix("Value error, ").partition("; ")
        own = detail["type"] in ("value_error", "id_mismatch")
        found.append(
            problem(
                _record_rule(detail["type"]),
                message if len(message) <= 160 else message[:157] + "...",
                source,
                line=positions.line(path) if positions else 0,
                where=path_text(path),
                remedy=_sentence(remedy) if own and remedy else "Correct this value.",
            )
        )
    return found


def _record_rule(kind: str) -> str:
    return "record.invalid" if kind == "value_error" else f"record.{_dashed(kind)}"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:160].rstrip(".") + "."


def _leaves(errors: Iterator[SchemaError]) -> Iterator[SchemaError]:
    """Yield errors, those of an optional value in place of `is not valid under any of`."""
    for error in errors:
        if error.validator == "anyOf" and error.context:
            kept = [
                e
                for e in error.context
                if not (e.validator == "type" and e.validator_value == "null")
            ]
            yield from _leaves(iter(kept))
        else:
            yield error


_Found = tuple[JsonPath, str, str, str]


def _schema_findings(error: SchemaError) -> Iterator[_Found]:
    path: JsonPath = tuple(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.instance
    wanted: Any = error.validator_value
    match error.validator:
        case "additionalProperties" if "properties" in schema:
            yield from _unknown_keys(path, value, schema["properties"])
        case "additionalProperties":
            yield from _odd_keys(path, value, schema["patternProperties"])
        case "required":
            yield _missing_keys(path, [key for key in wanted if key not in value])
        case keyword:
            rule, message, remedy = _about_value(str(keyword), value, wanted)
            name = str(path[-1])[:80] if path else "the record"
            yield (path, rule, f"{name}: {message}", remedy)


def _about_value(keyword: str, value: Any, wanted: Any) -> tuple[str, str, str]:
    """Return rule, message and remedy for a value that a keyword of its schema refuses."""
    match keyword:
        case "type":
            names = _types(wanted)
            return ("schema.type", f"{kind_of(value)}, but must be {names}", f"Use {names}.")
        case "enum" | "const":
            choices = ", ".join(map(str, wanted if isinstance(wanted, list) else [wanted]))
            message = f"{excerpt(value)} is not one of the choices"
            return ("schema.choice", message, f"Use one of: {choices}.")
        case "pattern" if not re.search(SINGLE_LINE, value):
            remedy = "Write it on one line, without any at its end."
            return ("schema.single-line", "holds a line break or control character", remedy)
        case "pattern":
            message = f"{excerpt(value)} does not have the form it must have"
            return ("schema.pattern", message, f"Match {_shown(wanted)}.")
        case _ if keyword in _LENGTHS:
            said, remedy = (text.format(wanted) for text in _LENGTHS[keyword])
            return ("schema.length", said, remedy)
    message = f"does not satisfy {keyword} {excerpt(wanted)}"
    return (f"schema.{keyword.lower()}", message, "Correct this value.")


def _shown(pattern: str) -> str:
    return pattern.replace(r"(?!\n)", "")


def _missing_keys(path: JsonPath, keys: list[str]) -> _Found:
    # jsonschema tells of each missing key by itself; the same finding for all is told once.
    names = ", ".join(map(repr, keys))
    message = f"keys {names} are missing" if len(keys) > 1 else f"key {names} is missing"
    return (path, "schema.missing-key", message, f"Add {'them' if len(keys) > 1 else 'it'}.")


def _types(wanted: str | list[str]) -> str:
    return " or ".join(_TYPES[t] for t in ([wanted] if isinstance(wanted, str) else wanted))


def _unknown_keys(path: JsonPath, value: Any, known: dict[str, Any]) -> Iterator[_Found]:
    for key in value:
        if key not in known:
            close = difflib.get_close_matches(key[:80], known, n=1)
            remedy = (
                f"Did you mean {close[0]!r}?" if close else f"Remove it; known: {', '.join(known)}."
            )
            yield ((*path, key), "schema.unknown-key", f"key {excerpt(key)} is unknown", remedy)


def _odd_keys(path: JsonPath, value: Any, patterns: dict[str, Any]) -> Iterator[_Found]:
    shown = _shown(", ".join(patterns))
    for key in value:
        if not any(re.search(pattern, key) for pattern in patterns):
            message = f"key {excerpt(key)} does not have the form it must have"
            yield ((*path, key), "schema.pattern", message, f"Match {shown}.")
