"""Screens: what the source text alone shows. Nothing is run.

`screen` rejects what could never work, or asks the compiler for something else than compiling.
`hints` tells which lines call libraries, reach outside, or could deceive. Hints never decide: text
is easily disguised, and the later gates look at what is computed.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import islice

from concur.schemas.solution import Contract, Solution, SourceFile
from concur.schemas.task import Task
from concur.schemas.verdict import Finding
from concur.validators.cuda_text import tokens
from concur.validators.ended import finding
from concur.validators.screens_cuda import Hint, look_at_cuda
from concur.validators.screens_python import look_at_python

_ALLOWED = re.compile(
    r"-(?:O[0-3s]|O[0-3]|std=(?:c|gnu)\+\+(?:11|14|17|20)|lineinfo|G?g|W[a-z=-]*|w"
    r"|maxrregcount=\d{1,3}|-maxrregcount=\d{1,3}|-extended-lambda|-expt-extended-lambda"
    r"|-expt-relaxed-constexpr|-default-stream=legacy|-fmad=(?:true|false)|-resource-usage"
    r"|-restrict|-ptxas-options=(?:-v|-O[0-3])|D[A-Za-z_]\w*(?:=[\w.+-]*)?|U[A-Za-z_]\w*"
    r"|fopenmp|funroll-loops|fno-exceptions|ffp-contract=(?:off|on|fast)|m(?:avx2|fma|avx512f))"
)
_FAST = re.compile(
    r"-(?:-?use_fast_math|ffast-math|Ofast|-ftz=true|-prec-div=false|-prec-sqrt=false)"
)
_SOURCES = re.compile(r"\.(?:cu|cuh|c|cc|cpp|cxx|h|hh|hpp|hxx|inl|inc|ipp|tpp)$", re.IGNORECASE)
_MOST_HINTS = 40
_UNREADABLE = (SyntaxError, ValueError, MemoryError, RecursionError)


def screen(task: Task, solution: Solution) -> Iterator[Finding]:
    """Yield an error for all that excludes a solution from being compiled, then the hints."""
    yield from _excluding(task, solution)
    yield from hints(solution)


def _excluding(task: Task, solution: Solution) -> Iterator[Finding]:
    for flag in solution.compile_flags:
        if _FAST.fullmatch(flag) and not task.allowed_precision:
            yield finding(
                "screen.flag",
                f"flag {flag} trades accuracy, which this task does not allow",
                remedy="Remove it; use intrinsics where their error is known to be harmless.",
            )
        elif not _ALLOWED.fullmatch(flag) and not _FAST.fullmatch(flag):
            yield finding(
                "screen.flag",
                f"flag {flag} is not on the allow-list",
                remedy="Remove it. Search paths and libraries are never allowed.",
            )
    if solution.contract is Contract.MODEL_NEW:
        yield from _screen_module(solution)
    elif all(token.text != "launch" for token in tokens(solution.source)):
        yield finding(
            "screen.launcher",
            f"{solution.entry} does not mention launch",
            remedy='Define extern "C" int launch(...) with the signature of the task.',
        )


def _screen_module(solution: Solution) -> Iterator[Finding]:
    if solution.compile_flags:
        yield finding(
            "screen.flag",
            "compile_flags are for launchers; a module names its own flags",
            remedy="Give them to load_inline.",
        )
    try:
        tree = ast.parse(solution.source)
    except _UNREADABLE as error:
        yield finding("screen.launcher", f"{solution.entry} is not valid Python: {error}")
        return
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    if "ModelNew" not in names:
        yield finding("screen.launcher", f"{solution.entry} defines no class ModelNew")


def hints(solution: Solution) -> Iterator[Finding]:
    """Yield warnings and infos from all sources, with the lines that they are about.

    At most forty for a solution, warnings first. Prose, comments and other texts that are not code
    give none; nothing follows from there being none.
    """
    found = [(file.path, hint) for file in solution.files for hint in _look(file, solution)]
    found.sort(key=lambda each: (each[1].severity == "info", each[0], each[1].line))
    for path, hint in islice(dict.fromkeys(found), _MOST_HINTS):
        said = finding(hint.rule, hint.message, severity=hint.severity)
        yield said.model_copy(update={"path": path, "line": hint.line})


def _look(file: SourceFile, solution: Solution) -> Iterator[Hint]:
    try:
        if file.path.endswith(".py"):
            yield from look_at_python(file.content)
        elif _SOURCES.search(file.path) or file.path in _included(solution.files):
            yield from look_at_cuda(file.content)
    except _UNREADABLE as error:
        message = f"cannot be read without running it: {type(error).__name__}"
        yield Hint("screen.opaque", message, 0)


def _included(files: Iterable[SourceFile]) -> set[str]:
    """Return names that sources include, whatever they end in."""
    lines = (m for f in files for m in re.finditer(r'include\s*"([^"\n]+)"', f.content))
    return {match.group(1) for match in lines}
