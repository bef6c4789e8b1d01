r"""Tokens of CUDA and C++ text, without comments: what a compiler sees before it expands macros.

A tokenizer of its own rather than a parser: it needs no dependency, does not give up on code that
only a preprocessor can complete, and takes time in proportion to the text whatever that holds.
Known to it: comments, string and character literals with prefixes, raw strings, lines continued by
a backslash (inside comments and names too), digraphs, digit separators, and `#if 0` blocks.
Macros are not expanded; `pasted` guesses at those that put names together. Not known: trigraphs.
"""

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["name", "number", "string", "character", "header", "operator"]


class Token(NamedTuple):
    """One token. `text[start:end]` of the whole text is how it is written there."""

    kind: Kind
    """header is what `#include <...>` names, with its angle brackets."""
    text: str
    """Without continued lines; a digraph such as `<%` as the `{` that it means."""
    line: int
    """Line that it starts on, from 1."""
    start: int
    """Offset of its first character."""
    end: int
    """Offset behind its last character."""
    directive: str
    """Name of the preprocessor directive that it is part of, such as `define`; otherwise empty."""


_SPLICE = re.compile(r"\\[ \t\f\v]*\r?\n")
_TOKEN = re.compile(
    r"""(?P<newline>\r?\n)
      | (?P<space>[ \t\f\v\r]+)
      | (?P<comment>//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
      | (?P<raw>(?:u8|u|U|L)?R"[^()\\\s"]{0,16}\()
      | (?P<string>(?:u8|u|U|L)?"(?:[^"\\\n]|\\.)*+(?:"|(?=\n)|\\?\Z))
      | (?P<character>(?:u8|u|U|L)?'(?:[^'\\\n]|\\.)*+(?:'|(?=\n)|\\?\Z))
      | (?P<number>\.?[0-9](?:[eEpP][+-]|'?\w|\.)*)
      | (?P<name>(?:[^\W\d]|\$)(?:\w|\$)*)
      | (?P<operator><<<|>>>|<=>|<<=|>>=|->\*|\.\.\.|%:%:|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\|
          |\+=|-=|\*=|/=|%=|&=|\|=|\^=|\#\#|\.\*|<%|%>|<:|:>|%:|.)""",
    re.VERBOSE | re.DOTALL,
)
_DIGRAPHS = {"<%": "{", "%>": "}", "<:": "[", ":>": "]", "%:": "#", "%:%:": "##"}
_COMMENT = r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_DIRECTIVE = re.compile(rf"(?:[ \t]|{_COMMENT})*+(\w*)((?:{_COMMENT}|[^\n])*+)")
_HEADER = re.compile(r"<[^>\n]*>")
_ENDS_BLOCK = frozenset({"else", "elif", "elifdef", "elifndef"})


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a source file in order; text of any kind is taken without an error."""
    return _Scanner(text).run()


class _Scanner:
    """State of one pass over a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        # `flat` is the text without continued lines; `cuts` says what was left out before where.
        self.flat, self.cuts, self.removed = _join_lines(text)
        self.lines = [m.start() for m in re.finditer("\n", text)]
        self.directive = ""
        self.fresh = True  # Nothing stands before on this line.
        self.skipped = 0  # Conditions that are open, from an `#if 0` on.

    def run(self) -> Iterator[Token]:
        position = 0
        while match := _TOKEN.match(self.flat, position):
            start, position = match.span()
            kind, word = match.lastgroup, match.group()
            if kind == "newline":
                self.directive, self.fresh = "", True
                continue
            if kind in ("space", "comment"):
                continue
            if kind == "raw":
                kind, position = "string", self._end_of_raw(start, word)
                word = self.text[self._origin(start) : self._origin(position - 1) + 1]
            word = _DIGRAPHS.get(word, word)
            if word == "#" and self.fresh:
                self._enter_directive(position)
            elif word == "<" and self.directive.startswith("include"):
                header = _HEADER.match(self.flat, start)
                if header is not None:
                    kind, word, position = "header", header.group(), header.end()
            self.fresh = False
            if not self.skipped:
                yield self._token(kind, word, start, position)

    def _token(self, kind: str | None, word: str, start: int, end: int) -> Token:
        first, last = self._origin(start), self._origin(end - 1) + 1
        line = bisect_right(self.lines, first - 1) + 1
        # The pattern's groups are named after the kinds.
        return Token(kind, word, line, first, last, self.directive)  # type: ignore[arg-type]

    def _origin(self, position: int) -> int:
        """Return where in the text a character of `flat` stands."""
        return position + self.removed[bisect_right(self.cuts, position)]

    def _end_of_raw(self, start: int, opening: str) -> int:
        """Return the offset in `flat` behind a raw string, in which no line is continued."""
        begin = self._origin(start + len(opening) - 1)
        delimiter = opening[opening.index('"') + 1 : -1]
        found = self.text.find(f'){delimiter}"', begin)
        end = len(self.text) if found < 0 else found + len(delimiter) + 2
        low = start + len(opening)
        high = len(self.flat)
        while low < high:  # The first character of `flat` that comes at or behind the end.
            middle = (low + high) // 2
            if self._origin(middle) < end:
                low = middle + 1
            else:
                high = middle
        return low

    def _enter_directive(self, position: int) -> None:
        match = _DIRECTIVE.match(self.flat, position)
        name, rest = match.groups() if match is not None else ("", "")
        self.directive = name or "#"
        if self.skipped:
            if name in ("if", "ifdef", "ifndef"):
                self.skipped += 1
            elif name == "endif" or (name in _ENDS_BLOCK and self.skipped == 1):
                self.skipped -= 1
        elif name == "if":
            condition = re.sub(rf"{_COMMENT}|//.*", " ", rest).strip()
            self.skipped = int(condition in ("0", "false"))


