"""Samples as folders and as JSON files: finding them, reading them, writing verdicts beside them.

Reading never raises for bad data: every problem is a finding, a bad solution is left out without
costing the others, and a bad sample without costing the next.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concur import jsonl
from concur.builders.sample_files import AnyRecord, Reader
from concur.builders.sample_json import lines, read_document
from concur.builders.solution_folder import VERDICT, read_attempts, read_solution
from concur.schemas.problems import problem
from concur.schemas.sample import Sample
from concur.schemas.solution import Solution
from concur.schemas.strict import LIMIT as JSON_LIMIT
from concur.schemas.strict import build_record
from concur.schemas.task import Task, TaskHeader
from concur.schemas.trajectory import AttemptLog
from concur.schemas.verdict import Admission, Finding, Verdict

CORPUS = Path(__file__).parent / "corpus"
"""Our own samples."""

TASK = "task.json"
_TEXTS = {"description.md": "description", "math.md": "mathematics", "oracle.py": "oracle"}
_PROGRAMS = {"reference.py": "pytorch", "reference.c": "c"}
_ADMISSIONS = {"admission-cpu.json": "cpu", "admission-cuda.json": "cuda"}
_FOLDERS = ("solutions", "trajectories")
_KNOWN = {TASK, *_TEXTS, *_PROGRAMS, *_ADMISSIONS, *_FOLDERS}


@dataclass(frozen=True)
class Recorded:
    """What earlier runs of the judge left in a sample's folder, kept apart from the sample."""

    admissions: dict[str, Admission] = field(default_factory=dict)
    """By device kind, cpu or cuda."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """By the id of the solution that they stand beside; may be stale."""
    folders: dict[str, Path] = field(default_factory=dict)
    """Folder of each solution or attempt, by its id."""


@dataclass(frozen=True)
class SampleRead:
    """What reading one sample gave."""

    path: Path
    """Its folder or file."""
    sample: Sample | None
    """None when the task itself cannot be used; a bad solution is only left out."""
    findings: tuple[Finding, ...]
    """Every problem."""
    recorded: Recorded = field(default_factory=Recorded)
    """Files of the judge."""
    line: int = 0
    """Line in a .jsonl file; 0 otherwise."""


def find_samples(path: Path) -> Iterator[Path]:
    """Yield every sample at a path, sorted: itself, or the folders and JSON files in it.

    A path that is not there is yielded too, so that reading it reports it.
    """
    if not path.is_dir() or path.is_symlink() or _looks_like_sample(path):
        yield path
        return
    try:
        inside = sorted(path.iterdir())
    except OSError:
        yield path
        return
    for entry in inside:
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir() or entry.suffix in (".json", ".jsonl"):
            yield entry


def read_sample(path: Path) -> SampleRead:
    """Read the one sample at a path: a folder, a .json file, or a .jsonl file with one line."""
    reads = list(itertools.islice(read_samples(path), 2))
    if len(reads) == 1:
        return reads[0]
    return _failed(path, "sample.several", "holds several samples", "Use `read_samples`.")


def read_samples(path: Path) -> Iterator[SampleRead]:
    """Read every sample at one path that `find_samples` gave: several only from a .jsonl file."""
    if not os.path.lexists(path):
        yield _failed(path, "folder.not-found", "is not there", "Check the path.")
    elif path.suffix == ".jsonl" and not path.is_dir():
        yield from _read_lines(path)
    elif path.suffix == ".json" and not path.is_dir():
        reader = Reader()
        data = reader.read_bytes(path, JSON_LIMIT)
        sample = read_document(reader, data, path) if data is not None else None
        yield SampleRead(path, sample, tuple(reader.findings))
    else:
        reader = Reader()
        if reader.is_folder(path):
            yield _read_folder(reader, path)
        elif reader.findings:
            yield SampleRead(path, None, tuple(reader.findings))
        else:
            remedy = "Give a sample folder, a .json or a .jsonl file."
            yield _failed(path, "folder.not-a-sample", "is no sample", remedy)


def _failed(path: Path, rule: str, message: str, remedy: str) -> SampleRead:
    found = problem(rule, f"{path.name} {message}", str(path), remedy=remedy)
    return SampleRead(path, None, (found,))


def _read_lines(path: Path) -> Iterator[SampleRead]:
    reader = Reader()
    stream = reader.open(path)
    if stream is None:
        yield SampleRead(path, None, tuple(reader.findings))
        return
    number = 0
    with stream:
        for number, line in lines(stream):
            reader = Reader()
            sample = read_document(reader, line, path, number)
            yield SampleRead(path, sample, tuple(reader.findings), line=number)
    if number == 0:
        yield _failed(path, "json.empty", "holds no line", "Write one sample a line.")


def write_verdict(folder: Path, verdict: Verdict) -> Path:
    """Write a verdict beside a solution, atomically. Returns the file."""
    return _write(folder / VERDICT, verdict.to_plain())


def write_admission(task_folder: Path, admission: Admission) -> Path:
    """Write an admission into a task's folder, atomically. Returns the file."""
    name = f"admission-{admission.environment.device_kind}.json"
    return _write(task_folder / name, admission.to_plain())


def _write(path: Path, plain: dict[str, Any]) -> Path:
    jsonl.write_json(path, plain)
    return path


