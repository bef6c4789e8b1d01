"""Strict reading of contributed JSON: bytes to a record, every problem a finding.

Bytes are read as strict JSON, checked with `jsonschema` against the generated schema, then built as
a pydantic record. Each stage runs only when the one before found nothing, so that no problem is
told twice. Bad data never raises and is never quoted at length.
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

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
        "json.more", "further problems are not listed", source, remedy="Mend the ones above first."
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
    members = _Members()
    try:
        value = json.loads(
            text, object_pairs_hook=members, parse_constant=_Constant, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        return None, [_syntax(error, source, first_line)]
    positions = Positions(text, first_line=first_line)
    findings = _repeated(members, positions, source)
    for path, (rule, message, remedy) in itertools.islice(_faults(value), MAX_FINDINGS + 1):
        line, where = positions.line(path), path_text(path)
        findings.append(problem(rule, message, source, line=line, where=where, remedy=remedy))
    if not isinstance(value, dict) and not findings:
        message = f"the top level is {kind_of(value)}"
        remedy = "Write one JSON object: { ... }."
        findings.append(
            problem(
                "json.not-an-object", message, source, line=first_line, where="$", remedy=remedy
            )
        )
    return value, _capped(findings, source)


class _Members:
    """Builds an object from its members and remembers one key that occurs twice."""

    def __init__(self) -> None:
        self.twice: str | None = None

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs) and self.twice is None:
            self.twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return result


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


def _repeated(members: _Members, positions: Positions, source: str) -> list[Finding]:
    if members.twice is None:
        return []
    # Where the scan ends before it, the key is told without its place.
    places = positions.duplicates(MAX_FINDINGS + 1) or [((members.twice,), 0)]
    return [
        problem(
            "json.duplicate-key",
            f"key {excerpt(path[-1])} occurs twice in one object",
            source,
            line=line,
            where=path_text(path) if line else "",
            remedy="Keep one of them.",
        )
        for path, line in places
    ]


class _Place(NamedTuple):
    """A value with the way back to the top; paths are built only for what is reported."""

    value: Any
    step: str | int
    parent: "_Place | None"

    def path(self) -> JsonPath:
        steps: list[str | int] = []
        place = self
        while place.parent is not None:
            steps.append(place.step)
            place = place.parent
        return tuple(reversed(steps))


def _faults(top: Any) -> Iterator[tuple[JsonPath, tuple[str, str, str]]]:
    """Yield path, and rule, message and remedy, of each value that no record can hold."""
    stack = [_Place(top, "", None)]
    while stack:
        place = stack.pop()
        if isinstance(place.value, dict):
            for key in place.value:
                if fault := _text_fault(key, "a key"):
                    yield place.path(), fault
            stack += [_Place(v, k, place) for k, v in reversed(place.value.items())]
        elif isinstance(place.value, list):
            count = len(place.value)
            stack += [_Place(place.value[i], i, place) for i in reversed(range(count))]
        elif fault := _fault(place.value):
            yield place.path(), fault


def _fault(value: Any) -> tuple[str, str, str] | None:
    if isinstance(value, str):
        return _text_fault(value, "the text")
    if isinstance(value, _Constant):
        return ("json.constant", f"{value.text} is not JSON", "Use a number or leave it out.")
    if isinstance(value, _LongInteger):
        return ("json.integer-range", "integer beyond 64 bits", "Use a smaller number.")
    if isinstance(value, float) and math.isinf(value):
        return ("json.number-overflow", "number too large for a double", "Use a smaller one.")
    return None


def _text_fault(text: str, what: str) -> tuple[str, str, str] | None:
    if "\0" in text:
        return (
            "json.nul",
            f"{what} holds a NUL character",
            "Remove it; records hold text, not binary data.",
        )
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return (
                "json.surrogate",
                f"{what} holds half a surrogate pair (\\u{ord(text[error.start]):04x})",
                "Write the whole character, as UTF-8 or as a pair of escapes.",
            )
    return None
