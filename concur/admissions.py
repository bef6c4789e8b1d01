"""The second stage of a build: CPU admissions, in worker processes, each kept as it finishes.

The process of the build is the only one that writes to the ledger. A worker that is left behind,
because the build was killed, ends by itself.
"""

import hashlib
import importlib.util
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from concur.errors import JudgeError
from concur.ledger import Decision, Ledger
from concur.schemas.sample import Sample
from concur.schemas.task import Task
from concur.schemas.verdict import Admission, Outcome

Admit = Callable[[Task], Admission]
"""Runs one CPU admission. Must be importable by name, since worker processes call it."""
INSTALL = 'pip install "concur-kernels[judge]"'
"""Command that brings what an admission needs."""
_ORPHAN_POLL_S = 0.5


def admit_on_cpu(task: Task) -> Admission:
    """Admit a task on its small twins, on this machine's CPU. Needs PyTorch (extra `judge`).

    The seed comes from the task's id, so that two runs see the same inputs.
    """
    from concur.validators.admission import admit

    seed = int.from_bytes(hashlib.sha256(task.id.encode()).digest()[:4], "big")
    return admit(task, device="cpu", seed=seed)


def run_admissions(
    ledger: Ledger, admit: Admit, workers: int, recheck: bool, progress: Callable[[str], None]
) -> None:
    """Run the CPU admission of every task that has none that counts, or of every task.

    An admission that fails, rather than says something, leaves its task undecided.
    """
    if admit is admit_on_cpu and importlib.util.find_spec("torch") is None:
        for subject, task in _due(ledger, recheck):
            _leave_undecided(ledger, subject, task, f"an admission needs PyTorch: {INSTALL}")
        return
    broken: list[tuple[str, Task]] = []
    due = _due(ledger, recheck)
    for subject, task, admission in _finished(admit, workers, due):
        if isinstance(admission, Admission):
            ledger.add_admission(admission, measured=True)
            progress(f"{subject}: {admission.outcome.value}")
        elif isinstance(admission, BrokenProcessPool):
            broken.append((subject, task))
        else:
            _leave_undecided(ledger, subject, task, f"the admission failed: {admission}")
    # One process that dies takes its neighbours' work along: each is tried again alone.
    for subject, task in broken:
        _, _, admission = next(_finished(admit, 1, iter([(subject, task)])))
        if isinstance(admission, Admission):
            ledger.add_admission(admission, measured=True)
        else:
            _leave_undecided(ledger, subject, task, f"the admission failed: {admission}")


def _due(ledger: Ledger, recheck: bool) -> Iterator[tuple[str, Task]]:
    for stored in ledger.samples():
        if ledger.is_decided("task", stored.subject):
            continue
        task = Sample.model_validate_json(stored.content).task
        if recheck:
            known = ledger.is_measured(task.id, "cpu")
        else:
            known = ledger.admission(task.id, "cpu") is not None
        if not known:
            yield stored.subject, task


def _leave_undecided(ledger: Ledger, subject: str, task: Task, reason: str) -> None:
    ledger.decide(Decision("task", subject, task.id, Outcome.UNDECIDED, reason))


_Finished = tuple[str, Task, Admission | Exception]


def _finished(admit: Admit, workers: int, due: Iterator[tuple[str, Task]]) -> Iterator[_Finished]:
    """Yield every task with its admission, or the error in its place, as they finish."""
    first = next(due, None)
    if first is None:
        return
    # spawn: a forked worker would hold the ledger's lock beyond the life of this process.
    context = multiprocessing.get_context("spawn")
    running: dict[Future[Admission], tuple[str, Task]] = {}
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_end_with, initargs=(os.getpid(),)
    ) as pool:
        following: tuple[str, Task] | None = first
        while running or following is not None:
            while following is not None and len(running) < 2 * workers:
                running[_submit(pool, admit, following[1])] = following
                following = next(due, None)
            try:
                done = wait(running, return_when=FIRST_COMPLETED).done
            except KeyboardInterrupt:
                # Leaving the pool waits for its workers, which may be minutes from their end.
                for process in multiprocessing.active_children():
                    process.terminate()
                raise
            for future in done:
                subject, task = running.pop(future)
                yield subject, task, _outcome(future)


def _submit(pool: ProcessPoolExecutor, admit: Admit, task: Task) -> "Future[Admission]":
    try:
        return pool.submit(admit, task)
    except BrokenProcessPool as error:
        failed: Future[Admission] = Future()
        failed.set_exception(error)
        return failed


def _outcome(future: "Future[Admission]") -> Admission | Exception:
    try:
        return future.result()
    except (JudgeError, OSError, RuntimeError, ValueError, BrokenProcessPool) as error:
        return error


def _end_with(parent: int) -> None:
    """End this worker soon after the build's process has ended, however that ended."""

    # Ctrl-C in a terminal reaches every process; what it means is the build's to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_ORPHAN_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
