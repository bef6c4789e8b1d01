"""Empty every kernel of a CUDA text, and keep all else in its place.

A solution that is still right afterwards does its work elsewhere. Works on tokens, before macros
are expanded: macros that stand for `__global__`, for the head of a kernel, or for all of one are
followed within the texts that are given. Kernels of included libraries keep their bodies.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from concur.validators.cuda_text import Token, tokens

_CONDITIONS = ("if", "ifdef", "ifndef")
_BRANCHES = ("else", "elif", "elifdef", "elifndef")
_KEPT = (*_CONDITIONS, *_BRANCHES, "endif", "define", "undef", "error")
_LINE_ENDS = re.compile(r"\\[ \t\f\v]*\r?\n|\r?\n")
_DEAD = re.compile(r"^([ \t]*#[ \t]*if[ \t]+)(0|false)(?=[ \t]*(?://|/\*|\r?$))", re.MULTILINE)
_MARK = "\1"
_MOST_ROUNDS = 16


def emptied(source: str, beside: Iterable[str] = ()) -> str:
    """Return the text with the body of each `__global__` function blank; lines keep their numbers.

    `beside` are the other texts of the solution, whose macros count as well.
    """
    own = _live(source)
    macros = _macros([own, *(_live(other) for other in beside)])
    blank = bytearray(len(source))
    for start, stop in _bodies(own, macros):
        blank[start:stop] = b"\1" * (stop - start)
    for start, stop in _kept(own):
        blank[start:stop] = bytes(stop - start)
    for macro in _definitions(own):
        for start, stop in _bodies(macro.body, macros):
            blank[start:stop] = b"\1" * (stop - start)
    for match in _LINE_ENDS.finditer(source):
        blank[match.start() : match.end()] = bytes(match.end() - match.start())
    return "".join(" " if out else letter for out, letter in zip(blank, source, strict=True))


def _live(text: str) -> list[Token]:
    """Return the tokens without those below an `#if 0`, whose directives are all there."""
    live, dead = [], 0
    found = list(tokens(_DEAD.sub(lambda m: f"{m[1]}{_MARK}{m[2][1:]}", text)))
    for position, token in enumerate(found):
        if _starts(found, position):
            name = token.directive
            if dead:
                dead += (name in _CONDITIONS) - (name == "endif")
                dead -= name in _BRANCHES and dead == 1
            elif name == "if" and _text(found, position + 2) == _MARK:
                dead = 1
        if token.directive or not dead:
            live.append(token)
    return live


def _kept(text: list[Token]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the directives that the rest of a text may depend on."""
    start = end = 0
    for position, token in enumerate(text):
        if _starts(text, position):
            yield start, end
            start = end = token.start
        if token.directive in _KEPT:
            end = token.end
    yield start, end


def _starts(text: list[Token], position: int) -> bool:
    """Whether a directive starts here."""
    token = text[position]
    named = _text(text, position + 1) == token.directive
    return token.text == "#" and token.directive != "" and named


@dataclass
class _Macro:
    """A `#define`: what stands for it, and what it does to the text behind its use."""

    name: str
    takes: bool
    """Whether it takes arguments."""
    body: list[Token]
    opens: bool = False
    """Whether a kernel begins in it whose body does not end there."""
    braces: int = 0
    """Opening minus closing braces."""


@dataclass
class _Place:
    """Where a scan of a body stands."""

    braces: int
    """How many are open."""
    conditions: list[int] = field(default_factory=list)
    """How many were open where each condition around began."""
    skipped: int = 0
    """Conditions that are open in a branch that is another form of the one before."""


def _macros(texts: list[list[Token]]) -> dict[str, _Macro]:
    """Return the macros of all texts that begin kernels or hold braces without their partners."""
    defined = [macro for text in texts for macro in _definitions(text)]
    known: dict[str, _Macro] = {}
    for _ in range(_MOST_ROUNDS):
        before = len(known)
        for macro in defined:
            macro.braces = sum(_braces(token, known) for token in macro.body)
            macro.opens = any(end is None for _, end in _kernels(macro.body, known))
            if macro.opens or macro.braces:
                known.setdefault(macro.name, macro)
        if len(known) == before:
            break
    return known


