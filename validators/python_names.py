"""What names in a Python source stand for, as far as its syntax tree shows. Nothing is run.

Names are told apart by their text alone, whatever function they are in, so that a name may stand
for several things; the first that is known counts.
"""

import ast
import builtins
from collections.abc import Iterator

BUILDERS = ("torch.utils.cpp_extension.load_inline", "torch.utils.cpp_extension.load")
"""Functions that return an extension; what it holds is compiled from the solution's sources."""

_DEPTH = 60
_IMPORTERS = ("importlib.import_module", "builtins.__import__", "importlib.__import__")
_STARS = ("torch", "torch.nn.functional")


class Names:
    """Imports, assignments, functions and calls of one module."""

    def __init__(self, tree: ast.Module) -> None:
        """Read a syntax tree once; `path` and `text` answer from what was found."""
        self.imports: dict[str, str] = {}
        self.stars: list[str] = []
        self.values: dict[str, list[ast.expr]] = {}
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self.classes: set[str] = set()
        self.top = {n for s in tree.body for n in _bound(s)}
        self._paths: dict[int, str] = {}
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._read(node)
        for node in nodes:
            if isinstance(node, ast.Call):
                self._bind(node)

    def path(self, node: ast.expr, depth: int = 0) -> str:
        """Return the dotted name that an expression stands for, or nothing where it is not known.

        `torch.nn.Linear()` stands for what a call of `torch.nn.Linear` returns.
        """
        known = self._paths.get(id(node))
        if known is not None or depth > _DEPTH:
            return known or ""
        self._paths[id(node)] = ""  # What stands for itself stands for nothing.
        self._paths[id(node)] = found = self._path(node, depth + 1)[:300]
        return found

    def text(self, node: ast.expr | None, depth: int = 0) -> str:
        """Return a short constant text that an expression always has, or nothing."""
        match node:
            case ast.Constant(value=str(value)):
                return value[:1000]
            case ast.BinOp(left=left, op=ast.Add(), right=right) if depth < _DEPTH:
                return (self.text(left, depth + 1) + self.text(right, depth + 1))[:1000]
            case ast.Name(id=name) if depth < _DEPTH:
                values = self.values.get(name, [])
                return self.text(values[0], depth + 1) if len(values) == 1 else ""
            case ast.JoinedStr(values=parts) if depth < _DEPTH:
                return "".join(self.text(part, depth + 1) for part in parts)[:1000]
            case ast.FormattedValue(value=value):
                return self.text(value, depth + 1)
            case ast.Call(func=ast.Attribute(value=between, attr="join"), args=[ast.List(elts=e)]):
                return self.text(between, depth + 1).join(self.text(x, depth + 1) for x in e)[:1000]
        return ""

    def _path(self, node: ast.expr, depth: int) -> str:
        match node:
            case ast.Name(id=name):
                return self._name(name, depth)
            case ast.Attribute(value=value, attr=attribute):
                base = self.path(value, depth)
                if base:
                    return f"{base}.{attribute}"
                own = isinstance(value, ast.Name) and value.id in ("self", "cls")
                return self._first(self.values.get(f"self.{attribute}", []), depth) if own else ""
            case ast.Call():
                return self._call(node, depth)
            case ast.Subscript(value=value, slice=key):
                base, name = self.path(value, depth), self.text(key)
                if name and base == "sys.modules":
                    return name
                holder = base.removesuffix(".__dict__")
                return f"{holder}.{name}" if name and holder != base else ""
            case ast.IfExp(body=one, orelse=other):
                return self.path(one, depth) or self.path(other, depth)
            case ast.BoolOp(values=values):
                return self._first(values, depth)
            case ast.NamedExpr(value=value) | ast.Starred(value=value) | ast.Await(value=value):
                return self.path(value, depth)
        return ""

    def _name(self, name: str, depth: int) -> str:
        if name in self.imports:
            return self.imports[name]
        if name in self.values:
            return self._first(self.values[name], depth)
        if name in self.functions or name in self.classes:
            return ""
        if hasattr(builtins, name):
            return f"builtins.{name}"
        return next((f"{module}.{name}" for module in self.stars if module in _STARS), "")

    def _call(self, node: ast.Call, depth: int) -> str:
        function = self.path(node.func, depth)
        first = node.args[0] if node.args else None
        if function == "builtins.getattr" and len(node.args) > 1 and first is not None:
            base, name = self.path(first, depth), self.text(node.args[1])
            return f"{base}.{name}" if base and name else ""
        if function in _IMPORTERS:
            return self.text(first)
        if function == "builtins.vars" and first is not None:
            return f"{self.path(first, depth)}.__dict__"
        if function == "functools.partial" and first is not None:
            return self.path(first, depth)
        if function:
            return f"{function}()"
        functions = self.functions.get(called_name(node), [])
        return self._first([r for f in functions[:3] for r in _returned(f)], depth)

    def _first(self, nodes: list[ast.expr], depth: int) -> str:
        return next((p for p in (self.path(node, depth) for node in nodes[:50]) if p), "")

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    short = alias.asname or alias.name.partition(".")[0]
                    self.imports[short] = alias.name if alias.asname else short
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    path = f"{module}.{alias.name}" if module else alias.name
                    self.imports[alias.asname or alias.name] = path
                    if alias.name == "*":
                        self.stars.append(module or "")
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.AugAssign(target=target, op=ast.Add(), value=value):
                self._assign(target, value)
            case ast.NamedExpr(target=target, value=value):
                self._assign(target, value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._assign(target, value)
            case ast.FunctionDef(name=name):
                self.functions.setdefault(name, []).append(node)
                self._read_defaults(node.args)
            case ast.ClassDef(name=name, body=body):
                self.classes.add(name)
                self._read_class(body)

    def _read_defaults(self, arguments: ast.arguments) -> None:
        both = arguments.posonlyargs + arguments.args
        pairs: list[tuple[ast.arg, ast.expr | None]] = []
        pairs += zip(reversed(both), reversed(arguments.defaults), strict=False)
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        for argument, default in pairs:
            if default is not None:
                self.values.setdefault(argument.arg, []).append(default)

    def _read_class(self, body: list[ast.stmt]) -> None:
        """Let what is assigned in a class be found by way of `self` too."""
        for statement in body:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self.values.setdefault(f"self.{target.id}", []).append(statement.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), _:
                self.values.setdefault(name, []).append(value)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name), _:
                self.values.setdefault(f"self.{name}", []).append(value)
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                for one, other in zip(targets, values, strict=True):
                    self._assign(one, other)

    def _bind(self, call: ast.Call) -> None:
        """Let parameters of the module's own functions stand for what they are called with."""
        for function in self.functions.get(called_name(call), [])[:3]:
            arguments = function.args.posonlyargs + function.args.args
            if arguments and arguments[0].arg in ("self", "cls"):
                arguments = arguments[1:]
            pairs = [(a.arg, v) for a, v in zip(arguments, call.args, strict=False)]
            pairs += [(k.arg, k.value) for k in call.keywords if k.arg is not None]
            for parameter, value in pairs:
                self.values.setdefault(parameter, []).append(value)


def called_name(call: ast.Call) -> str:
    """Return the last part of what is called, such as `f` of `self.f(x)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds, also within `if`, `try` and `with`."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
