"""Rules are told apart by id; a change of the judge reminds whoever makes it of the version."""

import ast
import hashlib
from pathlib import Path

from concur.schemas.rules import RULES_VERSION
from concur.validators.rules import RULES

ROOT = Path(__file__).parent.parent.parent / "validators"
RECORDED = Path(__file__).parent / "rules_digest.txt"

# What these modules say cannot change a verdict.
HARMLESS = {"__init__.py", "checks.py", "environment.py", "feedback.py"}

UPDATE = "python -P tests/validators/test_rules.py"


def digest() -> str:
    """Return a hash of what the judge's modules do: comments and docstrings do not count."""
    total = hashlib.sha256(str(RULES_VERSION).encode())
    for path in sorted(ROOT.glob("*.py")):
        if path.name not in HARMLESS:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                body = getattr(node, "body", None)
                if isinstance(body, list):
                    node.body = [n for n in body if not _is_text(n)]  # type: ignore[attr-defined]
            total.update(f"{path.name}\n{ast.dump(tree)}\n".encode())
    return total.hexdigest()


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_changes_of_the_judge_are_deliberate() -> None:
    recorded = RECORDED.read_text(encoding="utf-8").strip()
    assert digest() == recorded, (
        "the judge's sources changed: raise RULES_VERSION in schemas/rules.py if a verdict "
        f"could come out differently, then record the new digest with `{UPDATE}`"
    )


def test_every_rule_that_is_used_is_explained() -> None:
    heads = {rule.partition(".")[0] for rule in RULES}
    used = set()
    for path in ROOT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                head, _, tail = node.value.partition(".")
                if head in heads and tail.replace("-", "").isalpha() and tail != "json":
                    used.add(node.value)
    assert used and used <= RULES.keys()
    # Admission puts its rules together from the names of its gates.
    assert {r for r in RULES.keys() - used if not r.startswith("admission.")} == set()


if __name__ == "__main__":
    RECORDED.write_text(digest() + "\n", encoding="utf-8")
