"""The card of a data set: its README.md, with every figure and every table made from the rows.

The words are those of `card_template.md`; what stands between its markers is generated.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from concur import tokens
from concur.card_facts import CardFacts
from concur.card_header import front_matter
from concur.errors import BuildError
from concur.rows import CONFIGS, RECORDS
from concur.schemas.arrow import column_table
from concur.schemas.task import Form
from concur.splits import SPLITS

TEMPLATE = Path(__file__).parent / "card_template.md"
"""The words of the card."""
_REGION = re.compile(r"(<!-- generated: ([a-z]+) -->\n)(<!-- end: \2 -->)")
_PERCENTILES = (5, 25, 50, 75, 95)


def render_card(facts: CardFacts) -> str:
    """Return the text of README.md: YAML front matter, then the filled template."""
    made = {
        "load": _load(facts),
        "configs": _configs(facts),
        "forms": _forms(facts),
        "verdicts": _verdicts(facts),
        "accounting": _accounting(facts),
        "origin": _origin(facts),
        "tokens": _tokens(facts),
        "columns": _columns(facts),
    }
    template = TEMPLATE.read_text(encoding="utf-8")
    named = {match.group(2) for match in _REGION.finditer(template)}
    if named != set(made):
        raise BuildError(f"{TEMPLATE.name} has regions {sorted(named)}, not {sorted(made)}")
    body = _REGION.sub(lambda m: f"{m.group(1)}{made[m.group(2)]}\n{m.group(3)}", template)
    return f"---\n{front_matter(facts)}---\n\n{body}"


def percentile(values: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile of sorted values, of which there is at least one."""
    rank = -(-percent * len(values) // 100)
    return values[max(rank, 1) - 1]


def _load(facts: CardFacts) -> str:
    default = facts.configs[0]
    split = next(iter(facts.rows[default]))
    return (
        "```python\nfrom datasets import load_dataset\n\n"
        f'ds = load_dataset("PATH_OR_REPOSITORY", "{default}", split="{split}")\n```'
    )


def _configs(facts: CardFacts) -> str:
    return _table(
        ("config", *SPLITS, "all"),
        (
            (f"`{c}`", *(facts.rows[c].get(s, 0) for s in SPLITS), sum(facts.rows[c].values()))
            for c in CONFIGS
        ),
    )


def _forms(facts: CardFacts) -> str:
    stated = sorted({forms for _, forms in facts.tasks})
    families = sorted({family for family, _ in facts.tasks})
    order = [form.value for form in Form]
    head = [" + ".join(sorted(forms.split("+"), key=order.index)) for forms in stated]
    return _table(
        ("family", *head),
        ((f, *(facts.tasks.get((f, forms), 0) for forms in stated)) for f in families),
    )


def _verdicts(facts: CardFacts) -> str:
    devices = _table(
        ("device", "first verdict", "last verdict", "verdicts"),
        ((d.name, d.first, d.last, d.count) for d in facts.devices),
    )
    statuses = _table(("status", "solutions and attempts"), sorted(facts.statuses.items()))
    return f"{devices}\n\n{statuses}"


def _accounting(facts: CardFacts) -> str:
    return _table(
        ("kind", "read", "accepted", "rejected", "undecided"),
        (
            (kind, t.read, t.accepted, t.rejected, t.undecided)
            for kind, t in facts.accounting.items()
        ),
    )


def _origin(facts: CardFacts) -> str:
    return _table(
        ("method", "writer", "model", "reasoning", "solutions and attempts"),
        (
            (method, writer, model or "-", kind, count)
            for (method, writer, model, kind), count in sorted(facts.origins.items())
        ),
    )


def _tokens(facts: CardFacts) -> str:
    head = (f"{tokens.ENCODING}, {tokens.TOKENIZER}", *(f"{p} %" for p in _PERCENTILES), "sum")
    rows = [
        (name, *(percentile(values, p) for p in _PERCENTILES), sum(values))
        for name, values in facts.lengths.items()
        if values
    ]
    return _table(head, rows)


def _columns(facts: CardFacts) -> str:
    parts = []
    for config in facts.configs:
        table = _table(
            ("column", "type", "what it holds"),
            ((f"`{n}`", kind, text) for n, kind, text in column_table(RECORDS[config])),
        )
        parts.append(f"### `{config}`\n\n{table}")
    return "\n\n".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text.replace("|", "\\|")


def card_body(text: str) -> str:
    """Return a card without its front matter, which depends on the version of pyarrow."""
    return text.split("\n---\n", 1)[1]


__all__ = ["TEMPLATE", "CardFacts", "card_body", "percentile", "render_card"]
