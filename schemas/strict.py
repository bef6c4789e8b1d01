"""Strict reading of contributed JSON: bytes to a record, every problem a finding.

Bytes are read as strict JSON, checked with `jsonschema` against the generated schema, then built as
a pydantic record. Each stage runs only when the one before found nothing, so that no problem is
told twice. Bad data never raises and is never quoted at length.
"""

import json
import math
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import ValidationError

from concur.schemas.base import Record
from concur.schemas.json_text import JsonPath, Positions, deeper_than, line_at, path_text
from concur.schemas.problems import excerpt, kind_of, problem, pydantic_problems, schema_problems
from concur.schemas.verdict import Finding

LIMIT = 8 * 1024 * 1024
"""Largest JSON document that is read, in bytes."""
MAX_DEPTH = 64
"""Deepest nesting that is read."""
MAX_FINDINGS = 20
"""Findings that one document gets at most from one stage."""

AnyRecord = TypeVar("AnyRecord", bound=Record)


class _Constant:
    """Stands for NaN, Infinity or -Infinity until it is reported."""

    def __init__(self, text: str) -> None:
        self.text = text


class _LongInteger:
    """Stands for an integer that 64 bits cannot hold until it is reported."""


def read_json(
    data: bytes, source: str, *, limit: int = LIMIT, first_line: int = 1
) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Read one JSON object. Returns it, or None and the findings (rules `json.*`).

    Refuses what Python's reader lets through: duplicate keys, NaN, numbers that overflow, integers
    beyond 64 bits, lone surrogates, NUL, a byte order mark; and bounds size and depth beforehand.
    `first_line` is the line that the document starts on, for the findings.
    """
    if len(data) > limit:
        return None, [
            problem(
                "json.too-large",
                f"larger than {limit:,} bytes, which is the most that is read",
                source,
                remedy="Shorten or split it.",
            )
        ]
    text, findings = _decode(data, source, first_line)
    if text is None:
        return None, findings
    value, findings = _parse(text, source, first_line)
    return (None, findings) if findings else (value, [])


def load_record(
    cls: type[AnyRecord], data: bytes, source: str, *, limit: int = LIMIT
) -> tuple[AnyRecord | None, list[Finding]]:
    """Read one record of a class from JSON bytes. Returns it, or None and the findings."""
    value, findings = read_json(data, source, limit=limit)
    if value is None:
        return None, findings
    return build_record(cls, value, source, positions=Positions(data.decode()))


def build_record(
    cls: type[AnyRecord],
    value: Any,
    source: str,
    *,
    positions: Positions | None = None,
    at: JsonPath = (),
) -> tuple[AnyRecord | None, list[Finding]]:
    """Build a record from plain data that `read_json` has passed.

    `at` is where the data stands in its document and `positions` knows the document's lines; both
    only serve the findings. Returns the record, or None and the findings.
    """
    findings = schema_problems(cls, value, source, positions, at)
    if not findings:
        try:
            return cls.from_plain(value), []
        except ValidationError as error:
            findings = pydantic_problems(error, source, positions, at)
    return None, _capped(findings, source)


def _capped(findings: list[Finding], source: str) -> list[Finding]:
    if len(findings) <= MAX_FINDINGS:
        return findings
    more = problem(
        "json.more",
        f"{len(findings) - MAX_FINDINGS} further problems are not listed",
        source,
        remedy="Mend the ones above first.",
    )
    return [*findings[:MAX_FINDINGS], more]


def _decode(data: bytes, source: str, first_line: int) -> tuple[str | None, list[Finding]]:
    if data.startswith(b"\xef\xbb\xbf"):
        return None, [
            problem(
                "json.byte-order-mark",
                "the file begins with a byte order mark",
                source,
                line=first_line,
                remedy="Save it as UTF-8 without BOM.",
            )
        ]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return None, [
            problem(
                "json.encoding",
                f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8",
                source,
                line=data.count(b"\n", 0, error.start) + first_line,
                remedy="Save the file as UTF-8.",
            )
        ]
    if not text.strip():
        return None, [
            problem("json.empty", "there is no JSON in it", source, remedy="Write one JSON object.")
        ]
    return text, []


def _parse(text: str, source: str, first_line: int) -> tuple[dict[str, Any] | None, list[Finding]]:
    deep = deeper_than(text, MAX_DEPTH)
    if deep is not None:
        return None, [
            problem(
                "json.depth",
                f"nested deeper than {MAX_DEPTH} levels",
                source,
                line=deep + first_line - 1,
                remedy="No record nests that deeply; remove the extra brackets.",
            )
        ]
    twice = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        result = dict(pairs)
        twice = twice or len(result) < len(pairs)
        return result

    try:
        value = json.loads(
            text, object_pairs_hook=members, parse_constant=_Constant, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        return None, [_syntax(error, source, first_line)]
    positions = Positions(text, first_line=first_line)
    findings = _repeated(positions, source) if twice else []
    findings += [
        problem(
            rule, message, source, line=positions.line(path), where=path_text(path), remedy=remedy
        )
        for path, rule, message, remedy in _faults(value)
    ]
    if not isinstance(value, dict) and not findings:
        findings.append(
            problem(
                "json.not-an-object",
                f"the top level is {kind_of(value)}",
                source,
                line=first_line,
                where="$",
                remedy="Write one JSON object: { ... }.",
            )
        )
    return value, _capped(findings, source)


def _integer(text: str) -> int | _LongInteger:
    # Python refuses to convert beyond 4,300 digits, so the length is looked at first.
    if len(text) <= 20 and -(2**63) <= int(text) < 2**63:
        return int(text)
    return _LongInteger()


def _syntax(error: json.JSONDecodeError, source: str, first_line: int) -> Finding:
    line = line_at(error.doc, error.pos)
    trailing = error.msg == "Extra data"
    message = "text follows the end of the JSON value" if trailing else error.msg
    return problem(
        "json.trailing-text" if trailing else "json.syntax",
        f"{message} (line {line + first_line - 1}, column {error.colno})",
        source,
        line=line + first_line - 1,
        remedy="Remove it." if trailing else "Mend the JSON there.",
    )


def _repeated(positions: Positions, source: str) -> list[Finding]:
    return [
        problem(
            "json.duplicate-key",
            f"key {excerpt(path[-1])} occurs twice in one object",
            source,
            line=line,
            where=path_text(path),
            remedy="Keep one of them.",
        )
        for path, line in positions.duplicates()
    ]


def _faults(top: Any) -> Iterator[tuple[JsonPath, str, str, str]]:
    """Yield path, rule, message and remedy of each value that no record can hold."""
    stack: list[tuple[JsonPath, Any]] = [((), top)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            for key in value:
                if fault := _text_fault(key):
                    yield (path, fault[0], f"a key holds {fault[1]}", fault[2])
            stack.extend(((*path, key), value[key]) for key in reversed(value))
        elif isinstance(value, list):
            stack.extend(((*path, i), value[i]) for i in reversed(range(len(value))))
        elif isinstance(value, str):
            if fault := _text_fault(value):
                yield (path, fault[0], f"the text holds {fault[1]}", fault[2])
        elif isinstance(value, _Constant):
            yield (
                path,
                "json.constant",
                f"{value.text} is not JSON",
                "Use a number or leave it out.",
            )
        elif isinstance(value, _LongInteger):
            yield (path, "json.integer-range", "integer beyond 64 bits", "Use a smaller number.")
        elif isinstance(value, float) and math.isinf(value):
            yield (
                path,
                "json.number-overflow",
                "number too large for a double",
                "Use a smaller one.",
            )


def _text_fault(text: str) -> tuple[str, str, str] | None:
    if "\0" in text:
        return "json.nul", "a NUL character", "Remove it; records hold text, not binary data."
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return (
                "json.surrogate",
                f"half a surrogate pair (\\u{ord(text[error.start]):04x})",
                "Write the whole character, as UTF-8 or as a pair of escapes.",
            )
    return None
