"""Reading the folder of one solution, and of one recorded series of attempts."""

import re
from pathlib import Path
from typing import Any

from concur.builders.sample_files import Reader
from concur.schemas.solution import Solution, SolutionHeader
from concur.schemas.strict import build_record
from concur.schemas.trajectory import AttemptLog, AttemptLogHeader, Step

HEADER = "solution.json"
REASONING = "reasoning.md"
VERDICT = "verdict.json"
LOG_HEADER = "trajectory.json"
MAX_SOURCES = 32
"""Source files that a solution may have; the schema says the same."""
_MAX_DEPTH = 6
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*\Z")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


def read_solution(reader: Reader, folder: Path, task_id: str) -> Solution | None:
    """Return the solution that a folder holds, or None when the reader has found an error.

    Every file that can be read is looked at first, so that one run tells all problems.
    """
    entries = reader.entries(folder)
    has_name = _has_name(reader, folder)
    header = _header(reader, folder, entries)
    reasoning = _reasoning(reader, folder, entries, header)
    kept_apart = {HEADER, REASONING, VERDICT}
    sources = _sources(reader, folder, {k: v for k, v in entries.items() if k not in kept_apart})
    if header is None or reader.failed or not has_name:
        return None
    if header.entry not in sources:
        present = ", ".join(list(sources)[:8]) or "no file at all"
        message = f"entry {header.entry!r} is not there; the folder has {present}"
        remedy = "Add the file or correct `entry`."
        reader.report("solution.entry-missing", message, folder / HEADER, remedy=remedy)
        return None
    plain = {
        **header.to_plain(),
        "name": folder.name,
        "task_id": task_id,
        "files": [{"path": path, "content": text} for path, text in sorted(sources.items())],
        "reasoning": reasoning,
    }
    solution, findings = build_record(Solution, plain, str(folder))
    reader.take(findings)
    return solution


def read_attempts(
    reader: Reader, folder: Path, task_id: str
) -> tuple[AttemptLog | None, dict[str, Path]]:
    """Return the attempts that a folder holds and the folder of each solution id.

    A series with a missing attempt would tell an untrue story, so one bad attempt drops the series.
    """
    entries = reader.entries(folder)
    has_name = _has_name(reader, folder)
    if LOG_HEADER not in entries:
        message = f"{LOG_HEADER} is missing"
        reader.report("trajectory.header-missing", message, folder, remedy="Add it.")
        return None, {}
    header = reader.read_record(AttemptLogHeader, entries.pop(LOG_HEADER))
    if header is None:
        return None, {}
    steps = _steps(reader, folder, header, set(entries))
    attempts: list[dict[str, Any]] = []
    folders: dict[str, Path] = {}
    for step in steps:
        solution = read_solution(reader, folder / step.folder, task_id)
        if solution is not None:
            attempts.append({"phase": step.phase, "solution": solution.to_plain()})
            folders.setdefault(solution.id, folder / step.folder)
    if reader.failed or not has_name:
        return None, {}
    plain = {"name": folder.name, "origin": header.origin.to_plain(), "attempts": attempts}
    log, findings = build_record(AttemptLog, plain, str(folder / LOG_HEADER))
    reader.take(findings)
    return log, folders if log else {}


def _steps(reader: Reader, folder: Path, header: AttemptLogHeader, names: set[str]) -> list[Step]:
    """Return the steps whose folders are there, each once; reports the rest and stray folders."""
    steps: dict[str, Step] = {}
    for index, step in enumerate(header.steps):
        if step.folder in steps:
            why = "is listed twice"
        elif step.folder not in names or not reader.is_folder(folder / step.folder):
            why = "is not there"
        else:
            steps[step.folder] = step
            continue
        message = f"steps[{index}]: folder {step.folder!r} {why}"
        remedy = "List each attempt's folder once, in order."
        reader.report("trajectory.step-folder", message, folder / LOG_HEADER, remedy=remedy)
    for name in sorted(names - {s.folder for s in header.steps}):
        reader.stray(folder / name, f"is not among the steps of {LOG_HEADER}")
    return list(steps.values())


def _has_name(reader: Reader, folder: Path) -> bool:
    if _NAME.match(folder.name) and len(folder.name) <= 80:
        return True
    message = f"folder name {folder.name[:80]!r} cannot be the name of a record"
    remedy = "Use lower-case letters, digits and single hyphens."
    reader.report("folder.name", message, folder, remedy=remedy)
    return False


def _header(reader: Reader, folder: Path, entries: dict[str, Path]) -> SolutionHeader | None:
    if HEADER in entries:
        return reader.read_record(SolutionHeader, entries[HEADER])
    reader.report("solution.header-missing", f"{HEADER} is missing", folder, remedy="Add it.")
    return None


def _reasoning(
    reader: Reader, folder: Path, entries: dict[str, Path], header: SolutionHeader | None
) -> str:
    if REASONING in entries:
        return reader.read_text(entries[REASONING]) or ""
    if header is not None and header.reasoning_kind != "none":
        message = f"{REASONING} is missing, but reasoning_kind is {header.reasoning_kind!r}"
        remedy = f"Add {REASONING}, or say reasoning_kind 'none'."
        reader.report("solution.reasoning-missing", message, folder, remedy=remedy)
    return ""


def _sources(reader: Reader, folder: Path, entries: dict[str, Path]) -> dict[str, str]:
    """Return the source texts among a solution's entries by relative path."""
    paths = _source_paths(reader, entries)
    if len(paths) > MAX_SOURCES:
        message = f"{len(paths)} source files; at most {MAX_SOURCES} are allowed"
        reader.report("solution.too-many-files", message, folder, remedy="Merge or remove some.")
        return {}
    texts = {relative: reader.read_text(path) for relative, path in sorted(paths.items())}
    return {relative: text for relative, text in texts.items() if text is not None}


def _source_paths(reader: Reader, entries: dict[str, Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    pending = list(entries.items())
    while pending:
        relative, path = pending.pop()
        if not _FILE_NAME.match(path.name):
            message = f"file name {path.name[:60]!r} holds characters that are not allowed"
            remedy = "Use letters, digits, dots, hyphens and underscores."
            reader.report("solution.file-name", message, path, remedy=remedy)
        elif path.is_symlink() or not reader.is_folder(path):
            found[relative] = path
        elif relative.count("/") + 1 >= _MAX_DEPTH:
            message = f"folders are nested deeper than {_MAX_DEPTH} levels"
            reader.report("solution.too-deep", message, path, remedy="Flatten them.")
        else:
            children = reader.entries(path)
            pending += [(f"{relative}/{name}", child) for name, child in children.items()]
    return found
