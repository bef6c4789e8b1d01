"""Judge samples on this machine's GPU and record the verdicts beside the solutions.

Tasks are spread over worker processes that share the GPU under a lock; extensions and launchers
are compiled ahead in threads of their own. Each file is written as soon as its verdict is known, so
that an interrupted run continues where it stopped: what is fresh is skipped.
"""

import contextlib
import multiprocessing
import os
import queue
import secrets
import signal
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from concur.builders.decisions import admission_fault, verdict_fault
from concur.builders.folder import find_samples, read_sample, write_admission, write_verdict
from concur.errors import JudgeError, MissingDependency
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Admission, Outcome, Verdict
from concur.validators.environment import Device, cuda_available
from concur.validators.options import JudgeOptions

_SEED_BITS = 62
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


@dataclass(frozen=True)
class Rejudged:
    """One line of the run: a verdict, an admission, or a task that came to nothing."""

    task: str
    """Name of the task."""
    subject: str
    """`admission-cpu` or `-cuda`, `solutions/NAME`, `trajectories/NAME/FOLDER`, or `task`."""
    outcome: Outcome
    """How it ended."""
    status: str
    """Status of the verdict, or outcome of the admission."""
    detail: str = ""
    """The first finding that is an error; the speedup of what passed."""
    path: Path | None = None
    """File that was written."""


