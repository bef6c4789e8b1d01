"""Judging samples in worker processes, with one line of a file for each verdict as it comes.

A worker keeps its process for many sessions, as importing PyTorch takes longer than most samples.
What the crash of one costs is not written, so that the next run takes it up.
"""

import contextlib
import json
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from concur.schemas.solution import Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Verdict
from concur.validators.judge import judge, prebuild
from concur.validators.options import JudgeOptions
from tests.sampling import SAMPLES, SampleCase

Line = dict[str, Any]
_SESSION = 12  # samples: long enough to share a reference's start, short enough to spread
_EVIDENCE = 400
_FINDING = ("rule", "severity", "message", "where", "evidence")
_TIMES = ("workload", "median_us", "baseline_median_us", "speedup", "speedup_low", "speedup_high")
_CONTEXT = multiprocessing.get_context("spawn")

# Workers import this module by name through their parent's path, where pytest does not put the
# checkout. It comes last, so that its folders hide no package of the index.
_ROOT = str(SAMPLES.parent.parent)
if _ROOT not in sys.path:
    sys.path.append(_ROOT)


@dataclass(frozen=True)
class Session:
    """Samples of one task that are judged one after the other beside one reference."""

    repetition: int
    """Number of the repetition, from 0."""
    cases: tuple[SampleCase, ...]
    """What is judged, in order."""

    @property
    def task(self) -> Task:
        """The task of all of them."""
        return self.cases[0].task


@dataclass(frozen=True)
class Judged:
    """A verdict on a sample."""

    repetition: int
    """Number of the repetition."""
    case: SampleCase
    """The sample."""
    verdict: Verdict
    """What the judge said."""
    seconds: float
    """How long it took, with what the session needed before."""


