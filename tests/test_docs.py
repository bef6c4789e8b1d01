"""What the documents say is there is there, and the README's Python runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from concur.cli import main
from concur.pipeline import BuildOptions, build

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md")
COMMANDS = sorted(main.commands)


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def checkout(tmp_path: Path, recorded_samples: Path) -> Path:
    """A folder that looks to the examples as a checkout does after `make dataset`.

    The data set is built from one sample with a made-up verdict, so that the documents stay
    testable when the corpus has to be judged again.
    """
    (tmp_path / "builders").symlink_to(ROOT / "builders")
    build(BuildOptions(out=tmp_path / "data", sources=(recorded_samples,), trust_recorded=True))
    return tmp_path


def test_readme_has_examples() -> None:
    assert len(python_blocks()) >= 2


@pytest.mark.parametrize("block", python_blocks())
def test_example_runs(block: str, checkout: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-P", "-c", block], cwd=checkout, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


@pytest.mark.parametrize("name", COMMANDS)
def test_command_is_documented(name: str) -> None:
    assert re.search(rf"`(concur )?{name}`|concur {name}\b", README), f"README lacks {name}"
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    _, examples = result.stdout.split("Examples:\n")
    assert f"concur {name}" in examples
    assert main.commands[name].get_short_help_str()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_commands_exist(name: str) -> None:
    for command in re.findall(r"(?:^|`|bin/)concur ([a-z][a-z-]*)", text_of(name), re.MULTILINE):
        assert command in COMMANDS, f"{name} names `concur {command}`"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_make_targets_exist(name: str) -> None:
    makefile = text_of("Makefile")
    for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text_of(name), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{name} names `make {target}`"


def test_every_make_target_is_declared_and_documented() -> None:
    makefile = text_of("Makefile")
    targets = re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert sorted(phony.group(1).split()) == sorted(targets)
    for target in targets:
        assert f"make {target}" in README, f"README lacks make {target}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_files_exist(name: str) -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", text_of(name)):
        assert (ROOT / path).exists(), f"{name} links to {path}"
    for path in re.findall(
        r"`((?:concur|schemas|builders|validators|tests)/[\w/.-]*\w)/?`", text_of(name)
    ):
        assert (ROOT / path).exists(), f"{name} names {path}"


def test_annotated_tree_is_the_tree() -> None:
    section = README.split("## What is where")[1].split("```")[1]
    tops = re.findall(r"^([a-z]+)/", section, re.MULTILINE)
    hidden = {"data", "build", "dist"}
    folders = {p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(".")}
    assert set(tops) == {f for f in folders - hidden if not f.endswith(".egg-info")}


def test_guide_for_changes_is_short() -> None:
    assert len(text_of("AGENTS.md").split("\n")) <= 60


def test_version_is_in_the_changelog() -> None:
    from concur import __version__

    assert f"\n## {__version__}" in text_of("CHANGELOG.md")
