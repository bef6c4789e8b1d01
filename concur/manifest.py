"""The manifest of a data set: what its files are, byte for byte, and what went into them.

`manifest.json` is written last, so that a folder whose files match it is whole.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from concur import jsonl
from concur.errors import IntegrityError
from concur.schemas.base import Record

NAME = "manifest.json"


class FileEntry(Record):
    """One Parquet file."""

    path: str
    """Relative to the manifest, with slashes."""
    config: str
    """Config that it belongs to."""
    split: str
    """Split that it belongs to."""
    rows: int
    """Rows in it."""
    bytes: int
    """Size of the file."""
    sha256: str
    """Of the file, in hexadecimal."""


class Tally(Record):
    """How many were read, and what became of them."""

    read: int
    """All of them: the sum of the others."""
    accepted: int
    """Fit for use."""
    rejected: int
    """Decided against."""
    undecided: int
    """Not decided yet, such as for want of a GPU."""


class Manifest(Record):
    """What `manifest.json` holds."""

    format: int
    """Layout of this file."""
    version: str
    """Content version x.y.z: x.y of the library, z from the hashes of the files."""
    library: str
    """Version of concur that built it."""
    pyarrow: str
    """Version of pyarrow that wrote the files; another one may write other bytes."""
    rules_version: int
    """Version of the judge's rules."""
    split_salt: str
    """Salt of the splits."""
    token_encoding: str
    """Encoding of token counts."""
    tokenizer: str
    """Library and version that counted."""
    accounting: dict[str, Tally]
    """By kind: task, solution, trajectory."""
    files: tuple[FileEntry, ...]
    """Every Parquet file, sorted by path."""
    readme_sha256: str
    """Of README.md, in hexadecimal."""

    def of(self, config: str) -> tuple[FileEntry, ...]:
        """Return the files of one config."""
        return tuple(f for f in self.files if f.config == config)

    def rows(self, config: str) -> dict[str, int]:
        """Return the rows of one config by split."""
        counts: dict[str, int] = {}
        for file in self.of(config):
            counts[file.split] = counts.get(file.split, 0) + file.rows
        return counts

    @property
    def configs(self) -> tuple[str, ...]:
        """Names of the configs, sorted."""
        return tuple(sorted({f.config for f in self.files}))


FORMAT = 1
"""Layout of the manifest; raised when older versions of concur could not read it."""


def content_version(library: str, entries: Iterable[FileEntry]) -> str:
    """Return the version of the content: `datasets` takes only three numbers, so z is a hash."""
    digest = hashlib.sha256()
    for entry in sorted(entries, key=lambda e: e.path):
        digest.update(f"{entry.path}\n{entry.sha256}\n".encode())
    major, minor = library.split(".")[:2]
    return f"{major}.{minor}.{int.from_bytes(digest.digest()[:4], 'big')}"


def write(folder: Path, manifest: Manifest) -> None:
    """Write a manifest into a folder, atomically."""
    jsonl.write_json(folder / NAME, manifest.to_plain())


def parse(data: bytes, source: str) -> Manifest:
    """Return the manifest that bytes hold. Raises IntegrityError naming the source."""
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        raise IntegrityError(
            f"{source} is not a manifest that this version of concur knows "
            f"({error.error_count()} problems); build or download the data set again"
        ) from error
    if manifest.format != FORMAT:
        raise IntegrityError(f"{source} has layout {manifest.format}; this version knows {FORMAT}")
    return manifest


def read(folder: Path) -> Manifest:
    """Read the manifest of a folder. Raises IntegrityError when there is none or it is broken."""
    path = folder / NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IntegrityError(
            f"{path} cannot be read ({error.strerror}); the build was cut short or this is no data "
            "set: run `concur build` again"
        ) from error
    return parse(data, str(path))


def verify(folder: Path, entries: Iterable[FileEntry]) -> None:
    """Compare files with their entries. Raises IntegrityError naming the first that differs."""
    for entry in entries:
        path = folder / entry.path
        if not path.is_file():
            raise IntegrityError(f"{path} is missing, but the manifest lists it; build again")
        if path.stat().st_size != entry.bytes or sha256_file(path) != entry.sha256:
            raise IntegrityError(
                f"{path} is not the file that the manifest describes (sha256 differs); build or "
                "download the data set again"
            )


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; reads it in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
