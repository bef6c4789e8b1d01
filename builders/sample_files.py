"""Safe reading of files that somebody else laid out: every problem is a finding, never an error.

Links are not followed, sizes are looked at before reading, and text must be UTF-8 without NUL.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

from concur.schemas.base import Record
from concur.schemas.problems import printable, problem
from concur.schemas.strict import load_record
from concur.schemas.verdict import Finding

FILE_LIMIT = 1_000_000
"""Largest file of a sample, in bytes."""
ENTRY_LIMIT = 500
"""Entries that one folder of a sample may hold."""
IGNORED = frozenset({"__pycache__"})
"""Folders that tools leave behind; ignored with a warning as hidden ones are."""

AnyRecord = TypeVar("AnyRecord", bound=Record)


@dataclass(frozen=True)
class TextFault:
    """What is wrong with a text."""

    rule: str
    message: str
    """Goes on from the name of the text: "is empty"."""
    remedy: str
    line: int = 0
    severity: Literal["error", "warning"] = "error"


def text_fault(text: str) -> TextFault | None:
    """Return what is wrong with a spec, a source or a reasoning as text, if anything is."""
    if not text.strip():
        return TextFault("text.empty", "is empty", "Write it or remove it.")
    if "\0" in text:
        remedy = "Remove it; binary files cannot be part of a sample."
        return TextFault("text.nul", "holds a NUL character", remedy, _line_of(text, "\0"))
    if text.startswith("\ufeff"):
        remedy = "Save it as UTF-8 without BOM."
        return TextFault("text.byte-order-mark", "begins with a byte order mark", remedy, 1)
    if "\r" in text:
        message = "holds carriage returns (Windows line ends), which are kept as they are"
        remedy = "Convert it to line feeds, for instance with `dos2unix`."
        line = _line_of(text, "\r")
        return TextFault("text.carriage-return", message, remedy, line, "warning")
    return None


@dataclass
class Reader:
    """Reads files and collects findings; `failed` tells whether one of them is an error."""

    findings: list[Finding] = field(default_factory=list)
    failed: bool = False

    def child(self) -> "Reader":
        """Return a reader for a part whose errors do not cost the rest (see `adopt`)."""
        return Reader()

    def adopt(self, part: "Reader") -> None:
        """Take over the findings of a part, but not its failure."""
        self.findings += part.findings

    def report(
        self,
        rule: str,
        message: str,
        path: Path,
        *,
        remedy: str,
        line: int = 0,
        severity: Literal["error", "warning"] = "error",
    ) -> None:
        """Add a finding about a file or folder."""
        found = problem(rule, message, str(path), remedy=remedy, line=line)
        self.take([found.model_copy(update={"severity": severity})])

    def take(self, findings: list[Finding]) -> None:
        """Add findings that were made elsewhere."""
        self.findings += findings
        self.failed = self.failed or any(f.severity == "error" for f in findings)

    def entries(self, folder: Path) -> dict[str, Path]:
        """Return a folder's visible entries by name, sorted; warns of hidden ones."""
        try:
            names = sorted(path.name for path in folder.iterdir())
        except OSError as error:
            self.report("folder.unreadable", _reason(error), folder, remedy="Make it readable.")
            return {}
        if len(names) > ENTRY_LIMIT:
            message = f"{len(names):,} entries; at most {ENTRY_LIMIT} are read"
            self.report(
                "folder.too-many-files", message, folder, remedy="Remove what is not needed."
            )
            return {}
        visible = {}
        for name in names:
            if name.startswith(".") or name in IGNORED:
                self.stray(folder / name, "is ignored", rule="folder.hidden")
            else:
                visible[name] = folder / name
        return visible

    def stray(self, path: Path, why: str, *, rule: str = "folder.stray-file") -> None:
        """Warn of a file or folder that has no place here."""
        self.report(rule, f"{path.name} {why}", path, remedy="Remove it.", severity="warning")

    def is_folder(self, path: Path) -> bool:
        """Tell whether a path is a folder, not a link to one; a link is reported."""
        try:
            mode = path.lstat().st_mode
        except OSError as error:
            self.report("folder.unreadable", _reason(error), path, remedy="Make it readable.")
            return False
        if stat.S_ISLNK(mode):
            self._refuse_link(path)
            return False
        return stat.S_ISDIR(mode)

    def open(self, path: Path) -> BinaryIO | None:
        """Return a regular file, open for reading, or None after reporting why not."""
        try:
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                # A link that takes its place after this look must not be followed either.
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                return os.fdopen(handle, "rb")
        except OSError as error:
            self.report("folder.unreadable", _reason(error), path, remedy="Make it readable.")
            return None
        if stat.S_ISLNK(mode):
            self._refuse_link(path)
        else:
            message = f"{path.name} is not a regular file"
            self.report("folder.not-a-file", message, path, remedy="Put a file there.")
        return None

    def read_bytes(self, path: Path, limit: int = FILE_LIMIT) -> bytes | None:
        """Return a regular file's bytes, or None after reporting why not."""
        stream = self.open(path)
        if stream is None:
            return None
        with stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            message = f"{path.name} is larger than {limit:,} bytes"
            self.report("folder.file-too-large", message, path, remedy="Shorten it.")
            return None
        return data

    def read_text(self, path: Path) -> str | None:
        """Return a file's text as it stands, or None after reporting why it is not text."""
        data = self.read_bytes(path)
        if data is None:
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            self.report(
                "text.encoding",
                f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8",
                path,
                line=data.count(b"\n", 0, error.start) + 1,
                remedy="Save the file as UTF-8; binary files cannot be part of a sample.",
            )
            return None
        return text if self._is_sound(text, path) else None

    def read_record(self, cls: type[AnyRecord], path: Path) -> AnyRecord | None:
        """Return the record that a JSON file holds, or None after reporting why not."""
        data = self.read_bytes(path)
        if data is None:
            return None
        record, findings = load_record(cls, data, str(path))
        self.take(findings)
        return record

    def _is_sound(self, text: str, path: Path) -> bool:
        fault = text_fault(text)
        if fault is None:
            return True
        self.report(
            fault.rule,
            f"{path.name} {fault.message}",
            path,
            line=fault.line,
            remedy=fault.remedy,
            severity=fault.severity,
        )
        return fault.severity == "warning"

    def _refuse_link(self, path: Path) -> None:
        message = f"{printable(path.name)} is a symbolic link"
        self.report("folder.symlink", message, path, remedy="Put the file itself there.")


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror or type(error).__name__}"


def _line_of(text: str, character: str) -> int:
    return text.count("\n", 0, text.index(character)) + 1
