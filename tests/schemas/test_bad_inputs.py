"""What a contributor gets for each kind of mistake: one short finding, at the right place.

Every case breaks one sample of a folder that holds a good one too, and must cost nothing else.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from concur.builders.folder import SampleRead, find_samples, read_samples

Break = Callable[[Path], object]
TASK = "task.json"
SOLUTION = "solutions/plain-loop/solution.json"
KERNEL = "solutions/plain-loop/kernel.cpp"


@dataclass(frozen=True)
class Case:
    """A mistake, and the finding that it must get."""

    name: str
    breaks: Break
    rule: str
    file: str
    """Path that the finding names, within the sample."""
    where: str = ""
    says: str = ""
    """Text that message or remedy must hold, such as the name of the field."""
    line: int = 0
    """Line that the finding names; 0: not looked at."""
    severity: str = "error"


def raw(file: str, data: bytes) -> Break:
    return lambda folder: (folder / file).write_bytes(data)


def swap(file: str, old: str, new: str) -> Break:
    """Replace text in a file; the text must be there."""

    def apply(folder: Path) -> None:
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text
        (folder / file).write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogatepass"))

    return apply


def edit(file: str, *path: str | int, value: Any) -> Break:
    """Set a value in a JSON file."""

    def apply(folder: Path) -> None:
        document = json.loads((folder / file).read_text(encoding="utf-8"))
        target = document
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value
        (folder / file).write_text(json.dumps(document, indent=2), encoding="utf-8")

    return apply


def drop(file: str, key: str) -> Break:
    def apply(folder: Path) -> None:
        document = json.loads((folder / file).read_text(encoding="utf-8"))
        del document[key]
        (folder / file).write_text(json.dumps(document, indent=2), encoding="utf-8")

    return apply


def remove(file: str) -> Break:
    return lambda folder: (folder / file).unlink()


def link(name: str) -> Break:
    """Put a link in the place of a file or folder."""

    def apply(folder: Path) -> None:
        (folder / name).rename(folder / "elsewhere")
        (folder / name).symlink_to(folder / "elsewhere")

    return apply


def both(*breaks: Break) -> Break:
    return lambda folder: [apply(folder) for apply in breaks]


TITLE = '"title": "Sum of two vectors"'
JSON_LEVEL = [
    Case("not JSON", raw(TASK, b'{"name": }'), "json.syntax", TASK, says="column", line=1),
    Case("empty file", raw(TASK, b" \n"), "json.empty", TASK),
    Case("a list", raw(TASK, b"[1, 2]"), "json.not-an-object", TASK, "$", says="a list"),
    Case("null", raw(TASK, b"null"), "json.not-an-object", TASK, "$", says="null"),
    Case("text after the end", swap(TASK, TITLE, TITLE + "}}"), "json.trailing-text", TASK, line=3),
    Case("comment", swap(TASK, TITLE, "// title"), "json.syntax", TASK, line=3),
    Case("duplicate key", swap(TASK, TITLE, f'{TITLE},\n"title": "b"'), "json.duplicate-key", TASK,
         "$.title", says="title", line=4),
    Case("duplicate key within", swap(TASK, '"N": 64', '"N": 64, "N": 65'), "json.duplicate-key",
         TASK, "$.workloads[0].twin.N"),
    Case("NaN", swap(TASK, '"Sum of two vectors"', "NaN"), "json.constant", TASK, "$.title"),
    Case("Infinity", swap(TASK, "4096", "-Infinity"), "json.constant", TASK,
         "$.workloads[0].axes.N"),
    Case("number overflow", swap(TASK, "4096", "1e999"), "json.number-overflow", TASK,
         "$.workloads[0].axes.N"),
    Case("integer beyond 64 bits", swap(TASK, "4096", "9" * 19), "json.integer-range", TASK,
         "$.workloads[0].axes.N"),
    Case("integer of 5,000 digits", swap(TASK, "4096", "9" * 5000), "json.integer-range", TASK,
         "$.workloads[0].axes.N"),
    Case("lone surrogate", swap(TASK, "Sum of", r"\ud800"), "json.surrogate", TASK, "$.title"),
    Case("lone surrogate in a key", swap(TASK, '"N": 4096', r'"\udc00": 1'), "json.surrogate", TASK,
         "$.workloads[0].axes", says="key"),
    Case("surrogate as bytes", swap(TASK, "Sum", "\ud800"), "json.encoding", TASK, line=3),
    Case("NUL escape", swap(TASK, "Sum", r"\u0000"), "json.nul", TASK, "$.title"),
    Case("Latin-1", raw(TASK, b'{\n"title": "\xe9"}'), "json.encoding", TASK, says="byte 12",
         line=2),
    Case("byte order mark", raw(TASK, b"\xef\xbb\xbf{}"), "json.byte-order-mark", TASK, line=1),
    Case("nesting bomb", raw(TASK, b"[" * 900_000), "json.depth", TASK, line=1),
    Case("nesting bomb of objects", raw(TASK, b'{"a":' * 150_000), "json.depth", TASK, line=1),
]  # fmt: skip
SCHEMA_LEVEL = [
    Case("unknown key", edit(TASK, "titel", value="x"), "schema.unknown-key", TASK, "$.titel",
         says="Did you mean 'title'?"),
    Case("unknown key within", edit(TASK, "arguments", 0, "dtyp", value="x"), "schema.unknown-key",
         TASK, "$.arguments[0].dtyp", says="'dtype'"),
    Case("missing key", drop(TASK, "family"), "schema.missing-key", TASK, "$", says="'family'"),
    Case("wrong type", edit(TASK, "title", value=3), "schema.type", TASK, "$.title", says="text",
         line=3),
    Case("text for a list", edit(TASK, "operations", value="add"), "schema.type", TASK,
         "$.operations", says="a list"),
    Case("null for text", edit(TASK, "title", value=None), "schema.type", TASK, "$.title"),
    Case("1.0 for an integer", edit(TASK, "workloads", 0, "axes", "N", value=8.0), "schema.type",
         TASK, "$.workloads[0].axes.N", says="an integer"),
    Case("true for an integer", edit(TASK, "workloads", 0, "axes", "N", value=True), "schema.type",
         TASK, "$.workloads[0].axes.N"),
    Case("bad choice", edit(TASK, "family", value="matmull"), "schema.choice", TASK, "$.family",
         says="attention"),
    Case("bad dtype", edit(TASK, "results", 0, "dtype", value="fp32"), "schema.choice", TASK,
         "$.results[0].dtype", says="float32"),
    Case("bad name", edit(TASK, "workloads", 0, "name", value="Wide Rows"), "schema.pattern", TASK,
         "$.workloads[0].name"),
    Case("newline at the end of a name", edit(TASK, "workloads", 0, "name", value="wide\n"),
         "schema.single-line", TASK, "$.workloads[0].name"),
    Case("newline in the title", edit(TASK, "title", value="a\r\nb"), "schema.single-line", TASK,
         "$.title"),
    Case("U+2028 in the title", edit(TASK, "title", value="a\u2028b"), "schema.single-line", TASK,
         "$.title"),
    Case("U+0085 in a licence", edit(TASK, "provenance", "license", value="MIT\u0085"),
         "schema.single-line", TASK, "$.provenance.license"),
    Case("full-width digits", edit(TASK, "min_compute_capability", value="７.０"), "schema.pattern",
         TASK, "$.min_compute_capability"),
    Case("odd axis name", edit(TASK, "workloads", 0, "axes", "N M", value=3), "schema.pattern",
         TASK, '$.workloads[0].axes["N M"]'),
    Case("axis name ending in a newline", edit(TASK, "workloads", 0, "axes", "N\n", value=3),
         "schema.pattern", TASK, '$.workloads[0].axes["N\\n"]'),
    Case("empty title", edit(TASK, "title", value=""), "schema.length", TASK, "$.title"),
    Case("title of 900 kB", edit(TASK, "title", value="x" * 900_000), "schema.length", TASK,
         "$.title", says="120"),
    Case("no arguments", edit(TASK, "arguments", value=[]), "schema.length", TASK, "$.arguments"),
    Case("choice of 900 kB", edit(TASK, "family", value="x" * 900_000), "schema.choice", TASK,
         "$.family"),
    Case("key of 900 kB", edit(TASK, "k" * 900_000, value=1), "schema.unknown-key", TASK),
    Case("name used twice", edit(TASK, "arguments", 1, "name", value="x"), "record.invalid", TASK,
         "$", says="'x' is declared twice"),
    Case("unknown axis in a shape", edit(TASK, "results", 0, "shape", value=["K"]),
         "record.invalid", TASK, "$", says="unknown axis 'K'"),
    Case("no boundary", edit(TASK, "workloads", 1, "role", value="typical"), "record.invalid", TASK,
         says="boundary"),
    Case("sampling settings of the wrong type", edit(SOLUTION, "origin", "sampling",
         value={"temperature": "hot"}), "schema.type", SOLUTION, "$.origin.sampling.temperature",
         says="a number"),
]  # fmt: skip
FOLDER_LEVEL = [
    Case("no task.json", remove(TASK), "task.header-missing", "", says=TASK),
    Case("folder has another name", lambda f: f.rename(f.with_name("bad-sum")),
         "folder.name-mismatch", "", says="'add-vectors'"),
    Case("no spec", both(*map(remove, ("description.md", "math.md", "reference.py"))),
         "task.no-spec", "", says="description.md"),
    Case("two programs", raw("reference.c", b"int x;"), "task.two-programs", "",
         says="reference.c"),
    Case("mathematics without oracle", remove("oracle.py"), "task.oracle-missing", "",
         says="oracle.py"),
    Case("no program and no oracle", both(*map(remove, ("reference.py", "math.md", "oracle.py"))),
         "task.oracle-missing", "", says="oracle.py"),
    Case("mathematics without symbols", edit(TASK, "symbols", value=[]), "task.symbols-missing",
         TASK, says="symbols"),
    Case("empty description", raw("description.md", b"\n \n"), "text.empty", "description.md"),
    Case("description in Latin-1", raw("description.md", b"a\n\xe9"), "text.encoding",
         "description.md", says="byte 2", line=2),
    Case("NUL in a kernel", raw(KERNEL, b"int\n x;\0"), "text.nul", KERNEL, line=2),
    Case("binary kernel", raw(KERNEL, b"\x7fELF\xff\xfe\0"), "text.encoding", KERNEL),
    Case("byte order mark in a kernel", raw(KERNEL, b"\xef\xbb\xbfint x;"), "text.byte-order-mark",
         KERNEL, line=1),
    Case("kernel of 2 MB", raw(KERNEL, b"x" * 2_000_000), "folder.file-too-large", KERNEL),
    Case("task.json of 50 MB", raw(TASK, b'{"title": "' + b"x" * 50_000_000 + b'"}'),
         "folder.file-too-large", TASK),
    Case("linked kernel", link(KERNEL), "folder.symlink", KERNEL),
    Case("linked task.json", link(TASK), "folder.symlink", TASK),
    Case("linked folder of solutions", link("solutions"),
         "folder.symlink", "solutions"),
    Case("pipe for a kernel", both(remove(KERNEL), lambda f: os.mkfifo(f / KERNEL)),
         "folder.not-a-file", KERNEL),
    Case("folder for a description", both(remove("description.md"),
         lambda f: (f / "description.md").mkdir()), "folder.not-a-file", "description.md"),
    Case("entry is missing", remove(KERNEL), "solution.entry-missing", SOLUTION,
         says="'kernel.cpp'"),
    Case("entry outside the folder", edit(SOLUTION, "entry", value="../../oracle.py"),
         "schema.pattern", SOLUTION, "$.entry"),
    Case("no solution.json", remove(SOLUTION), "solution.header-missing", "solutions/plain-loop"),
    Case("no reasoning", remove("solutions/plain-loop/reasoning.md"), "solution.reasoning-missing",
         "solutions/plain-loop", says="reasoning_kind"),
    Case("empty reasoning", raw("solutions/plain-loop/reasoning.md", b""), "text.empty",
         "solutions/plain-loop/reasoning.md"),
    Case("odd file name", raw("solutions/plain-loop/my file.h", b"x"), "solution.file-name",
         "solutions/plain-loop/my file.h"),
    Case("file name that is not text", lambda f: Path(
         os.fsdecode(os.fsencode(f / "solutions/plain-loop") + b"/\xff\n.h")).write_text("x"),
         "solution.file-name", "solutions/plain-loop/\\udcff\\n.h"),
    Case("40 source files", lambda f: [(f / f"solutions/plain-loop/h{i}.h").write_text("x")
         for i in range(40)], "solution.too-many-files", "solutions/plain-loop"),
    Case("odd solution name", lambda f: (f / "solutions/plain-loop").rename(
         f / "solutions/Fast One"), "folder.name", "solutions/Fast One"),
    Case("attempt is missing", edit("trajectories/first-try/trajectory.json", "steps", 1, "folder",
         value="a3"), "trajectory.step-folder", "trajectories/first-try/trajectory.json",
         says="'a3'"),
    Case("first attempt is a repair", edit("trajectories/first-try/trajectory.json", "steps", 0,
         "phase", value="repair"), "record.invalid", "trajectories/first-try/trajectory.json",
         says="implement"),
    Case("bad kernel in an attempt", raw("trajectories/first-try/a2-right/kernel.cpp", b"\0"),
         "text.nul", "trajectories/first-try/a2-right/kernel.cpp"),
    Case("stray file", raw("notes.txt", b"x"), "folder.stray-file", "notes.txt",
         severity="warning"),
    Case("hidden file", raw(".env", b"x"), "folder.hidden", ".env", severity="warning"),
    Case("stray attempt", both(lambda f: (f / "trajectories/first-try/a9").mkdir()),
         "folder.stray-file", "trajectories/first-try/a9", severity="warning"),
    Case("Windows line ends", raw(KERNEL, b"int x;\r\nint y;\r\n"), "text.carriage-return", KERNEL,
         line=1, severity="warning"),
    Case("broken verdict", raw("solutions/plain-loop/verdict.json", b"{"), "json.syntax",
         "solutions/plain-loop/verdict.json", severity="warning"),
    Case("broken admission", raw("admission-cpu.json", b'{"id": "a"}'), "schema.missing-key",
         "admission-cpu.json", "$", severity="warning"),
]  # fmt: skip
CASES = [*JSON_LEVEL, *SCHEMA_LEVEL, *FOLDER_LEVEL]


def read_all(folder: Path) -> list[SampleRead]:
    return [read for path in find_samples(folder) for read in read_samples(path)]


@pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])
def test_each_mistake_gets_its_finding(
    case: Case, tmp_path: Path, write_sample_folder: Any
) -> None:
    good = write_sample_folder("zero-faults", tmp_path)
    bad = write_sample_folder("add-vectors", tmp_path)
    case.breaks(bad)

    reads = {read.path: read for read in read_all(tmp_path)}

    spared = reads.pop(good)
    assert spared.findings == ()
    assert spared.sample is not None
    assert len(spared.sample.candidates) == 3
    [(folder, read)] = reads.items()
    found = [
        f
        for f in read.findings
        if (f.rule, f.severity) == (case.rule, case.severity)
        and f.path == (f"{folder}/{case.file}" if case.file else str(folder))
        and f.where in (case.where, f.where if not case.where else None)
        and case.says in f"{f.message} {f.remedy}"
        and (f.line == case.line or not case.line)
    ]
    assert len(found) == 1, read.findings
    assert len(read.findings) <= 3
    for finding in read.findings:
        assert 0 < len(finding.message) <= 240
        assert "\n" not in finding.message + finding.path
        assert not re.search(r"(.)\1{120}", f"{finding.message}{finding.where}{finding.remedy}")
        assert finding.remedy
        assert "Traceback" not in finding.message
        finding.model_dump_json()
    assert (case.severity == "warning") <= (read.sample is not None)


def test_the_table_is_large_and_covers_every_level() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 30
    assert min(map(len, (JSON_LEVEL, SCHEMA_LEVEL, FOLDER_LEVEL))) >= 10