def _looks_like_sample(path: Path) -> bool:
    return any(os.path.lexists(path / name) for name in _KNOWN)


def _read_folder(reader: Reader, folder: Path) -> SampleRead:
    entries = reader.entries(folder)
    task = _task(reader, folder, entries)
    task_id = task.id if task else ""
    recorded = Recorded()
    solutions: list[Solution] = []
    logs: list[AttemptLog] = []
    for path in _subfolders(reader, entries, "solutions"):
        part = reader.child()
        solution = read_solution(part, path, task_id)
        if solution is not None and _is_new(part, path, recorded.folders.get(solution.id)):
            solutions.append(solution)
            recorded.folders[solution.id] = path
        reader.adopt(part)
    for path in _subfolders(reader, entries, "trajectories"):
        part = reader.child()
        log, folders = read_attempts(part, path, task_id)
        reader.adopt(part)
        if log is not None:
            logs.append(log)
            for solution_id, attempt in folders.items():
                recorded.folders.setdefault(solution_id, attempt)
    _record(reader, entries, recorded)
    sample = None
    if task is not None and not reader.failed:
        sample = Sample(task=task, solutions=tuple(solutions), trajectories=tuple(logs))
    return SampleRead(folder, sample, tuple(reader.findings), recorded)


def _is_new(part: Reader, path: Path, first: Path | None) -> bool:
    """Report a solution that is the same as an earlier one, but for reasoning and origin."""
    if first is not None:
        message = f"solutions {first.name!r} and {path.name!r} have the same sources"
        part.report("sample.repeated-solution", message, path, remedy="Keep one of them.")
    return first is None


def _task(reader: Reader, folder: Path, entries: dict[str, Path]) -> Task | None:
    for name in entries:
        if name not in _KNOWN:
            reader.stray(entries[name], "is no part of a sample")
    texts = {f: reader.read_text(entries[n]) for n, f in _TEXTS.items() if n in entries}
    programs = [name for name in _PROGRAMS if name in entries]
    for name in programs:
        source = reader.read_text(entries[name])
        texts["program"] = {"language": _PROGRAMS[name], "source": source}  # type: ignore[assignment]
    if TASK not in entries:
        reader.report("task.header-missing", f"{TASK} is missing", folder, remedy="Add it.")
        return None
    header = reader.read_record(TaskHeader, entries[TASK])
    if header is None or not _fits(reader, folder, header, entries) or reader.failed:
        return None
    task, findings = build_record(Task, {**header.to_plain(), **texts}, str(entries[TASK]))
    reader.take(findings)
    return task


def _fits(reader: Reader, folder: Path, header: TaskHeader, entries: dict[str, Path]) -> bool:
    """Report where header, folder name and the texts that are there do not go together."""
    name = folder.resolve().name
    if name != header.name:
        message = f"folder {name[:80]!r} holds the task {header.name!r}"
        reader.report("folder.name-mismatch", message, folder, remedy="Rename one to the other.")
    has = entries.keys()
    if not has & (_PROGRAMS.keys() | {"description.md", "math.md"}):
        remedy = "Add description.md, reference.py, reference.c or math.md."
        reader.report("task.no-spec", "no file states the task", folder, remedy=remedy)
    if has >= _PROGRAMS.keys():
        remedy = "Keep one of them."
        reader.report(
            "task.two-programs",
            "reference.py and reference.c are both there",
            folder,
            remedy=remedy,
        )
    if "oracle.py" not in has and ("math.md" in has or "reference.py" not in has):
        why = "math.md is there" if "math.md" in has else "reference.py is not"
        reader.report(
            "task.oracle-missing",
            f"oracle.py is missing: it is needed where {why}",
            folder,
            remedy="Add it.",
        )
    if "math.md" in has and not header.symbols:
        message = "symbols: empty, but math.md is there"
        remedy = "Declare what each symbol stands for."
        reader.report("task.symbols-missing", message, folder / TASK, remedy=remedy)
    return not reader.failed


def _subfolders(reader: Reader, entries: dict[str, Path], kind: str) -> list[Path]:
    if kind not in entries or not reader.is_folder(entries[kind]):
        return []
    part = reader.child()
    paths = []
    for path in part.entries(entries[kind]).values():
        if part.is_folder(path):
            paths.append(path)
        elif not path.is_symlink():
            part.stray(path, f"is no folder of {kind}")
    reader.adopt(part)
    return paths


def _record(reader: Reader, entries: dict[str, Path], recorded: Recorded) -> None:
    for name, kind in _ADMISSIONS.items():
        if name in entries:
            admission = _judged(reader, Admission, entries[name])
            if admission is not None:
                recorded.admissions[kind] = admission
    for solution_id, folder in recorded.folders.items():
        if os.path.lexists(folder / VERDICT):
            verdict = _judged(reader, Verdict, folder / VERDICT)
            if verdict is not None:
                recorded.verdicts[solution_id] = verdict


def _judged(reader: Reader, cls: type[AnyRecord], path: Path) -> AnyRecord | None:
    """Read a file of the judge; a broken one is worth a warning and counts as absent."""
    part = reader.child()
    record = part.read_record(cls, path)
    reader.findings += [f.model_copy(update={"severity": "warning"}) for f in part.findings]
    return record
