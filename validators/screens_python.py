"""Hints from a Python source: what its syntax tree shows once names are followed to their imports.

Sources of CUDA that it hands to a builder are put together and looked at as such, with lines of
the Python file. Hints explain and route; none decides, because text can always be disguised.
"""

import ast
from collections.abc import Iterator
from typing import Literal

from concur.validators.library_names import METHODS, UNMISTAKABLE, VENDOR_FLAG
from concur.validators.python_meanings import import_hint, meaning, method_hint, patch_hint
from concur.validators.python_names import BUILDERS, Names, called_name
from concur.validators.python_texts import Texts
from concur.validators.screens_cuda import Hint, look_at_cuda

Where = Literal["module", "constructor", "code"]

_SOURCES = ("cpp_sources", "cuda_sources", "sycl_sources")
_FLAGS = ("extra_ldflags", "extra_cflags", "extra_cuda_cflags")
# Weights are made here; the judge sets them afterwards.
_CONSTRUCTORS = ("__init__", "reset_parameters")
_LAZY = ("__torch_function__", "__torch_dispatch__")


def look_at_python(text: str) -> Iterator[Hint]:
    """Yield hints from a Python source that parses.

    Raises SyntaxError, ValueError, RecursionError or MemoryError for one that does not.
    """
    tree = ast.parse(text)
    reader = _Reader(tree)
    for node, where in _walk(tree):
        yield from reader.look(node, where)


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, Where]]:
    """Yield every node with where it is: functions within a constructor are code too."""
    waiting: list[tuple[ast.AST, Where]] = [(tree, "module")]
    while waiting:
        node, where = waiting.pop()
        yield node, where
        inner: Where = where
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = where == "module" and node.name in _CONSTRUCTORS
            inner = "constructor" if first else "code"
        elif isinstance(node, ast.Lambda):
            inner = "code"
        waiting += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]


