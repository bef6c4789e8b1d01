"""What the verdicts on samples say together: tables for people, and whether all is as expected."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace

from tests.sampling import Expectation, SampleCase
from tests.table_runs import Line, subject_of

_OUTCOMES = ("rejected", "accepted", "undecided")


@dataclass(frozen=True)
class Table:
    """The text of a table, and whether every expectation holds in every repetition."""

    text: str
    holds: bool


def table(cases: list[SampleCase], lines: list[Line], repetitions: int, level: str) -> Table:
    """Return the verdicts per kind, with every mismatch, disagreement and missing verdict."""
    found = {(line["repetition"], line["subject"]): line for line in lines}
    text, holds = [], True
    for kind, group in itertools.groupby(cases, key=lambda c: c.kind):
        part = _kind(kind, list(group), found, repetitions, level)
        text.append(part.text)
        holds = holds and part.holds
    text.append("every expectation holds" if holds else "NOT as expected")
    return Table("\n".join(text), holds)


def _kind(
    kind: str,
    cases: list[SampleCase],
    found: dict[tuple[int, str], Line],
    repetitions: int,
    level: str,
) -> Table:
    subjects = {subject_of(c): c for c in cases}
    rows, notes = [f"{kind}: {len(cases)} samples"], []
    for repetition in range(repetitions):
        judged = {s: found[repetition, s] for s in subjects if (repetition, s) in found}
        counts = Counter(line["verdict"]["outcome"] for line in judged.values())
        told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _OUTCOMES)
        seconds = sum(line["seconds"] for line in judged.values())
        rows.append(f"  repetition {repetition}: {told}; {seconds:,.0f} s of judging")
        notes += [
            f"  {case.key} [{repetition}] has no verdict"
            for subject, case in subjects.items()
            if subject not in judged
        ]
        for subject, line in judged.items():
            expected = _allowed(subjects[subject].expectation, level)
            wrong = expected.mismatch(line["verdict"])
            notes += [f"  {line['key']} [{repetition}] {wrong}"] if wrong else []
    notes += _disagreements(subjects, found, repetitions)
    return Table("\n".join([*rows, *notes]), not notes)


def _allowed(expected: Expectation, level: str) -> Expectation:
    """Return what is expected at a level: `quick` only rejects, and leaves the rest undecided."""
    if level != "quick":
        return expected
    status = tuple(s for s in expected.status if s != "passed")
    return replace(expected, status=(*status, "undecided"), rule=())


def _disagreements(
    subjects: dict[str, SampleCase], found: dict[tuple[int, str], Line], repetitions: int
) -> list[str]:
    notes = []
    for subject, case in subjects.items():
        verdicts = [
            found[r, subject]["verdict"] for r in range(repetitions) if (r, subject) in found
        ]
        if len({v["outcome"] for v in verdicts}) > 1:
            told = ", ".join(f"{v['outcome']} ({v['status']})" for v in verdicts)
            notes.append(f"  {case.key}: repetitions disagree: {told}")
    return notes


def repeats(lines: list[Line]) -> str:
    """Return how far the speedup of one sample moves, and how honest its intervals are."""
    rows = [f"{line['repetition']:>4} {line['verdict']['status']}" for line in lines]
    series: dict[str, list[tuple[float, float, float]]] = {}
    for line in lines:
        for t in line["verdict"]["timings"]:
            if t["speedup"] is not None:
                figure = (t["speedup"], t["speedup_low"], t["speedup_high"])
                series.setdefault(t["workload"], []).append(figure)
    for workload, figures in series.items():
        rows.append(f"{workload}: speedup, and its interval")
        rows += [f"  {middle:8.4f}  {low:8.4f} .. {high:8.4f}" for middle, low, high in figures]
        middles = [middle for middle, _, _ in figures]
        moved = 100 * (max(middles) / min(middles) - 1)
        others = list(itertools.permutations(figures, 2))
        covered = sum(low <= other <= high for (_, low, high), (other, _, _) in others)
        share = covered / len(others) if others else math.nan
        rows.append(f"  largest move of the median {moved:.2f} %, covered {share:.1%} of pairs")
    return "\n".join(rows)


def pairs(first: list[Line], second: list[Line]) -> str:
    """Return in how many alternations the first of two samples, the faster, was the faster one."""
    rows: list[str] = []
    order: dict[str, list[bool]] = {}
    ratios: dict[str, list[float]] = {}
    for one, other in zip(first, second, strict=False):
        times, others = _medians(one), _medians(other)
        for workload in times.keys() & others.keys():
            order.setdefault(workload, []).append(times[workload] < others[workload])
            ratios.setdefault(workload, []).append(others[workload] / times[workload])
    for workload, right in sorted(order.items()):
        low, high = min(ratios[workload]), max(ratios[workload])
        told = f"{sum(right)} of {len(right)} in the right order"
        rows.append(f"{workload}: {told}; second over first {low:.4f} .. {high:.4f}")
    statuses = Counter(line["verdict"]["status"] for line in (*first, *second))
    rows.append(", ".join(f"{count} {status}" for status, count in sorted(statuses.items())))
    return "\n".join(rows)


def _medians(line: Line) -> dict[str, float]:
    return {t["workload"]: t["median_us"] for t in line["verdict"]["timings"]}
