"""The processes of `concur rejudge`: one a task, and threads that compile ahead of them.

Tasks are spread over worker processes that share the GPU under a lock; extensions and launchers
are compiled ahead in threads of their own. Each file is written as soon as its verdict is known.
"""

import contextlib
import multiprocessing
import os
import queue
import secrets
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from concur.builders.folder import write_admission, write_verdict
from concur.errors import JudgeError
from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Admission, Outcome, Verdict
from concur.validators.environment import Device
from concur.validators.options import JudgeOptions

_SEED_BITS = 62


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
class Work:
    """What is to be done for one task."""

    path: Path
    """Its folder."""
    task: Task
    """The task itself."""
    solutions: tuple[Solution, ...]
    """What is to be judged, modules last."""
    folders: tuple[Path, ...]
    """Folder of each solution, in the same order."""
    admit: tuple[Device, ...]
    """Where the task is to be admitted."""

    @property
    def modules(self) -> int:
        """Number of solutions whose build takes a minute."""
        return sum(s.contract is Contract.MODEL_NEW for s in self.solutions)


def run(work: list[Work], options: JudgeOptions, count: int) -> Iterator[Rejudged]:
    """Do the work, `count` tasks at once, and yield a line for each result as it comes.

    What the crash of a worker, or a failure to start one, costs is yielded as undecided.
    """
    lines: queue.SimpleQueue[Rejudged | None] = queue.SimpleQueue()
    workers = Workers(options, lines)
    builder = _Builder(work, options)
    with ThreadPoolExecutor(count) as pool:
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


class Workers:
    """Worker processes, one per task, so that the crash of one costs nothing else."""

    def __init__(self, options: JudgeOptions, lines: "queue.SimpleQueue[Rejudged | None]") -> None:
        """Take the options of the judge, and where lines go."""
        self._options, self._lines = options, lines
        self._context = multiprocessing.get_context("spawn")
        self._running: set[SpawnProcess] = set()
        self._stopped = False

    def attend(self, work: Work) -> None:
        """Run one task in a process; put its lines, and None at the end."""
        try:
            if not self._stopped:
                self._attend(work)
        except Exception as error:  # noqa: BLE001  # boundary of a process: nothing may vanish
            self._lose(work, f"the worker process failed: {type(error).__name__}: {error}")
        finally:
            self._lines.put(None)

    def stop(self) -> None:
        """Interrupt what still runs: each process kills its own children."""
        self._stopped = True
        for process in tuple(self._running):
            if process.is_alive():
                process.terminate()

    def _attend(self, work: Work) -> None:
        receiver, sender = self._context.Pipe(duplex=False)
        with receiver:
            with sender:
                arguments = (work, self._options, sender)
                process = self._context.Process(target=_worker_main, args=arguments)
                process.start()
            self._running.add(process)
            if self._stopped:  # while it started
                process.terminate()
            with contextlib.suppress(EOFError):
                while True:
                    self._lines.put(receiver.recv())
        process.join()
        self._running.discard(process)
        if process.exitcode != 0 and not self._stopped:
            self._lose(work, f"the worker process ended with exit code {process.exitcode}")

    def _lose(self, work: Work, detail: str) -> None:
        name = work.task.name
        self._lines.put(Rejudged(name, "task", Outcome.UNDECIDED, "undecided", detail))


def _worker_main(work: Work, options: JudgeOptions, sender: "Connection[Rejudged, None]") -> None:
    """Do one task in a process of its own, which ends quietly when told to stop."""
    # Ctrl-C in a terminal reaches every process; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    with contextlib.suppress(KeyboardInterrupt):
        _judge_task(work, options, sender)


def _stop(_signal: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows is cleaning up
    raise KeyboardInterrupt


def _judge_task(work: Work, options: JudgeOptions, sender: "Connection[Rejudged, None]") -> None:
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

    def __init__(self, work: list[Work], options: JudgeOptions) -> None:
        self._options = options
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
