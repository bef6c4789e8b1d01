"""Screens: facts of the contract that the source text alone shows. Nothing is run.

They reject what could never work or asks the compiler for something else than compiling. They do
not look for cheats: text is easily disguised, and the later gates look at what is computed.
"""

import ast
import re
from collections.abc import Iterator

from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Finding
from concur.validators.ended import finding

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


def screen(task: Task, solution: Solution) -> Iterator[Finding]:
    """Yield an error for everything that excludes a solution from being compiled."""
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
    elif not re.search(r"\blaunch\s*\(", solution.source):
        yield finding(
            "screen.launcher",
            f"{solution.entry} does not mention launch(",
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
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        yield finding("screen.launcher", f"{solution.entry} is not valid Python: {error}")
        return
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    if "ModelNew" not in names:
        yield finding("screen.launcher", f"{solution.entry} defines no class ModelNew")
