"""What is on disk is what the wheel holds, and the wheel takes no top-level name but `concur`."""

import re
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAPPED = ("builders", "schemas", "validators")
DATA = {"builders/corpus", "builders/starter", "schemas/generated"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages_on_disk() -> set[str]:
    """Every folder with an __init__.py, by the name that it has inside concur."""
    found = set()
    for top in ("concur", *MAPPED):
        for init in (ROOT / top).rglob("__init__.py"):
            folder = init.parent.relative_to(ROOT)
            through_link = any((ROOT / p).is_symlink() for p in (folder, *folder.parents))
            if not through_link and not any(str(folder).startswith(d) for d in DATA):
                parts = folder.parts if folder.parts[0] == "concur" else ("concur", *folder.parts)
                found.add(".".join(parts))
    return found


@cache
def checkout() -> tuple[str, ...]:
    """Files of the checkout as git knows them; without git, all that no build left behind."""
    run = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = run.stdout.split("\n") if run.returncode == 0 else []
    if not any(names):
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() or p.is_symlink()]
    unwanted = re.compile(r"(\.|build/|dist/|data/|[^/]*\.egg-info/)|.*__pycache__/")
    return tuple(n for n in names if n and (ROOT / n).exists() and not unwanted.match(n))


def tracked(*folders: str) -> set[str]:
    return {n for n in checkout() if any(n.startswith(f"{f}/") for f in folders)}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    out = tmp_path_factory.mktemp("dist")
    # setuptools leaves build/ and *.egg-info beside the sources: it gets a copy of its own.
    copy = tmp_path_factory.mktemp("checkout")
    archive = copy / "checkout.tar"
    subprocess.run(["tar", "-cf", archive, "--", *checkout()], cwd=ROOT, check=True)
    subprocess.run(["tar", "-xf", archive], cwd=copy, check=True)
    archive.unlink()
    command = [
        sys.executable,
        "-P",
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(out),
        ".",
    ]
    run = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def test_every_package_is_listed() -> None:
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_on_disk()


@pytest.mark.parametrize("name", MAPPED)
def test_links_are_relative_links(name: str) -> None:
    link = ROOT / "concur" / name
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{name}"


def test_no_conftest_at_the_root() -> None:
    # It would put the checkout on sys.path, where validators/ hides another package.
    assert not (ROOT / "conftest.py").exists()


def test_wheel_takes_one_top_level_name(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert "concur" in tops
    assert {t for t in tops if not t.endswith(".dist-info")} == {"concur"}


def test_wheel_holds_every_module(wheel: zipfile.ZipFile) -> None:
    listed = set(wheel.namelist())
    modules = {n for n in tracked("concur", *MAPPED) if n.endswith(".py")}
    modules = {n for n in modules if not any(n.startswith(f"{d}/") for d in DATA)}
    expected = {n if n.startswith("concur/") else f"concur/{n}" for n in modules}
    assert {"concur/errors.py", "concur/cli/main.py", "concur/schemas/task.py"} <= expected
    assert expected <= listed


def test_wheel_holds_data(wheel: zipfile.ZipFile) -> None:
    listed = set(wheel.namelist())
    expected = {f"concur/{n}" for n in tracked(*sorted(DATA))}
    assert any(
        n.startswith("concur/builders/corpus/") and n.endswith("task.json") for n in expected
    )
    assert any(n.endswith(".schema.json") for n in expected)
    assert expected | {"concur/py.typed"} <= listed
    assert "concur/card_template.md" in listed


def test_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    (metadata,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    text = wheel.read(metadata).decode()
    assert "Name: concur-kernels\n" in text
    assert "License-Expression: Apache-2.0\n" in text
    (entry,) = (n for n in wheel.namelist() if n.endswith("entry_points.txt"))
    assert "concur = concur.cli:main" in wheel.read(entry).decode()


def test_no_path_of_a_machine() -> None:
    # A test of ours may need such a path: it says somebody's.
    personal = re.compile(r"(?<![\w.-])/(home|root|work|Users)/(?!somebody\b)\w+")
    for name in checkout():
        path = ROOT / name
        if path.is_symlink() or not path.is_file() or name == "tests/test_packaging.py":
            continue
        text = path.read_bytes().decode("utf-8", errors="replace")
        found = personal.search(text)
        assert found is None, f"{name} holds a path of somebody's machine: {found}"