def _join_lines(text: str) -> tuple[str, list[int], list[int]]:
    """Return the text without continued lines, where it was cut, and how much was left out by then.

    The character at offset p of the joined text stands at p + removed[bisect_right(cuts, p)].
    """
    kept, cuts, removed = [], [], [0]
    end = length = 0
    for match in _SPLICE.finditer(text):
        piece = text[end : match.start()]
        kept.append(piece)
        length += len(piece)
        cuts.append(length)
        removed.append(removed[-1] + len(match.group()))
        end = match.end()
    kept.append(text[end:])
    return "".join(kept), cuts, removed


def pasted(found: list[Token]) -> list[Token]:
    """Return tokens with uses of macros that paste names together replaced by the one name.

    Arguments are joined in their order, whatever the macro does with them: a guess, for hints.
    """
    pasting = set()
    for i, token in enumerate(found):
        if token.text == "define" and token.directive == "define" and i + 1 < len(found):
            body = found[i + 1 : i + 200]
            line = itertools.takewhile(lambda t: t.directive and t.text != "#", body)
            if any(t.text == "##" for t in line):
                pasting.add(found[i + 1].text)
    if not pasting:
        return found
    kept: list[Token] = []
    i = 0
    while i < len(found):
        end = _end_of_use(found, i) if found[i].text in pasting else i
        if end > i:
            name = "".join(t.text for t in found[i + 2 : end] if t.kind == "name")
            kept.append(found[i]._replace(text=name, end=found[end].end))
        else:
            kept.append(found[i])
        i = end + 1
    return kept


def _end_of_use(found: list[Token], i: int) -> int:
    """Return where the bracket behind a macro is closed, if it holds plain names; otherwise `i`."""
    if found[i].directive == "define" or i + 1 >= len(found) or found[i + 1].text != "(":
        return i
    for j in range(i + 2, min(i + 30, len(found))):
        if found[j].text == ")":
            return j
        if found[j].kind != "name" and found[j].text != ",":
            break
    return i
