"""Texts that a Python source puts together from constants, and the lines that they come from."""

import ast
import re

from concur.validators.python_names import Names, called_name

Chunk = tuple[str, int]
"""A text of at most one line, and the line of the Python source that it stands on."""

_DEPTH = 40
# Sources that double a text again and again are not followed to their end.
_MOST_CHUNKS = 50_000
_MOST_IN_ALL = 500_000
_UNCHANGED = frozenset(["strip", "lstrip", "rstrip", "encode", "decode", "expandtabs", "lower"])
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_PERCENT = re.compile(r"%(?:\((\w+)\))?[#0 +-]*\d*(?:\.\d+)?[sdifxXrueEgGc]|%%")
_BRACES = re.compile(r"\{\{|\}\}|\{(\w*)[^{}]*\}")


class Texts:
    """Folds expressions of one module into texts."""

    def __init__(self, names: Names) -> None:
        """Take what the module's names stand for."""
        self._names = names
        self._done: dict[int, list[Chunk]] = {}
        self._left = _MOST_IN_ALL

    def fold(self, node: ast.expr | None, depth: int = 0) -> list[Chunk]:
        """Return the text of an expression; unknown parts are left out.

        A name that is assigned several times stands for all its texts, one after the other.
        """
        if node is None or depth > _DEPTH or self._left < 0:
            return []
        if id(node) not in self._done:
            self._done[id(node)] = []  # What is made of itself adds nothing.
            self._done[id(node)] = found = self._fold(node, depth + 1)[:_MOST_CHUNKS]
            self._left -= len(found)
        return self._done[id(node)]

    def _fold(self, node: ast.expr, depth: int) -> list[Chunk]:
        match node:
            case ast.Constant(value=str(text)):
                return _lines(text, node.lineno, node.end_lineno or node.lineno)
            case ast.Constant(value=value):
                return [(str(value)[:100], node.lineno)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.fold(left, depth) + self.fold(right, depth)
            case ast.BinOp(left=template, op=ast.Mod(), right=right):
                return self._filled(self.fold(template, depth), _PERCENT, right, depth)
            case ast.JoinedStr(values=parts):
                return [c for part in parts for c in self.fold(part, depth) or _unknown(part)]
            case ast.FormattedValue(value=value):
                return self.fold(value, depth)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return [c for part in parts for c in [*self.fold(part, depth), ("\n", 0)]]
            case ast.IfExp(body=one, orelse=other):
                return self.fold(one, depth) + self.fold(other, depth)
            case ast.NamedExpr(value=value) | ast.Starred(value=value):
                return self.fold(value, depth)
            case ast.Name(id=name):
                return self._of_name(name, depth)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                return self._of_name(f"self.{name}", depth)
            case ast.Call():
                return self._called(node, depth)
        return []

    def _of_name(self, name: str, depth: int) -> list[Chunk]:
        values = self._names.values.get(name, [])[:50]
        found: list[Chunk] = []
        for value in values:
            found += self.fold(value, depth)
            if len(found) > _MOST_CHUNKS:
                break
        return found

    def _called(self, node: ast.Call, depth: int) -> list[Chunk]:
        if not isinstance(node.func, ast.Attribute):
            return self._of_result(node, depth)
        base, method = node.func.value, node.func.attr
        if method in _UNCHANGED:
            return self.fold(base, depth)
        if method in ("dedent", "indent") and node.args:
            return self.fold(node.args[0], depth)
        if method == "join" and node.args:
            return self._joined(self.fold(base, depth), node.args[0], depth)
        if method == "format":
            return self._filled(self.fold(base, depth), _BRACES, node, depth)
        if method == "replace" and len(node.args) > 1:
            old, new = (_joined(self.fold(a, depth)) for a in node.args[:2])
            return [
                (text.replace(old, new) if old and len(new) < 2000 else text, line)
                for text, line in self.fold(base, depth)
            ]
        return self._of_result(node, depth)

    def _of_result(self, node: ast.Call, depth: int) -> list[Chunk]:
        """Return what the module's own function of that name returns."""
        name = called_name(node)
        found: list[Chunk] = []
        for function in self._names.functions.get(name, [])[:3]:
            for inner in ast.walk(function):
                if isinstance(inner, ast.Return):
                    found += self.fold(inner.value, depth)
        return found

    def _joined(self, between: list[Chunk], parts: ast.expr, depth: int) -> list[Chunk]:
        if not isinstance(parts, ast.List | ast.Tuple):
            return self.fold(parts, depth)
        found: list[Chunk] = []
        for number, part in enumerate(parts.elts[:5000]):
            found += (between if number else []) + self.fold(part, depth)
            if len(found) > _MOST_CHUNKS:
                break
        return found

    def _filled(
        self, template: list[Chunk], pattern: re.Pattern[str], values: ast.expr, depth: int
    ) -> list[Chunk]:
        """Return a template with its fields filled in; an unknown value becomes 0."""
        ordered, named = _fields(values)
        texts = [_joined(self.fold(value, depth))[:20_000] for value in ordered]
        by_name = {key: _joined(self.fold(v, depth))[:20_000] for key, v in named.items()}
        following = iter(texts)

        def fill(match: re.Match[str]) -> str:
            if match.group() in ("%%", "{{", "}}"):
                return match.group()[0]
            key = match.group(1) or ""
            if key.isdigit() and len(key) < 5:
                return texts[int(key)] if int(key) < len(texts) else "0"
            return (by_name.get(key) if key else next(following, "")) or "0"

        found: list[Chunk] = []
        for text, line in template:
            found += [(part, line) for part in _LINE.findall(pattern.sub(fill, text))]
            if len(found) > _MOST_CHUNKS:
                break
        return found


def _fields(values: ast.expr) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    match values:
        case ast.Call(args=args, keywords=keywords):
            return list(args), {k.arg: k.value for k in keywords if k.arg is not None}
        case ast.Tuple(elts=parts):
            return list(parts), {}
        case ast.Dict(keys=keys, values=parts):
            pairs = zip(keys, parts, strict=True)
            return [], {str(k.value): v for k, v in pairs if isinstance(k, ast.Constant)}
    return [values], {}


def _joined(chunks: list[Chunk]) -> str:
    return "".join(text for text, _ in chunks)


def _unknown(part: ast.expr) -> list[Chunk]:
    return [("0", part.lineno)] if isinstance(part, ast.FormattedValue) else []


def _lines(text: str, first: int, last: int) -> list[Chunk]:
    """Return the lines of a constant that stands on some lines of its source."""
    return [(part, min(first + number, last)) for number, part in enumerate(_LINE.findall(text))]
