"""Judge samples on this machine's GPU and record the verdicts beside the solutions.

What is fresh is skipped, so that an interrupted run continues where it stopped. Freshness is by
hash only: a file that somebody else wrote is as fresh as one of ours. `everything` is therefore for
contributions: it overwrites what came with them.
"""

import difflib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from concur.builders.decisions import admission_fault, verdict_fault
from concur.builders.folder import SampleRead, find_samples, read_sample
from concur.errors import JudgeError, MissingDependency, RecordError
from concur.rejudge_workers import Rejudged, Work, run
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Admission, Outcome, Verdict
from concur.validators.environment import Device, cuda_available
from concur.validators.isolation import private_folder
from concur.validators.options import JudgeOptions

__all__ = ["RejudgeOptions", "Rejudged", "is_fresh", "rejudge"]

_DEVICES: tuple[Device, ...] = ("cpu", "cuda")


@dataclass(frozen=True)
class RejudgeOptions:
    """What to judge again, and how."""

    everything: bool = False
    """Judge what is fresh too."""
    workers: int = 0
    """Tasks that are judged at once; 0 chooses by the number of cores."""
    only: tuple[str, ...] = ()
    """Names of tasks; all of them when empty."""
    judge: JudgeOptions = field(default_factory=JudgeOptions)
    """Options of the judge; lock and build cache are set here when they are not given."""


def is_fresh(verdict: Verdict | None, solution: Solution) -> bool:
    """Return whether a recorded verdict still says something about this solution."""
    return (
        verdict is not None
        and not verdict_fault(verdict, solution)
        and verdict.outcome is not Outcome.UNDECIDED
    )


def rejudge(paths: Iterable[Path], options: RejudgeOptions) -> Iterator[Rejudged]:
    """Judge what is stale at the paths and write verdict.json and the admissions there.

    A task is admitted on the GPU at full size and on the CPU with its small twins, so that a build
    without PyTorch finds both recorded.

    Returns an iterator that gives a line for each as soon as it is known; what a worker's crash
    costs is undecided there. Raises RecordError, at once, where a name in `only` is at none of the
    paths, JudgeError without a GPU, and MissingDependency without PyTorch.
    """
    found = [path for given in paths for path in find_samples(given)]
    _refuse_unknown(options.only, {_name(path) for path in found})
    if not cuda_available():
        raise JudgeError(
            "verdicts are recorded on a GPU only, and no usable one was found (nvidia-smi lists "
            "none, nvcc is not on PATH, or PyTorch is missing); `concur validate` judges C++ "
            "on a CPU"
        )
    return _rejudge(found, _complete(options))


def _rejudge(found: list[Path], options: RejudgeOptions) -> Iterator[Rejudged]:
    work, broken = _plan(found, options)
    yield from broken
    yield from run(work, options.judge, options.workers)


def _name(path: Path) -> str:
    return path.resolve().name


def _refuse_unknown(only: tuple[str, ...], names: set[str]) -> None:
    for name in only:
        if name not in names:
            close = difflib.get_close_matches(name, sorted(names))
            meant = f"; did you mean {', '.join(close)}?" if close else ""
            raise RecordError(f"no sample is called {name!r} at these paths{meant}")


def _complete(options: RejudgeOptions) -> RejudgeOptions:
    try:
        import torch  # noqa: F401 (workers need it; better to say so once, now)
    except ImportError:
        raise MissingDependency(
            'judging needs PyTorch: pip install "concur-kernels[judge]"'
        ) from None
    judge = replace(options.judge, device="cuda", build_cache=options.judge.cache)
    private_folder(judge.cache)
    if judge.lock is None:
        judge = replace(judge, lock=Path(tempfile.gettempdir()) / "concur-gpu.lock")
    workers = options.workers or max(1, min(8, (os.cpu_count() or 2) // 2))
    return replace(options, judge=judge, workers=workers)


def _plan(found: list[Path], options: RejudgeOptions) -> tuple[list[Work], list[Rejudged]]:
    """Return what is to be done, tasks without slow builds first, and what cannot be read."""
    work: list[Work] = []
    broken: list[Rejudged] = []
    for path in found:
        if options.only and _name(path) not in options.only:
            continue
        read = read_sample(path)
        broken += _unreadable(read)
        if read.sample is not None and path.is_dir():
            one = _work(read, options.everything)
            if one.solutions or one.admit:
                work.append(one)
    return sorted(work, key=lambda w: (w.modules > 0, -len(w.solutions))), broken


def _work(read: SampleRead, everything: bool) -> Work:
    assert read.sample is not None
    task, recorded = read.sample.task, read.recorded
    due = [
        s
        for s in read.sample.candidates
        if s.contract is not Contract.CPP_FUNCTION
        and (everything or not is_fresh(recorded.verdicts.get(s.id), s))
    ]
    due.sort(key=lambda s: s.contract is Contract.MODEL_NEW)
    admit = tuple(
        device
        for device in _DEVICES
        if everything or not _admission_is_fresh(recorded.admissions.get(device), task)
    )
    folders = tuple(recorded.folders[s.id] for s in due)
    return Work(read.path, task, tuple(due), folders, admit)


def _unreadable(read: SampleRead) -> Iterator[Rejudged]:
    """Yield a line for a task that cannot be read, or for each of its parts that cannot."""
    name = _name(read.path)
    errors = [f for f in read.findings if f.severity == "error"]
    if read.sample is None or not read.path.is_dir():
        detail = errors[0].message if errors else "only folders hold verdicts"
        yield Rejudged(name, "task", Outcome.REJECTED, "unreadable", detail)
        return
    first: dict[str, str] = {}
    for found in errors:
        first.setdefault(_part(read.path, found.path), found.message)
    for part, message in first.items():
        yield Rejudged(name, part, Outcome.REJECTED, "unreadable", message)


def _part(folder: Path, path: str) -> str:
    """Return `solutions/NAME` or `trajectories/NAME` for a file in it, else `task`."""
    inside = Path(path)
    if not inside.is_relative_to(folder):
        return "task"
    return "/".join(inside.relative_to(folder).parts[:2]) or "task"


def _admission_is_fresh(admission: Admission | None, task: Task) -> bool:
    return (
        admission is not None
        and not admission_fault(admission, task)
        and admission.outcome is not Outcome.UNDECIDED
    )
