"""The page of rules in `docs/rules.md`, written from the rules themselves by `make docs`."""

from collections.abc import Iterator
from pathlib import Path

from concur.validators.rules import GATES, RULES, Rule

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"
"""Where the page is kept in a checkout."""

_HEAD = """# Rules of the judge

<!-- Written by `make docs` from validators/rules*.py; changes here are lost. -->

Every finding of a verdict names one of these rules. The status is the one that a run ends with
when an error breaks the rule; a dash means that the rule only ever explains. Where the fault lies
with the infrastructure, the judge or nobody, a solution is undecided and never rejected.
[How the judge works](verification.md) says what the gates show and what they do not."""


def page() -> str:
    """Return the page as Markdown: a table for each gate, then a paragraph for each rule."""
    parts = [_HEAD]
    for gate, sentence in GATES.items():
        rules = [rule for rule in RULES.values() if rule.gate == gate]
        if rules:
            parts.append(f"## {gate}\n\n{sentence}")
            parts.append("\n".join(_table(rules)))
            parts += [_paragraph(rule) for rule in rules]
    return "\n\n".join(parts) + "\n"


def anchor(rule: str) -> str:
    """Return the name of a rule's place on the page."""
    return rule.replace(".", "-")


def _table(rules: list[Rule]) -> Iterator[str]:
    yield "| rule | demands | status | fault |"
    yield "|---|---|---|---|"
    for rule in rules:
        status = "-" if rule.status is None else rule.status.value
        yield (
            f"| [{rule.id}](#{anchor(rule.id)}) | {rule.demands} | {status} | {rule.fault.value} |"
        )


def _paragraph(rule: Rule) -> str:
    return (
        f'<a id="{anchor(rule.id)}"></a>**{rule.id}** {rule.demands} {rule.why} '
        f"*Remedy:* {rule.remedy}"
    )


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
