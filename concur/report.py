"""What findings, verdicts, samples and counts look like, for people and as plain JSON data.

Pure functions: records in, text or plain data out. Nothing here prints or decides.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from concur.schemas.feedback import render
from concur.schemas.verdict import Admission, Finding, Outcome, Verdict
from concur.validate import Judged, SampleReport

if TYPE_CHECKING:
    from concur.pipeline import BuildReport
    from concur.rejudge import Rejudged

_SHOWN = 30
"""Findings of one sample that people are shown; JSON holds them all."""


class Counts(Protocol):
    """Anything with the four counts."""

    @property
    def read(self) -> int:
        """Everything that was read."""

    @property
    def accepted(self) -> int:
        """Fit for use."""

    @property
    def rejected(self) -> int:
        """Decided against."""

    @property
    def undecided(self) -> int:
        """Not decided yet."""


@dataclass(frozen=True)
class Accounting:
    """Counts that always add up: read = accepted + rejected + undecided."""

    accepted: int = 0
    rejected: int = 0
    undecided: int = 0

    @property
    def read(self) -> int:
        """Everything that was read."""
        return self.accepted + self.rejected + self.undecided

    @property
    def exit_code(self) -> int:
        """1 when something was rejected, else 3 when something is undecided, else 0."""
        if self.rejected:
            return 1
        return 3 if self.undecided else 0

    @property
    def plain(self) -> dict[str, int]:
        """The four counts as plain data."""
        return {
            "read": self.read,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "undecided": self.undecided,
        }


def account(outcomes: Iterable[Outcome]) -> Accounting:
    """Count outcomes."""
    seen = list(outcomes)
    return Accounting(
        *(seen.count(o) for o in (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.UNDECIDED))
    )


def render_accounting(counts: Counts, noun: str = "sample") -> str:
    """Return counts as `3 samples read = 2 accepted + 1 rejected + 0 undecided`."""
    return (
        f"{amount(counts.read, noun)} read = {counts.accepted} accepted + "
        f"{counts.rejected} rejected + {counts.undecided} undecided"
    )


def render_finding(finding: Finding) -> str:
    """Return a finding as `severity  place: message [rule]`, its remedy and evidence below it."""
    place = f"{finding.path}:{finding.line}" if finding.path and finding.line else finding.path
    if finding.where:
        place = f"{place} {finding.where}".strip()
    head = f"{finding.severity:<8}{place}: " if place else f"{finding.severity:<8}"
    lines = [f"{head}{finding.message} [{finding.rule}]"]
    if finding.remedy:
        lines.append(f"        -> {finding.remedy}")
    lines += [f"        | {line}" for line in finding.evidence.rstrip().split("\n") if line]
    return "\n".join(lines)


def render_sample(report: SampleReport) -> str:
    """Return a sample's block: outcome, findings, admissions, verdicts, what is pending."""
    place = f"{report.path}:{report.line}" if report.line else str(report.path)
    lines = [f"{report.outcome.value.upper():<10}{report.name}  ({place})"]
    shown = report.findings[:_SHOWN]
    lines += [indent(render_finding(f)) for f in shown]
    if len(report.findings) > len(shown):
        lines.append(f"  ... {len(report.findings) - len(shown)} more; --format json has them all")
    for admission in report.admissions:
        lines.append(indent(_render_admission(admission)))
    for judged in report.judged:
        lines.append(indent(_render_judged(judged)))
    lines += [f"  pending  {what}" for what in report.pending]
    if report.failure:
        lines.append(f"  undecided: {report.failure}")
    return "\n".join(lines)


def render_build(report: "BuildReport", devices: Mapping[str, int]) -> str:
    """Return what a build did: what is undecided and which tasks were rejected, each with why;
    notes, rows, devices, accounting. The build's report.json has every decision.
    """
    lines = [
        f"{d.outcome.value:<10}{d.subject}: {d.reason}"
        for d in report.not_accepted
        if d.outcome is Outcome.UNDECIDED or d.stage == "task"
    ]
    lines += [*report.notes, ""]
    splits = list(dict.fromkeys(s for counts in report.rows.values() for s in counts))
    rows = [
        {"config": c, **{s: counts.get(s, 0) for s in splits}, "all": sum(counts.values())}
        for c, counts in report.rows.items()
    ]
    lines += [table(rows), ""]
    lines += [f"verdicts on {device}: {count}" for device, count in devices.items()]
    lines.append(f"stale verdicts: {report.stale} of {report.recorded}")
    lines += [render_accounting(counts, kind) for kind, counts in report.accounting.items()]
    lines.append(f"{report.out} holds version {report.version}")
    return "\n".join(lines).lstrip("\n")


def render_verdict_line(verdict: Verdict) -> str:
    """Return status, device and speedup of a verdict as one line."""
    line = f"{verdict.status.value} on {verdict.environment.device}"
    if verdict.environment.device_kind == "cpu":
        line = f"{verdict.status.value} on a CPU"
    if verdict.speedup is not None:
        line += f", {verdict.speedup:.2f} x the speed of eager {verdict.baseline}"
    return line


def sample_plain(report: SampleReport) -> dict[str, Any]:
    """Return a sample's report as plain JSON data."""
    return {
        "path": str(report.path),
        "line": report.line,
        "name": report.name,
        "outcome": report.outcome.value,
        "findings": [f.to_plain() for f in report.findings],
        "admissions": [a.to_plain() for a in report.admissions],
        "verdicts": [
            {"subject": j.subject, "is_attempt": j.is_attempt, "verdict": j.verdict.to_plain()}
            for j in report.judged
        ],
        "pending": list(report.pending),
        "failure": report.failure,
    }


def render_rejudged(line: "Rejudged") -> str:
    """Return what became of one record of a run of `rejudge`, as one line."""
    told = f"{line.outcome.value:<10}{line.task}  {line.subject}: {line.status}"
    return f"{told}; {line.detail}" if line.detail else told


def rejudged_plain(line: "Rejudged") -> dict[str, Any]:
    """Return what became of one record of a run of `rejudge` as plain JSON data."""
    return {
        "task": line.task,
        "subject": line.subject,
        "outcome": line.outcome.value,
        "status": line.status,
        "detail": line.detail,
        "path": str(line.path) if line.path else "",
    }


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows with the same keys as an aligned text table; numbers stand on the right."""
    if not rows:
        return ""
    columns = list(rows[0])
    cells = [[_cell(row[c]) for c in columns] for row in rows]
    widths = [max(len(c), *(len(r[i]) for r in cells)) for i, c in enumerate(columns)]
    numeric = [all(isinstance(row[c], int | float) for row in rows) for c in columns]
    lines = [columns, ["-" * w for w in widths], *cells]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if right else cell.ljust(w)
            for cell, w, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def amount(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where that is due."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun}"


def indent(text: str, by: str = "  ") -> str:
    """Return text with every line moved to the right."""
    return "\n".join(by + line for line in text.split("\n"))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _render_admission(admission: Admission) -> str:
    sizes = "small twins, CPU" if admission.sizes == "twin" else "full size, GPU"
    head = f"admission ({sizes}): {admission.outcome.value}"
    return "\n".join([head, *(indent(render_finding(f)) for f in admission.findings)])


def _render_judged(judged: Judged) -> str:
    head = f"{judged.subject}: {render_verdict_line(judged.verdict)}"
    if judged.verdict.outcome is Outcome.ACCEPTED and not judged.verdict.findings:
        return head
    return f"{head}\n{indent(render(judged.verdict).rstrip())}"
