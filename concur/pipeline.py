"""Building a data set: sources in, admitted and judged rows out, every decision in the ledger.

    read        sample folders and files -> ledger, with CPU checks (concur.reading)
    admit       CPU admission of every task that has none that counts (concur.admissions)
    select      decisions about tasks, solutions and trajectories; rows of what is accepted
    publish     splits -> shards -> card -> manifest, staged and then moved into place

The files are byte-identical for the same samples, verdicts, recorded admissions and pyarrow,
whatever the number of workers and however often the build was killed on the way. An admission that
the build itself measures carries the day and the processor of the machine that measured it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from concur import __version__
from concur.admissions import Admit, admit_on_cpu, run_admissions
from concur.canonical import canonical_json
from concur.errors import BuildError
from concur.jsonl import write_json
from concur.ledger import Decision, Ledger
from concur.manifest import NAME, Manifest, Tally
from concur.publishing import publish
from concur.reading import STAGES, Reading, read_sources
from concur.rows import CONFIGS, RowStore
from concur.schemas.rules import RULES_VERSION
from concur.schemas.verdict import Outcome
from concur.selection import select

STATE = ".concur"
"""Folder inside a data set that holds ledger, report and staging; never part of the data set."""
REPORT = "report.json"
"""Its file that says what the last build did."""
ROWS = "rows.sqlite"
"""Its scratch file of rows, which is gone when a build has ended."""
MAX_STALE = 0.1
"""Largest share of stale verdicts among recorded ones with which a build succeeds."""

Progress = Callable[[str], None]
"""Takes a line about what is going on."""


@dataclass(frozen=True)
class BuildOptions:
    """What to build, from what, how."""

    out: Path
    """Folder of the data set; made when it is not there."""
    sources: tuple[Path, ...] = ()
    """Sample folders, JSON files or directories of them; empty for our own corpus."""
    workers: int = 1
    """Processes that run admissions."""
    recheck: bool = False
    """Run the CPU admission of every task again, rather than carry recorded ones over."""
    trust_recorded: bool = False
    """Believe verdict and admission files in every source, not only in our own corpus."""
    limit: int | None = None
    """Read at most this many samples."""


@dataclass(frozen=True)
class BuildReport:
    """What a build did."""

    out: Path
    """Folder of the data set."""
    version: str
    """Version of the content; empty when the build failed."""
    resumed: bool
    """Whether it took up a build that had been cut short."""
    accounting: dict[str, Tally]
    """By kind: task, solution, trajectory; read = accepted + rejected + undecided."""
    rows: dict[str, dict[str, int]]
    """Rows by config and split."""
    stale: int
    """Solutions and attempts whose recorded verdict is stale."""
    recorded: int
    """Solutions and attempts that have a recorded verdict."""
    not_accepted: tuple[Decision, ...] = ()
    """Every decision other than accepted, with its reason."""
    no_triplet: dict[str, str] = field(default_factory=dict)
    """Why accepted solutions are no triplets all the same, by what they are called in decisions."""
    notes: tuple[str, ...] = ()
    """Anything else that its reader should know."""
    problem: str = ""
    """Why no data set was written; empty when one was."""

    def to_plain(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        plain = asdict(self)
        plain["out"] = str(self.out)
        plain["accounting"] = {k: t.to_plain() for k, t in self.accounting.items()}
        plain["not_accepted"] = [
            {**asdict(d), "outcome": d.outcome.value} for d in self.not_accepted
        ]
        plain["notes"] = list(self.notes)
        return plain


def build(
    options: BuildOptions, *, admit: Admit = admit_on_cpu, progress: Progress = lambda line: None
) -> BuildReport:
    """Build a data set; running it again after it was killed continues where it was.

    `admit` runs one CPU admission in a worker process. Raises BuildError when there is no row, when
    more than a tenth of the recorded verdicts are stale, or when another build is writing to the
    same folder; the report is written then, and a data set that is already there stays as it was.
    """
    state = options.out / STATE
    _refuse_foreign(options.out)
    with Ledger(state) as ledger:
        resumed = ledger.begin(_work_of(options))
        if resumed:
            progress("continuing a build that was cut short")
        reading = read_sources(ledger, options.sources, options.trust_recorded, options.limit)
        progress(f"{reading.read['task']} samples read")
        run_admissions(ledger, admit, options.workers, options.recheck, progress)
        with RowStore(state / ROWS) as rows:
            no_triplet = select(ledger, rows)
            report = _report(options.out, ledger, rows, resumed, reading)
            report = replace(report, no_triplet=no_triplet, notes=_notes(reading, no_triplet))
            problem = _problem(report)
            manifest = None if problem else publish(options.out, state, rows, report.accounting)
        return _finish(ledger, state, report, manifest, problem)


def _refuse_foreign(out: Path) -> None:
    """Raise BuildError for a folder that holds something else, whose README.md would be lost."""
    ours = (out / STATE).is_dir() or (out / NAME).is_file()
    if out.exists() and not ours and any(out.iterdir()):
        raise BuildError(f"{out} is not empty and holds no data set; choose another --out")


def _work_of(options: BuildOptions) -> str:
    """Return what decides whether a build that was cut short may be taken up."""
    return canonical_json(
        {"library": __version__, "rules_version": RULES_VERSION, "recheck": options.recheck}
    )


def _report(
    out: Path, ledger: Ledger, rows: RowStore, resumed: bool, reading: Reading
) -> BuildReport:
    accounting = {stage: _tally(ledger, stage, reading.read[stage]) for stage in STAGES}
    stale, recorded = ledger.staleness()
    not_accepted = [
        d for stage in STAGES for d in ledger.decisions(stage) if d.outcome is not Outcome.ACCEPTED
    ]
    counts = {config: rows.counts(config) for config in CONFIGS}
    return BuildReport(
        out=out,
        version="",
        resumed=resumed,
        accounting=accounting,
        rows=counts,
        stale=stale,
        recorded=recorded,
        not_accepted=tuple(not_accepted),
    )


def _notes(reading: Reading, no_triplet: dict[str, str]) -> tuple[str, ...]:
    told = [f"{subject} is no triplet: {why}" for subject, why in no_triplet.items()]
    if no_triplet:
        told.append(f"accepted solutions that are no triplets: {len(no_triplet)}")
    return (*reading.notes, *told)


def _tally(ledger: Ledger, stage: str, read: int) -> Tally:
    counts = ledger.counts(stage)
    if read != sum(counts.values()):
        raise BuildError(f"{read} {stage} records were read, but {counts} were decided about")
    return Tally(
        read=read,
        accepted=counts[Outcome.ACCEPTED],
        rejected=counts[Outcome.REJECTED],
        undecided=counts[Outcome.UNDECIDED],
    )


def _problem(report: BuildReport) -> str:
    if report.stale > MAX_STALE * report.recorded:
        return (
            f"{report.stale} of {report.recorded} recorded verdicts are stale, more than a tenth: "
            "run `concur rejudge` on a machine with a GPU, then build again"
        )
    if not report.rows["triplets"] and not report.rows["trajectories"]:
        solutions = report.accounting["solution"]
        return (
            f"no row: none of {solutions.read} solutions has a GPU verdict that passed and counts; "
            "run `concur rejudge` on a machine with a GPU, then build again"
        )
    return ""


def _finish(
    ledger: Ledger, state: Path, report: BuildReport, manifest: Manifest | None, problem: str
) -> BuildReport:
    report = replace(report, version=manifest.version if manifest else "", problem=problem)
    write_json(state / REPORT, report.to_plain())
    (state / ROWS).unlink()
    ledger.end("failed" if problem else "done")
    if problem:
        raise BuildError(f"{problem} (details: {state / REPORT})")
    return report