class _Reader:
    """Looks at one node after the other, with what the names of the module stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self.names = Names(tree)
        self.texts = Texts(self.names)
        # Of `a.b.c` only the whole is looked at.
        self.inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        self.joined = any(
            isinstance(n, ast.Attribute) and n.attr in ("synchronize", "wait_stream", "wait_event")
            for n in ast.walk(tree)
        )

    def look(self, node: ast.AST, where: Where) -> Iterator[Hint]:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from import_hint(alias.name, node.lineno)
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    yield from import_hint(f"{module}.{alias.name}", node.lineno)
            case ast.Attribute() | ast.Name():
                yield from self._mention(node, where)
            case ast.Call():
                yield from self._call(node, where)
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                if where == "code":
                    message = "multiplies matrices by the operator @ of PyTorch"
                    yield Hint("screen.library-call", message, node.lineno)
            case ast.ExceptHandler():
                yield from self._caught(node, where)
            case ast.ClassDef(bases=bases):
                yield from self._bases(bases)
            case ast.FunctionDef(name=name) if name in _LAZY:
                message = f"defines {name}: a tensor that computes when it is looked at"
                yield Hint("screen.timing", message, node.lineno)
            case ast.Subscript():
                yield from meaning(self.names.path(node), node.lineno, where == "code", self.joined)
                yield from _pointers(node)
            case ast.Compare() | ast.Dict():
                yield from _pointers(node)

    def _mention(self, node: ast.Attribute | ast.Name, where: Where) -> Iterator[Hint]:
        path = self.names.path(node)
        if isinstance(node.ctx, ast.Store | ast.Del):
            if isinstance(node, ast.Attribute):
                yield from patch_hint(self.names.path(node.value), node.attr, node.lineno)
            return
        if id(node) in self.inner and isinstance(node, ast.Name):
            return
        yield from meaning(path, node.lineno, where == "code", self.joined)
        if isinstance(node, ast.Attribute):
            yield from method_hint(node.attr, node.lineno)

    def _call(self, node: ast.Call, where: Where) -> Iterator[Hint]:
        path = self.names.path(node.func)
        if path.removesuffix("_jit_compile") != path or path in BUILDERS:
            yield from self._build(node)
        if path in ("builtins.setattr", "builtins.delattr") and len(node.args) > 1:
            name = self.names.text(node.args[1]) or "an attribute"
            yield from patch_hint(self.names.path(node.args[0]), name, node.lineno)
        whole = self.names.path(node)
        if path in ("builtins.getattr", "importlib.import_module", "builtins.__import__"):
            if whole and not whole.startswith("builtins."):
                yield from import_hint(whole, node.lineno)
                yield from meaning(whole, node.lineno, where == "code", self.joined)
            elif path != "builtins.getattr" or self.names.path(node.args[0] if node.args else node):
                message = "names something that is only known when it runs"
                yield Hint("screen.opaque", message, node.lineno, "info")
        if where == "code" and self._is_tensor_method(node, path):
            message = f"calls {called_name(node)} of PyTorch"
            yield Hint("screen.library-call", message, node.lineno)
        kind = path.removesuffix(".forward").removesuffix(".__call__")
        if where == "code" and kind.startswith("torch.nn.") and kind.endswith("()"):
            message = f"calls a module {kind.removesuffix('()')}"
            yield Hint("screen.library-call", message, node.lineno)

    def _is_tensor_method(self, node: ast.Call, path: str) -> bool:
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
            return False
        if path:
            # What a call returned: a tensor, unless it is the extension itself.
            base = path.rpartition(".")[0]
            return base.startswith("torch.") and base.endswith("()") and base[:-2] not in BUILDERS
        root: ast.expr = node.func.value
        direct = isinstance(root, ast.Name)
        while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
            root = root.func if isinstance(root, ast.Call) else root.value
        if not isinstance(root, ast.Name):
            return not isinstance(root, ast.Constant)
        if root.id in ("self", "cls"):
            return not direct and node.func.attr in UNMISTAKABLE and self._is_weight(node.func)
        return root.id not in self.names.top

    def _is_weight(self, function: ast.Attribute) -> bool:
        """Whether `self.a.f` is a method of something that is not an extension."""
        base = function.value
        if not isinstance(base, ast.Attribute):
            return True
        held = self.names.values.get(f"self.{base.attr}", [])
        return any("Parameter" in self.names.path(value) for value in held)

    def _caught(self, node: ast.ExceptHandler, where: Where) -> Iterator[Hint]:
        last = node.body[-1]
        if isinstance(last, ast.Raise) or (where == "module" and not self._hides_build(node)):
            return
        message = "catches an error and goes on"
        yield Hint("screen.fallback", message, node.lineno)

    def _hides_build(self, node: ast.ExceptHandler) -> bool:
        """Whether a handler leaves a name empty where an extension was expected."""
        return any(
            isinstance(inner, ast.Assign)
            and isinstance(inner.value, ast.Constant)
            and inner.value.value is None
            for inner in ast.walk(node)
        )

    def _bases(self, bases: list[ast.expr]) -> Iterator[Hint]:
        for base in bases:
            path = self.names.path(base)
            if isinstance(base, ast.Name) and base.id == "Model" and "Model" not in self.names.top:
                yield Hint("screen.reference", "inherits the class Model", base.lineno)
            elif path.rpartition(".")[2] == "Model":
                yield Hint("screen.reference", f"inherits {path}", base.lineno)
            elif path in ("torch.Tensor", "torch.nn.Parameter"):
                message = "makes a tensor type of its own, which can compute late"
                yield Hint("screen.timing", message, base.lineno)

    def _build(self, node: ast.Call) -> Iterator[Hint]:
        """Yield hints from the sources and flags that a builder is given."""
        given = {k.arg: k.value for k in node.keywords if k.arg is not None}
        given |= dict(zip(("name", *_SOURCES), node.args, strict=False))
        for key in _SOURCES:
            if key not in given:
                continue
            chunks = self.texts.fold(given[key])
            if not any(text.strip() for text, _ in chunks) and not _is_empty(given[key]):
                message = f"{key} is not put together from constants"
                yield Hint("screen.opaque", message, node.lineno, "info")
            yield from _in_text(chunks)
        for key in _FLAGS:
            for text, line in self.texts.fold(given.get(key)):
                if VENDOR_FLAG.match(text):
                    message = f"links a vendor's library by {text[:40]}"
                    yield Hint("screen.library-call", message, line)


def _in_text(chunks: list[tuple[str, int]]) -> Iterator[Hint]:
    """Yield hints from a text of CUDA, with lines of the file that its pieces come from."""
    lines: list[int] = []
    fresh = True
    for text, line in chunks:
        if fresh:
            lines.append(line)
        elif not lines[-1]:
            lines[-1] = line
        fresh = text.endswith("\n")
    for hint in look_at_cuda("".join(text for text, _ in chunks)):
        line = lines[hint.line - 1] if hint.line <= len(lines) else 0
        yield hint._replace(line=line)


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.List) and not node.elts)


def _pointers(node: ast.Compare | ast.Subscript | ast.Dict) -> Iterator[Hint]:
    """Yield a hint where an address or version of a tensor is compared or looked up."""
    parts: list[ast.expr | None] = []
    match node:
        case ast.Compare(left=left, comparators=others):
            parts = [left, *others]
        case ast.Subscript(slice=key):
            parts = [key]
        case ast.Dict(keys=keys):
            parts = keys
    for part in parts:
        for inner in ast.walk(part) if part is not None else ():
            if isinstance(inner, ast.Attribute) and inner.attr in ("data_ptr", "_version"):
                message = f"looks something up by {inner.attr} of a tensor"
                yield Hint("screen.cache", message, inner.lineno, "info")
