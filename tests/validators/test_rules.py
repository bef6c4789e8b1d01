"""Rules are told apart by id; a change of the judge reminds whoever makes it of the version."""

import ast
import hashlib
import re
from pathlib import Path

from concur.schemas.rules import RULES_VERSION
from concur.schemas.verdict import Fault
from concur.validators.ended import finding
from concur.validators.rules import GATES, RULES
from concur.validators.rules_page import PAGE, anchor, page

ROOT = Path(__file__).parent.parent.parent / "validators"
RECORDED = Path(__file__).parent / "rules_digest.txt"

# What these modules say cannot change a verdict.
TEXTS = {path.name for path in ROOT.glob("rule*.py")}
HARMLESS = {"__init__.py", "checks.py", "environment.py", "feedback.py"} | TEXTS

UPDATE = "python -P tests/validators/test_rules.py"


def digest() -> str:
    """Return a hash of what the judge's modules do: comments and docstrings do not count."""
    total = hashlib.sha256(str(RULES_VERSION).encode())
    for path in sorted(ROOT.rglob("*.py")):
        if path.name not in HARMLESS:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                body = getattr(node, "body", None)
                if isinstance(body, list):
                    node.body = [n for n in body if not _is_text(n)]  # type: ignore[attr-defined]
            name = path.relative_to(ROOT).as_posix()
            total.update(f"{name}\n{ast.dump(tree)}\n".encode())
    return total.hexdigest()


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_changes_of_the_judge_are_deliberate() -> None:
    recorded = RECORDED.read_text(encoding="utf-8").strip()
    assert digest() == recorded, (
        "the judge's sources changed: raise RULES_VERSION in schemas/rules.py if a verdict "
        f"could come out differently, then record the new digest with `{UPDATE}`"
    )


def ids_in_the_code() -> set[str]:
    """Texts of the judge's modules that look like ids of rules, those of its texts left out."""
    heads = {rule.partition(".")[0] for rule in RULES}
    found = set()
    for path in ROOT.rglob("*.py"):
        if path.name in TEXTS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                head, _, tail = node.value.partition(".")
                if head in heads and re.fullmatch(r"[a-z]+(?:-[a-z]+)*", tail) and tail != "json":
                    found.add(node.value)
    return found


def test_every_rule_that_is_used_is_explained() -> None:
    used = ids_in_the_code()
    assert used and used <= RULES.keys()


def test_every_rule_is_used() -> None:
    # Admission puts its rules together from the names of its gates.
    unused = RULES.keys() - ids_in_the_code()
    assert {rule for rule in unused if not rule.startswith("admission.")} == set()


def test_rules_are_complete_and_each_is_there_once() -> None:
    for name, rule in RULES.items():
        assert name == rule.id and rule.gate in GATES
        texts = (rule.demands, rule.why, rule.remedy)
        assert all(re.fullmatch(r"[^\n]+[.]", text) for text in texts), name
        assert (rule.status is None) <= (rule.fault is Fault.NONE)
        assert str(rule) == rule.demands
    written = [
        m
        for p in ROOT.glob("rules_*.py")
        for m in re.findall(r'"([a-z]+[.][a-z-]+)"', p.read_text())
    ]
    assert len(written) == len(set(written))
    assert len({anchor(rule) for rule in RULES}) == len(RULES)


def test_a_finding_tells_the_remedy_of_its_rule() -> None:
    assert finding("values.exact", "differs").remedy == RULES["values.exact"].remedy
    assert finding("values.exact", "differs", remedy="Do this.").remedy == "Do this."


def test_the_page_of_rules_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


if __name__ == "__main__":
    RECORDED.write_text(digest() + "\n", encoding="utf-8")
