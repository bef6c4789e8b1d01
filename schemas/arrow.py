"""Arrow features of a record class, and lossless conversion between records and rows.

Everything is explicit, so that nothing guesses a type from the first row: text `string`, integers
`int64`, floats `float64`, tuples `List`, nested records structs, maps `List` of `{name, value}`
sorted by name (a struct would give every row the keys of every other row).
"""

import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar, Union

import pyarrow as pa
from datasets import Features, List, Value

from concur.schemas.base import Record

AnyRecord = TypeVar("AnyRecord", bound=Record)

_SCALARS: dict[type, str] = {str: "string", bool: "bool", int: "int64", float: "float64"}


def features(cls: type[Record]) -> Features:
    """Return the features of a record class. Raises TypeError for a field Arrow cannot hold."""
    return Features(_struct(cls))


def arrow_schema(cls: type[Record]) -> pa.Schema:
    """Return the Arrow schema, with the `huggingface` metadata that restores the features."""
    return features(cls).arrow_schema


def to_row(record: Record) -> dict[str, Any]:
    """Return a record as the row that `features` describes."""
    row: dict[str, Any] = _encode(type(record), record.to_plain())
    return row


def from_row(cls: type[AnyRecord], row: Mapping[str, Any]) -> AnyRecord:
    """Return the record of a row: the inverse of `to_row`, for users of loaded rows.

    Raises pydantic.ValidationError.
    """
    return cls.from_plain(_decode(cls, dict(row)))


def column_table(cls: type[Record]) -> list[tuple[str, str, str]]:
    """Return name, type and description of every column, for people to read."""
    return [
        (name, _type_text(field.annotation), " ".join((field.description or "").split()))
        for name, field in cls.model_fields.items()
    ]


def _struct(cls: type[Record]) -> dict[str, Any]:
    return {name: _feature(field.annotation) for name, field in cls.model_fields.items()}


def _feature(annotation: Any) -> Any:
    kind, inner = _shape(annotation)
    if kind == "record":
        return _struct(inner)
    if kind == "list":
        return List(_feature(inner))
    if kind == "map":
        return List({"name": Value("string"), "value": _feature(inner)})
    return Value(_SCALARS[inner])


def _encode(annotation: Any, value: Any) -> Any:
    kind, inner = _shape(annotation)
    if value is None or kind == "scalar":
        return value
    if kind == "record":
        return {n: _encode(f.annotation, value[n]) for n, f in inner.model_fields.items()}
    if kind == "list":
        return [_encode(inner, item) for item in value]
    return [{"name": name, "value": _encode(inner, value[name])} for name in sorted(value)]


def _decode(annotation: Any, value: Any) -> Any:
    kind, inner = _shape(annotation)
    if value is None or kind == "scalar":
        return value
    if kind == "record":
        # A key that the class does not have stays, so that building the record refuses it.
        known = {n: f.annotation for n, f in inner.model_fields.items()}
        return {n: _decode(known[n], v) if n in known else v for n, v in value.items()}
    if kind == "list":
        return [_decode(inner, item) for item in value]
    return {item["name"]: _decode(inner, item["value"]) for item in value}


def _shape(annotation: Any) -> tuple[Literal["scalar", "record", "list", "map"], Any]:
    """Return how an annotation is stored, and the class or annotation inside."""
    annotation = _bare(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return "record", annotation
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return "scalar", str
    if annotation in _SCALARS:
        return "scalar", annotation
    if origin is Literal and all(isinstance(choice, str) for choice in arguments):
        return "scalar", str
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return "list", arguments[0]
    if origin is dict and _bare(arguments[0]) is str:
        return "map", arguments[1]
    raise TypeError(f"no Arrow type for {annotation}; use text, numbers, tuples, maps or records")


def _bare(annotation: Any) -> Any:
    """Return an annotation without constraints and without `| None`: every column may be null."""
    if typing.get_origin(annotation) is Annotated:
        return _bare(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (Union, types.UnionType):
        kept = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(kept) == 1:
            return _bare(kept[0])
    return annotation


def _type_text(annotation: Any) -> str:
    kind, inner = _shape(annotation)
    if kind == "record":
        return "{" + ", ".join(inner.model_fields) + "}"
    if kind == "list":
        return f"list of {_type_text(inner)}"
    if kind == "map":
        return f"list of {{name, value: {_type_text(inner)}}}"
    return _SCALARS[inner]
