"""Files, functions and lists of parameters stay short enough to be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 40
MAX_PARAMETERS = 6
# `concur.load` takes keywords of `datasets.load_dataset` under their own names.
EXCUSED = {"concur/loading.py": {"load has 9 parameters"}}
NOT_CODE_OF_OURS = ("builders/corpus/", "builders/starter/")


def sources() -> Iterator[str]:
    for folder in ("concur", "schemas", "builders", "validators"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            linked = any(p.is_symlink() for p in path.parents if p.is_relative_to(ROOT / folder))
            if not linked and not name.startswith(NOT_CODE_OF_OURS):
                yield name


ALL = list(sources())
Function = ast.FunctionDef | ast.AsyncFunctionDef


def lines_of(text: str) -> int:
    return len(text.splitlines())


def functions(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function):
            yield node


def function_lines(node: Function) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def parameters(node: Function, text: str) -> int:
    """Number of parameters without self, cls, *args and **kwargs, and not of a click command."""
    if any("click." in (ast.get_source_segment(text, d) or "") for d in node.decorator_list):
        return 0
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def faults(text: str) -> list[str]:
    found = []
    for node in functions(text):
        if function_lines(node) > MAX_FUNCTION_LINES:
            found.append(f"{node.name} has {function_lines(node)} lines")
        if parameters(node, text) > MAX_PARAMETERS:
            found.append(f"{node.name} has {parameters(node, text)} parameters")
    return found


@pytest.mark.parametrize("name", ALL)
def test_file_is_short(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert lines_of(text) <= MAX_FILE_LINES, f"{name} has {lines_of(text)} lines: split it"
    assert set(faults(text)) <= EXCUSED.get(name, set()), name


def test_every_folder_is_seen() -> None:
    seen = {name.split("/")[0] for name in ALL}
    assert seen == {"concur", "schemas", "builders", "validators"}
    assert "concur/cli/main.py" in ALL
    assert len(ALL) == len(set(ALL)) > 60


def test_the_rule_itself() -> None:
    body = "\n".join(["    x = 1"] * MAX_FUNCTION_LINES)
    wide = ", ".join(f"p{i}" for i in range(MAX_PARAMETERS + 1))
    assert faults(f"def long():\n{body}\n") == ["long has 41 lines"]
    assert faults(f"def wide({wide}):\n    pass\n") == ["wide has 7 parameters"]
    assert faults(f"def keywords(*, {wide}):\n    pass\n") == ["keywords has 7 parameters"]
    assert faults("def fits(self, a, b, c, d, e, f, *args, **kwargs):\n    pass\n") == []
