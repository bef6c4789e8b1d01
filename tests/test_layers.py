"""Imports flow one way, from low layers to high ones; what runs in the child stands alone."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Low to high. A module may import modules of lower layers and of its own; builders and validators
# share a layer but do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "canonical", "jsonl"),
    ("schemas",),
    ("stats", "tokens", "dedup", "ledger", "ledger_file", "splits"),
    ("builders", "validators"),
    (
        "curation",
        "admissions",
        "manifest",
        "pipeline",
        "publishing",
        "reading",
        "rows",
        "selection",
        "shards",
        "card",
        "card_facts",
        "card_header",
        "views",
        "report",
        "generate",
        "training",
        "loading",
        "validate",
        "rejudge",
        "rejudge_workers",
        "starter",
        "doctor",
        "summary",
    ),
    ("hub",),
    ("cli", "__main__"),
)
SIBLINGS = {"builders", "validators"}
TOP_LEVEL = {"schemas", "builders", "validators"}


def sources() -> Iterator[Path]:
    for folder in ("concur", "schemas", "builders", "validators"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT)
            if any(parent.is_symlink() for parent in path.parents if parent != ROOT):
                continue
            if inside.parts[:2] in {("builders", "corpus"), ("builders", "starter")}:
                continue
            yield path


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] != "concur":
        parts = ("concur", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str | None:
    """The part of concur that a module is in; None for the package and for others' modules."""
    parts = module.split(".")
    return parts[1] if parts[0] == "concur" and len(parts) > 1 else None


def layer_of(part: str) -> int:
    found = [i for i, layer in enumerate(LAYERS) if part in layer]
    assert found, f"concur.{part} is in no layer: add it to LAYERS in {Path(__file__).name}"
    return found[0]


def is_upward(importer: str, imported: str) -> bool:
    here, there = layer_of(importer), layer_of(imported)
    return there > here or {importer, imported} == SIBLINGS


ALL = list(sources())
PARTS = {part for layer in LAYERS for part in layer}


@pytest.mark.parametrize("path", ALL, ids=[str(p.relative_to(ROOT)) for p in ALL])
def test_imports_go_downward(path: Path) -> None:
    importer = part_of(module_of(path))
    for name in imports_of(path):
        assert name.split(".")[0] not in TOP_LEVEL, f"{path}: import concur.{name}"
        imported = part_of(name)
        if imported is None or imported.startswith("__"):
            continue
        if importer is None:
            continue  # concur/__init__.py names things for type checkers; see test_import_cost.py
        assert not is_upward(importer, imported), f"{path} imports {name}: that is a higher layer"


def test_every_part_is_seen() -> None:
    parts = {part_of(module_of(path)) for path in ALL} - {None}
    assert parts >= {"schemas", "builders", "validators", "cli", "errors", "canonical", "jsonl"}
    for part in parts:
        assert part is not None
        layer_of(part)


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("schemas", "errors", False),
        ("errors", "schemas", True),
        ("builders", "validators", True),
        ("validators", "builders", True),
        ("builders", "builders", False),
        ("ledger", "builders", True),
        ("builders", "tokens", False),
        ("pipeline", "builders", False),
        ("pipeline", "shards", False),
        ("report", "cli", True),
        ("cli", "report", False),
    ],
)
def test_the_rule_itself(importer: str, imported: str, expected: bool) -> None:
    assert is_upward(importer, imported) is expected


def test_what_runs_in_the_child_imports_nothing_of_the_judge() -> None:
    """A child is handed these files as texts, and lends memory to foreign code."""
    inside = [p for p in ALL if p.is_relative_to(ROOT / "validators" / "inside")]
    assert inside, "the modules of the judge's child are missing"
    for path in inside:
        for name in imports_of(path):
            known = name.split(".")[0] in sys.stdlib_module_names | {"torch"}
            own = f"{name}.".startswith("concur.validators.inside.")
            assert known or own, f"{path} imports {name}"
