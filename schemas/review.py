"""Reviews: a person's or a model's judgement of a record."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from concur.schemas.base import Identified


class Review(Identified):
    """One judgement of one record."""

    ID_PREFIX: ClassVar[str] = "review"

    record_id: str
    """Id of the record that was reviewed."""
    reviewer_kind: Literal["human", "model"]
    """Who reviewed."""
    reviewer: str
    """Name or model id."""
    decision: Literal["accept", "reject", "unsure"]
    """What they decided."""
    reason: Annotated[str, Field(min_length=1, max_length=4000)]
    """Why."""
    reviewed_on: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """Date, YYYY-MM-DD."""