def _definitions(text: list[Token]) -> Iterator[_Macro]:
    starts = [i for i, t in enumerate(text) if t.directive == "define" and _starts(text, i)]
    for start in starts:
        end = start + 2
        while end < len(text) and text[end].directive == "define" and not _starts(text, end):
            end += 1
        line = text[start + 2 : end]
        if not line:
            continue
        takes = len(line) > 1 and line[1].text == "(" and line[1].start == line[0].end
        body = line[1:]
        if takes:
            closing = next((i for i, token in enumerate(line) if token.text == ")"), len(line))
            body = line[closing + 1 :]
        yield _Macro(line[0].text, takes, [token._replace(directive="") for token in body])


def _bodies(text: list[Token], macros: dict[str, _Macro]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of characters that lie between the braces of kernels."""
    for start, end in _kernels(text, macros):
        if start is not None:
            yield text[start].end, text[-1].end if end is None else text[end].start


def _kernels(
    text: list[Token], macros: dict[str, _Macro]
) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of the token that opens a body and the one that closes it.

    A kernel without its closing brace has None as the second, one without a body None as both.
    """
    position = 0
    while position < len(text):
        if not _begins(text, position, macros):
            position += 1
            continue
        opening, depth = _opening(text, position, macros)
        if opening is None:
            yield None, None
            return
        if depth == 0:  # A declaration.
            position = opening + 1
            continue
        closing = _closing(text, opening, depth, macros)
        yield opening, closing
        if closing is None:
            return
        position = closing + 1


def _begins(text: list[Token], position: int, macros: dict[str, _Macro]) -> bool:
    token = text[position]
    if token.directive or token.kind != "name":
        return False
    if token.text == "global":  # __attribute__((global)), which the usual name stands for
        return _text(text, position - 1) == "(" and _text(text, position + 1) == ")"
    return token.text == "__global__" or (token.text in macros and macros[token.text].opens)


def _opening(text: list[Token], position: int, macros: dict[str, _Macro]) -> tuple[int | None, int]:
    """Return the token that opens the body and how many braces are open behind it.

    The number is 0 at the semicolon of a declaration; there is no token at the end of the text.
    """
    parentheses = 0
    for here in range(position, len(text)):
        token = text[here]
        if token.directive:
            continue
        macro = macros.get(token.text)
        if macro is not None and macro.braces > 0 and not parentheses:
            return (_behind(text, here) if macro.takes else here), macro.braces
        if token.text == "(":
            parentheses += 1
        elif token.text == ")":
            parentheses = max(0, parentheses - 1)
        elif not parentheses and token.text in ("{", ";"):
            return here, int(token.text == "{")
    return None, 0


def _behind(text: list[Token], position: int) -> int:
    """Return the token that closes the arguments of a macro."""
    depth = 0
    for index in range(position + 1, len(text)):
        depth += (text[index].text == "(") - (text[index].text == ")")
        if depth <= 0:
            return index if text[index].text == ")" else position
    return position


def _closing(text: list[Token], opening: int, depth: int, macros: dict[str, _Macro]) -> int | None:
    """Return the token that closes a body; of branches that differ, the first one counts."""
    place = _Place(braces=depth)
    for position in range(opening + 1, len(text)):
        token = text[position]
        if _starts(text, position):
            _condition(token.directive, place)
        if token.directive or place.skipped:
            continue
        place.braces += _braces(token, macros)
        if place.braces <= 0:
            return position
    return None


def _condition(directive: str, place: _Place) -> None:
    if place.skipped:
        place.skipped += (directive in _CONDITIONS) - (directive == "endif")
    elif directive in _CONDITIONS:
        place.conditions.append(place.braces)
    elif directive in _BRANCHES:
        if place.conditions:
            place.braces = place.conditions[-1]
        else:
            place.skipped = 1  # It began before the body: this is another head of the same kernel.
    elif directive == "endif" and place.conditions:
        place.conditions.pop()


def _braces(token: Token, macros: dict[str, _Macro]) -> int:
    if token.directive:
        return 0
    if token.kind == "name":
        return macros[token.text].braces if token.text in macros else 0
    return (token.text == "{") - (token.text == "}")


def _text(text: list[Token], position: int) -> str:
    return text[position].text if 0 <= position < len(text) else ""