@dataclass(frozen=True)
class _Work:
    path: Path
    task: Task
    solutions: tuple[Solution, ...]
    folders: tuple[Path, ...]
    admit: tuple[Device, ...]
    modules: int


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

    Yields a line for each as soon as it is known. Raises JudgeError without a GPU, and
    MissingDependency without PyTorch. What a worker's crash costs is yielded as undecided.
    """
    if not cuda_available():
        raise JudgeError(
            "verdicts are recorded on a GPU only, and no usable one was found (nvidia-smi lists "
            "none, nvcc is not on PATH, or PyTorch is missing); `concur validate` judges C++ "
            "on a CPU"
        )
    options = _complete(options)
    work, broken = _plan(paths, options)
    yield from broken
    yield from _run(work, options)


def _complete(options: RejudgeOptions) -> RejudgeOptions:
    try:
        import torch  # noqa: F401 (workers need it; better to say so once, now)
    except ImportError:
        raise MissingDependency(
            'judging needs PyTorch: pip install "concur-kernels[judge]"'
        ) from None
    judge = replace(options.judge, device="cuda", build_cache=options.judge.cache)
    judge.cache.mkdir(parents=True, exist_ok=True)
    if judge.lock is None:
        judge = replace(judge, lock=Path(tempfile.gettempdir()) / "concur-gpu.lock")
    workers = options.workers or max(1, min(8, (os.cpu_count() or 2) // 2))
    return replace(options, judge=judge, workers=workers)


def _plan(paths: Iterable[Path], options: RejudgeOptions) -> tuple[list[_Work], list[Rejudged]]:
    """Return what is to be done, tasks without slow builds first, and unreadable samples."""
    work, broken = [], []
    for path in (found for given in paths for found in find_samples(given)):
        if options.only and path.name not in options.only:
            continue
        read = read_sample(path)
        if read.sample is None or not path.is_dir():
            errors = [f.message for f in read.findings if f.severity == "error"]
            detail = errors[0] if errors else "only folders hold verdicts"
            broken.append(Rejudged(path.name, "task", Outcome.REJECTED, "unreadable", detail))
            continue
        task, recorded = read.sample.task, read.recorded
        due = [
            s
            for s in read.sample.candidates
            if s.contract is not Contract.CPP_FUNCTION
            and (options.everything or not is_fresh(recorded.verdicts.get(s.id), s))
        ]
        due.sort(key=lambda s: s.contract is Contract.MODEL_NEW)
        admit = tuple(
            device
            for device in _DEVICES
            if options.everything or not _admission_is_fresh(recorded.admissions.get(device), task)
        )
        if due or admit:
            folders = tuple(recorded.folders[s.id] for s in due)
            modules = sum(s.contract is Contract.MODEL_NEW for s in due)
            work.append(_Work(path, task, tuple(due), folders, admit, modules))
    return sorted(work, key=lambda w: (w.modules > 0, -len(w.solutions))), broken


def _admission_is_fresh(admission: Admission | None, task: Task) -> bool:
    return (
        admission is not None
        and not admission_fault(admission, task)
        and admission.outcome is not Outcome.UNDECIDED
    )


def _run(work: list[_Work], options: RejudgeOptions) -> Iterator[Rejudged]:
    lines: queue.SimpleQueue[Rejudged | None] = queue.SimpleQueue()
    workers = _Workers(options.judge, lines)
    builder = _Builder(work, options)
    with ThreadPoolExecutor(options.workers) as pool:
        builder.start()
        try:
            for one in work:
                pool.submit(workers.attend, one)
            left = len(work)
            while left:
                line = lines.get()
                if line is None:
                    left -= 1
                else:
                    yield line
        finally:
            workers.stop()
            builder.stop()
            pool.shutdown(cancel_futures=True)


class _Workers:
    """Worker processes, one per task, so that the crash of one costs nothing else."""

    def __init__(self, options: JudgeOptions, lines: "queue.SimpleQueue[Rejudged | None]") -> None:
        self._options, self._lines = options, lines
        self._context = multiprocessing.get_context("spawn")
        self._running: set[SpawnProcess] = set()
        self._stopped = False

    def attend(self, work: _Work) -> None:
        """Run one task in a process; put its lines, and None at the end."""
        try:
            if not self._stopped:
                self._attend(work)
        finally:
            self._lines.put(None)

    def stop(self) -> None:
        """Interrupt what still runs: each process kills its own children."""
        self._stopped = True
        for process in tuple(self._running):
            if process.is_alive():
                process.terminate()

    def _attend(self, work: _Work) -> None:
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_worker_main, args=(work, self._options, sender))
        self._running.add(process)
        process.start()
        sender.close()
        with contextlib.suppress(EOFError):
            while True:
                self._lines.put(receiver.recv())
        process.join()
        self._running.discard(process)
        if process.exitcode != 0 and not self._stopped:
            detail = f"the worker process ended with exit code {process.exitcode}"
            name = work.task.name
            self._lines.put(Rejudged(name, "task", Outcome.UNDECIDED, "undecided", detail))


def _worker_main(work: _Work, options: JudgeOptions, sender: "Connection[Rejudged, None]") -> None:
    """Do one task in a process of its own, which ends quietly when told to stop."""
    # Ctrl-C in a terminal reaches every process; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    with contextlib.suppress(KeyboardInterrupt):
        _judge_task(work, options, sender)


def _stop(_signal: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows is cleaning up
    raise KeyboardInterrupt


def _judge_task(work: _Work, options: JudgeOptions, sender: "Connection[Rejudged, None]") -> None:
    """Admit one task and judge its solutions, writing each result as soon as it is known."""
    from concur.validators.admission import admit
    from concur.validators.judge import judge

    name = work.task.name
    for device in work.admit:
        seed = secrets.randbits(_SEED_BITS)
        lock = options.lock if device == "cuda" else None
        admission = admit(work.task, device=device, seed=seed, options=replace(options, lock=lock))
        path = write_admission(work.path, admission)
        sender.send(_line(name, f"admission-{device}", admission.outcome.value, admission, path))
        if admission.outcome is Outcome.REJECTED:
            return
    verdicts = judge(work.task, work.solutions, options)
    for verdict, folder in zip(verdicts, work.folders, strict=True):
        if verdict.environment.device_kind != "cuda":
            raise JudgeError("a verdict that was not made on a GPU is not recorded")
        path = write_verdict(folder, verdict)
        subject = folder.relative_to(work.path).as_posix()
        sender.send(_line(name, subject, verdict.status.value, verdict, path))


def _line(
    task: str, subject: str, status: str, record: Verdict | Admission, path: Path
) -> Rejudged:
    errors = [f"{f.message} [{f.where}]" for f in record.findings if f.severity == "error"]
    detail = errors[0] if errors else ""
    if isinstance(record, Verdict) and record.speedup is not None:
        detail = f"{record.speedup:.2f}x eager" + (f"; {detail}" if detail else "")
    return Rejudged(task, subject, record.outcome, status, detail, path)


class _Builder:
    """Compiles ahead of the workers: extensions, which take a minute each, and launchers."""

    def __init__(self, work: list[_Work], options: RejudgeOptions) -> None:
        self._options = options.judge
        pairs = [(w.task, s) for w in work for s in w.solutions]
        self._modules = [p for p in pairs if p[1].contract is Contract.MODEL_NEW]
        self._launchers = [p for p in pairs if p[1].contract is not Contract.MODEL_NEW]
        cores = os.cpu_count() or 2
        self._pools = (
            ThreadPoolExecutor(max(1, cores // 3)),
            ThreadPoolExecutor(max(1, cores // 4)),
        )

    def start(self) -> None:
        """Begin; the workers wait for a build that is under way, and make one that is not."""
        for pool, pairs in zip(self._pools, (self._modules, self._launchers), strict=True):
            for task, solution in pairs:
                pool.submit(_prebuild, task, solution, self._options)

    def stop(self) -> None:
        """Drop what has not begun, and wait for the rest."""
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=True)


def _prebuild(task: Task, solution: Solution, options: JudgeOptions) -> None:
    from concur.validators.judge import prebuild

    prebuild(task, solution, options)
