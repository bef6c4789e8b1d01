"""The base of every record: frozen, strict, documented by attribute docstrings, content-addressed.

A field is declared once, in a record class. JSON Schema, Arrow features and the card's column
table are derived from it (`concur.schemas.jsonschema`, `concur.schemas.arrow`).
"""

import json
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from concur.canonical import content_id

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*$", max_length=80)]
"""A folder-safe name: lower case, digits, single hyphens or underscores."""

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
"""A name that is valid in Python and in C."""

Text = Annotated[str, Field(max_length=1_000_000)]
"""Prose or source code, at most one million characters."""


class Record(BaseModel):
    """A frozen record that refuses unknown keys, wrong types, NaN and infinities."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @classmethod
    def from_plain(cls, value: Any) -> Self:
        """Build a record from plain JSON data. Raises pydantic.ValidationError."""
        return cls.model_validate_json(json.dumps(value))

    def to_plain(self) -> dict[str, Any]:
        """Return the record as plain JSON data (the inverse of `from_plain`)."""
        plain: dict[str, Any] = self.model_dump(mode="json")
        return plain


class Identified(Record):
    """A record with an id that is the hash of its content, minus a named exclusion list."""

    ID_PREFIX: ClassVar[str]
    ID_EXCLUDES: ClassVar[frozenset[str]] = frozenset()
    """Fields that may change without making this another record."""

    id: str = ""
    """Content id. May be left out; when given it must match the content."""

    @classmethod
    def compute_id(cls, plain: dict[str, Any]) -> str:
        """Return the content id of plain data of this record class."""
        kept = {k: v for k, v in plain.items() if k != "id" and k not in cls.ID_EXCLUDES}
        return content_id(cls.ID_PREFIX, kept)

    @model_validator(mode="after")
    def _bind_id(self, _info: ValidationInfo) -> Self:
        expected = self.compute_id(self.to_plain())
        if self.id not in ("", expected):
            raise PydanticCustomError(
                "id_mismatch",
                "id '{given}' does not match the content; leave it out or use {expected}",
                {"given": self.id[:40], "expected": expected},
            )
        object.__setattr__(self, "id", expected)
        return self
