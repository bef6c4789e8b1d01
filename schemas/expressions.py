"""Evaluate the small arithmetic of shapes and bounds: axis names, numbers, + - * // %, min, max."""

import ast
import math
import operator
from collections.abc import Callable, Mapping

from concur.errors import RecordError

Number = int | float

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(expression: str, axes: Mapping[str, Number]) -> Number:
    """Return the value of an expression for given axis values.

    Raises RecordError naming the expression when it is malformed or uses an unknown axis.
    """
    try:
        value = _value(ast.parse(expression.strip(), mode="eval").body, axes)
        if not math.isfinite(value):
            raise _Unsupported(f"{value} is not a number")
        return value
    except (SyntaxError, ArithmeticError, MemoryError, RecursionError, _Unsupported) as error:
        raise RecordError(
            f"expression {expression!r}: {error}; use axis names ({', '.join(axes) or 'none'}), "
            "numbers, + - * // %, min() and max()"
        ) from None


def evaluate_shape(shape: tuple[str, ...], axes: Mapping[str, Number]) -> tuple[int, ...]:
    """Return the integer sizes of a shape. Raises RecordError where one is no natural number."""
    sizes = []
    for expression in shape:
        size = evaluate(expression, axes)
        if not isinstance(size, int) or size < 0:
            raise RecordError(
                f"shape {expression!r} gives {size}; a size is an integer of 0 or more"
            )
        sizes.append(size)
    return tuple(sizes)


class _Unsupported(Exception):
    """A construct outside the small language."""


def _value(node: ast.expr, axes: Mapping[str, Number]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if name not in axes:
                raise _Unsupported(f"unknown axis {name!r}")
            return axes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, axes)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, axes), _value(right, axes))
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args, keywords=[]) if args:
            values = [_value(a, axes) for a in args]
            return min(values) if name == "min" else max(values)
    raise _Unsupported(f"{ast.unparse(node)!r} is not allowed")
