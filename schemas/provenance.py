"""Where a record comes from and under which terms it may be used."""

from typing import Annotated, Literal

from pydantic import Field

from concur.schemas.base import Name, Record

License = Annotated[str, Field(pattern=r"^[A-Za-z0-9.+() -]+$", max_length=120)]
"""An SPDX expression, or `unknown`."""


class Provenance(Record):
    """Source, pinned revision and licence of a task."""

    source: Name
    """Name of the source, such as `concur` for our own corpus."""
    revision: str = ""
    """Pinned revision of the source; empty for our own corpus, whose revision is the release."""
    url: str = ""
    """Where the source can be found."""
    license: License
    """SPDX expression at that revision, or `unknown`."""
    group: Name
    """Tasks of one group are relatives and share a split: the repository, or for our own corpus
    the operator family."""


class Sampling(Record):
    """Settings of the call to a model that wrote a text."""

    temperature: float | None = None
    """Sampling temperature."""
    top_p: float | None = None
    """Nucleus probability."""
    max_tokens: int | None = None
    """Cap on generated tokens."""
    seed: int | None = None
    """Seed that was sent."""


class Origin(Record):
    """How a text came to be: who wrote it, by which method, under which terms."""

    method: Literal["authored", "sample", "refine", "evolve", "manifest", "lift", "imported"]
    """authored: written for this data set. The others name a generation strategy or an importer."""
    writer: Literal["human", "model", "unknown"] = "unknown"
    """Who wrote it."""
    model: str = ""
    """Model id, when a model wrote it."""
    model_terms: str = ""
    """Terms of use of that model, when a model wrote it."""
    license: License
    """SPDX expression of this text, or `unknown`."""
    sampling: Sampling | None = None
    """Sampling settings, when they are known."""
    parents: tuple[str, ...] = ()
    """Ids of solutions that this one was derived from."""
    prompt_sha256: str = ""
    """SHA-256 of the prompt, when there was one."""
    generated_tokens: int | None = None
    """Tokens that the model produced for it, as billed."""
    cost_usd: float | None = None
    """Cost of that call in US dollars."""
    note: str = ""
    """Anything else a reader should know, such as that a fault was placed on purpose."""
