"""Judge every sample, several times, and say whether the judge says what it should.

    PYTHONPATH=. python -P -m tests.table --repetitions 3 --workers 8 --out verdicts.jsonl
    PYTHONPATH=. python -P -m tests.table --repeat softmax-rows/padded-100 --times 10
    PYTHONPATH=. python -P -m tests.table --pairs softmax-rows/padded-100 softmax-rows/padded-105

Every verdict is a line of the file, so that a run which was cut short goes on where it stopped.
The exit code is 0 only when every expectation holds and all repetitions agree.
"""

import argparse
import fnmatch
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from concur.validators.environment import probe
from concur.validators.options import JudgeOptions, Timeouts
from tests.sampling import KINDS, SampleCase, SampleError, cases
from tests.table_report import pairs, repeats, table
from tests.table_runs import Line, Records, Session, build, line_of, run, sessions, subject_of

_TIMEOUTS = {
    "cpu": Timeouts(compile=30, load=30, run=8),
    "cuda": Timeouts(compile=150, load=60, run=8),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    chosen = _parser().parse_args(arguments)
    chosen.device = chosen.device or probe().device_kind
    settings = {"level": chosen.level, "device": chosen.device}
    try:
        found = _chosen(chosen)
        path = chosen.out or _temporary()
        records = Records(path, settings)
    except (SampleError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"verdicts go to {path}", file=sys.stderr)
    options = _options(chosen)
    begun = time.monotonic()
    repetitions = chosen.times if chosen.repeat or chosen.pairs else chosen.repetitions
    try:
        work = _work(chosen, found, repetitions, records)
        _judge(work, options, 1 if chosen.repeat or chosen.pairs else chosen.workers, records)
    finally:
        records.close()
    return _report(chosen, found, repetitions, records.lines, time.monotonic() - begun)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.table", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="file of verdicts; a temporary one without")
    parser.add_argument("--kind", choices=KINDS, action="append", help="all kinds without")
    parser.add_argument("--only", metavar="PATTERN", help="keys to judge, such as 'matmul/*'")
    parser.add_argument("--contract", help="such as cuda_function; every contract without")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="cuda where there is one")
    parser.add_argument("--level", choices=("quick", "full", "audit"), default="full")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="sessions at once")
    parser.add_argument("--cache", type=Path, help="build cache")
    special = parser.add_mutually_exclusive_group()
    special.add_argument("--repeat", metavar="KEY", help="judge one sample --times times")
    special.add_argument("--pairs", metavar="KEY", nargs=2, help="judge two samples in turn")
    parser.add_argument("--times", type=int, default=10)
    return parser


def _chosen(chosen: argparse.Namespace) -> list[SampleCase]:
    """Return the samples that are asked for and run on the device, those of a pair in order."""
    found = [c for kind in KINDS if kind in (chosen.kind or KINDS) for c in cases(kind)]
    named = [chosen.repeat] if chosen.repeat else chosen.pairs
    if named:
        by_key = {c.key: c for c in found} | {f"{c.kind}/{c.key}": c for c in found}
        missing = [key for key in named if key not in by_key]
        if missing:
            raise SampleError(f"no sample is called {missing[0]}")
        return [by_key[key] for key in named]
    pattern = chosen.only or "*"
    found = [c for c in found if fnmatch.fnmatch(c.key, pattern) and c.runs_on(chosen.device)]
    found = [c for c in found if chosen.contract in (None, c.solution.contract)]
    if not found:
        raise SampleError(f"no sample matches {pattern} and runs on {chosen.device}")
    return found


def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="concur-table-")) / "verdicts.jsonl"


def _options(chosen: argparse.Namespace) -> JudgeOptions:
    given: dict[str, Any] = {} if chosen.cache is None else {"build_cache": chosen.cache}
    options = JudgeOptions(
        device=chosen.device,
        level=chosen.level,
        timeouts=_TIMEOUTS[chosen.device],
        further_baselines=False,
        **given,
    )
    if chosen.device == "cuda":
        return replace(options, lock=Path(tempfile.gettempdir()) / "concur-gpu.lock")
    return options


def _work(
    chosen: argparse.Namespace, found: list[SampleCase], repetitions: int, records: Records
) -> list[Session]:
    """Return what is left to judge; repeats and pairs share no session with each other."""
    if not (chosen.repeat or chosen.pairs):
        return sessions(found, repetitions, records.done)
    return [
        Session(repetition, (case,))
        for repetition in range(repetitions)
        for case in found
        if (repetition, subject_of(case)) not in records.done
    ]


def _judge(work: list[Session], options: JudgeOptions, workers: int, records: Records) -> None:
    total = sum(len(session.cases) for session in work)
    if options.device == "cuda" and work:
        seconds = build([c for session in work for c in session.cases], options)
        print(f"compiled in {seconds:,.0f} s", file=sys.stderr)
    for number, judged in enumerate(run(work, options, workers), 1):
        records.add(line_of(judged))
        case, verdict = judged.case, judged.verdict
        told = f"{case.kind}/{case.key} [{judged.repetition}] {verdict.status}"
        print(f"{number}/{total} {told}, {judged.seconds:.1f} s", file=sys.stderr, flush=True)


def _report(
    chosen: argparse.Namespace,
    found: list[SampleCase],
    repetitions: int,
    lines: list[Line],
    seconds: float,
) -> int:
    lines = sorted(lines, key=lambda line: (line["repetition"], line["subject"]))
    print(f"{chosen.level} on {chosen.device}; {seconds:,.0f} s in all")
    if chosen.repeat or chosen.pairs:
        each = [[line for line in lines if line["subject"] == subject_of(case)] for case in found]
        print(repeats(each[0]) if chosen.repeat else pairs(each[0], each[1]))
        expected = [len(series) == repetitions for series in each]
        passed = [line["verdict"]["status"] == "passed" for series in each for line in series]
        return 0 if all(expected) and all(passed) else 1
    result = table(found, lines, repetitions, chosen.level)
    print(result.text)
    return 0 if result.holds else 1


if __name__ == "__main__":
    sys.exit(main())