def sessions(
    cases: list[SampleCase], repetitions: int, done: set[tuple[int, str]]
) -> list[Session]:
    """Return what is left to do: grouped by task, a dozen samples a session at most.

    `done` holds (repetition, `subject_of(case)`) of what a file has already.
    """
    found = []
    for repetition in range(repetitions):
        groups: dict[str, list[SampleCase]] = {}
        for case in cases:
            if (repetition, subject_of(case)) not in done:
                groups.setdefault(case.task.id, []).append(case)
        for group in groups.values():
            count = -(-len(group) // _SESSION)
            found += [Session(repetition, tuple(group[i::count])) for i in range(count)]
    return found


def subject_of(case: SampleCase) -> str:
    """Return what identifies a sample in a file: kind, key and contents."""
    return f"{case.kind}/{case.key} {case.solution.id}"


class Records:
    """The file of verdicts: one JSON line each, flushed when written, by one process."""

    def __init__(self, path: Path, settings: dict[str, str]) -> None:
        """Open a file, dropping a last line that was torn by a kill; `settings` mark its lines.

        Raises ValueError when the file holds lines that were made with other settings.
        """
        self._path, self._settings = path, settings
        self.lines: list[Line] = []
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        self.lines = [json.loads(line) for line in whole.splitlines()]
        for line in self.lines:
            if {key: line.get(key) for key in settings} != settings:
                raise ValueError(f"{path} was made with other settings; take another file")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("ab")
        self._stream.truncate(len(whole))

    @property
    def done(self) -> set[tuple[int, str]]:
        """What need not be judged again."""
        return {(line["repetition"], line["subject"]) for line in self.lines}

    def add(self, line: Line) -> None:
        """Write one line; it survives a kill from here on."""
        line = {**line, **self._settings}
        self.lines.append(line)
        self._stream.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def line_of(judged: Judged) -> Line:
    """Return what is kept of a verdict: no numerics, medians only, short evidence."""
    case, verdict = judged.case, judged.verdict
    plain = verdict.to_plain()
    findings = [
        {
            key: str(f[key])[:_EVIDENCE]
            for key in ("rule", "severity", "message", "where", "evidence")
        }
        for f in plain["findings"]
    ]
    timings = [{key: t.get(key) for key in _TIMES} for t in plain["timings"]]
    kept = {key: plain[key] for key in ("status", "fault", "gates", "speedup", "isolation", "seed")}
    kept |= {"outcome": verdict.outcome.value, "device": plain["environment"]["device"]}
    return {
        "repetition": judged.repetition,
        "kind": case.kind,
        "key": case.key,
        "subject": subject_of(case),
        "seconds": round(judged.seconds, 2),
        "verdict": {**kept, "findings": findings, "timings": timings},
    }


def run(work: list[Session], options: JudgeOptions, workers: int) -> Iterator[Judged]:
    """Judge sessions, `workers` at once, and yield each verdict as it comes."""
    waiting = deque(work)
    verdicts: queue.SimpleQueue[Judged | None] = queue.SimpleQueue()
    threads = [_Worker(waiting, options, verdicts) for _ in range(min(workers, len(work)))]
    for thread in threads:
        thread.start()
    left = len(threads)
    try:
        while left:
            judged = verdicts.get()
            if judged is None:
                left -= 1
            else:
                yield judged
    finally:
        waiting.clear()
        for thread in threads:
            thread.stop()
            thread.join()


class _Worker(threading.Thread):
    """Hands sessions to a process, and starts another one when that dies."""

    def __init__(
        self,
        waiting: deque[Session],
        options: JudgeOptions,
        verdicts: "queue.SimpleQueue[Judged | None]",
    ) -> None:
        super().__init__()
        self._waiting, self._options, self._verdicts = waiting, options, verdicts
        self._stopped = False
        self._start_process()

    def _start_process(self) -> None:
        self._pipe, far = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_work, args=(far, self._options))
        self._process.start()
        far.close()

    def run(self) -> None:
        try:
            while self._waiting:
                try:
                    session = self._waiting.popleft()
                except IndexError:  # another worker was faster
                    break
                self._attend(session)
        finally:
            self.stop()
            self._verdicts.put(None)

    def stop(self) -> None:
        """Interrupt the process, which ends its own children."""
        self._stopped = True
        if self._process.is_alive():
            self._process.terminate()

    def _attend(self, session: Session) -> None:
        told = 0
        try:
            self._pipe.send(session)
            while (judged := self._pipe.recv()) is not None:
                self._verdicts.put(judged)
                told += 1
        except (EOFError, OSError):
            self._process.join()
            if self._stopped:
                return
            lost, *rest = session.cases[told:]
            code = self._process.exitcode
            print(f"{lost.kind}/{lost.key}: a worker ended with {code}", file=sys.stderr)
            if rest:
                self._waiting.appendleft(Session(session.repetition, tuple(rest)))
            self._start_process()


def _work(pipe: "Connection[Judged | None, Session]", options: JudgeOptions) -> None:
    """Judge what comes through a pipe until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            session = pipe.recv()
            begun = time.monotonic()
            verdicts = judge(session.task, [c.solution for c in session.cases], options)
            with contextlib.closing(verdicts):  # type: ignore[type-var]  # a generator
                for case, verdict in zip(session.cases, verdicts, strict=True):
                    now = time.monotonic()
                    pipe.send(Judged(session.repetition, case, verdict, now - begun))
                    begun = now
            pipe.send(None)


def _end_with_parent() -> None:
    """End this process when its parent is gone, so that none competes with the next run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows is cleaning up
    raise KeyboardInterrupt


def build(cases: list[SampleCase], options: JudgeOptions) -> float:
    """Compile samples into the build cache on all cores; returns the seconds that it took."""
    begun = time.monotonic()
    each = {case.solution.id: case for case in cases}
    with ProcessPoolExecutor(os.cpu_count() or 2, mp_context=_CONTEXT) as pool:
        jobs = [pool.submit(_build, c.task, c.solution, options) for c in each.values()]
        for number, job in enumerate(as_completed(jobs), 1):
            with contextlib.suppress(BrokenProcessPool):  # judging builds what is missing
                job.result()
            print(f"\rbuilt {number} of {len(jobs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return time.monotonic() - begun


def _build(task: Task, solution: Solution, options: JudgeOptions) -> None:
    prebuild(task, solution, options)
