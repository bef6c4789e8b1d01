"""Where things stand in JSON text: nesting depth, keys that occur twice, the line of a JSON path.

Works on the text with an iterative scan, so that hostile nesting costs no recursion.
"""

import itertools
import json
import re
from collections.abc import Iterator

JsonPath = tuple[str | int, ...]
"""Keys and indexes from the top of a document down to a value."""

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_BRACKET = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_TOKEN = re.compile(rf'{_STRING}|[{{}}\[\]:,]|[^\s{{}}\[\]:,"]++', re.DOTALL)
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}\Z")


def path_text(path: JsonPath) -> str:
    """Return a JSON path as text, such as `$.workloads[0].axes`; long or odd keys are quoted."""
    parts = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_KEY.match(step):
            parts.append(f".{step}")
        else:
            shown = step if len(step) <= 40 else step[:37] + "..."
            parts.append(f"[{json.dumps(shown)}]")
    return "$" + "".join(parts)


def deeper_than(text: str, limit: int) -> int | None:
    """Return the line where nesting first exceeds `limit`, or None. Reads no further than that."""
    if text.count("[") + text.count("{") <= limit:
        return None
    depth = 0
    for match in _BRACKET.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
            if depth > limit:
                return line_at(text, match.start())
        elif token in "]}":
            depth -= 1
    return None


def line_at(text: str, offset: int) -> int:
    """Return the line number, from 1, of a character offset; only a line feed ends a line."""
    return text.count("\n", 0, offset) + 1


class Positions:
    """Lines of the values of one JSON document, found by a scan that goes as far as is needed.

    The scan ends after `BUDGET` values, so that a document of millions of small ones stays cheap;
    beyond that, a value gets the line of its closest ancestor that was seen.
    """

    BUDGET = 200_000

    def __init__(self, text: str, *, first_line: int = 1) -> None:
        """Take a document's text; `first_line` is the line that it starts on in its file."""
        self._text = text
        self._first_line = first_line
        self._events = itertools.islice(_events(text), self.BUDGET)
        self._offsets: dict[JsonPath, int] = {(): 0}
        self._twice: list[tuple[JsonPath, int]] = []

    def line(self, path: JsonPath) -> int:
        """Return the line of a path, or of its closest ancestor that is there."""
        self._scan(path)
        while path not in self._offsets:
            path = path[:-1]
        return self._line(self._offsets[path])

    def duplicates(self, limit: int) -> list[tuple[JsonPath, int]]:
        """Return path and line of the first keys that their object has held before."""
        self._scan(None)
        return [(path, self._line(offset)) for path, offset in self._twice[:limit]]

    def _line(self, offset: int) -> int:
        return line_at(self._text, offset) + self._first_line - 1

    def _scan(self, until: JsonPath | None) -> None:
        """Go on until a path has been seen, or to the end of the budget."""
        while until is None or until not in self._offsets:
            event = next(self._events, None)
            if event is None:
                return
            path, offset, is_key = event
            if is_key and path in self._offsets:
                self._twice.append((path, offset))
            self._offsets.setdefault(path, offset)


def _events(text: str) -> Iterator[tuple[JsonPath, int, bool]]:
    """Yield path, offset and whether it is a key, for each key and list item of valid JSON."""
    path: list[str | int | None] = []  # None: an object whose next key has not been read
    for match in _TOKEN.finditer(text):
        token, offset = match.group(), match.start()
        if token == ":":
            continue
        if token in ("}", "]"):
            if path:
                path.pop()
        elif token == ",":
            if path:
                last = path[-1]
                path[-1] = last + 1 if isinstance(last, int) else None
        elif path and path[-1] is None:
            path[-1] = _key(token)
            yield _known(path), offset, True
        else:
            if path and isinstance(path[-1], int):
                yield _known(path), offset, False
            if token in ("{", "["):
                path.append(None if token == "{" else 0)


def _key(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token


def _known(path: list[str | int | None]) -> JsonPath:
    return tuple(step for step in path if step is not None)
