"""The card: generated from the rows, complete, and readable by the Hub's own reader."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import DatasetCard

from concur import manifest
from concur.card import TEMPLATE, card_body, percentile
from concur.card_header import size_category
from concur.pipeline import BuildOptions, build
from concur.rows import CONFIGS, RECORDS

Factory = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path, write_corpus: Factory) -> Path:
    out = tmp_path / "out"
    build(BuildOptions(out, sources=(write_corpus(3),), trust_recorded=True))
    return out


def test_the_front_matter(folder: Path) -> None:
    data = DatasetCard.load(folder / "README.md").data.to_dict()
    version = manifest.read(folder).version
    assert [c["config_name"] for c in data["configs"]] == list(CONFIGS)
    assert {c["version"] for c in data["configs"]} == {version}
    assert [c["config_name"] for c in data["configs"] if c.get("default")] == ["triplets"]
    assert {i["config_name"] for i in data["dataset_info"]} == set(CONFIGS)
    for info in data["dataset_info"]:
        assert {s["name"]: s["num_examples"] for s in info["splits"]} == manifest.read(folder).rows(
            info["config_name"]
        )
    assert data["license"] == "apache-2.0" and data["size_categories"] == ["n<1K"]


def test_every_pattern_matches_exactly_its_files(folder: Path) -> None:
    data = DatasetCard.load(folder / "README.md").data.to_dict()
    matched = []
    for config in data["configs"]:
        for entry in config["data_files"]:
            matched += [p.relative_to(folder).as_posix() for p in folder.glob(entry["path"])]
    assert sorted(matched) == [f.path for f in manifest.read(folder).files]


def test_the_words(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    for told in (
        "leak check not run",
        "written for the sample, not sampled",
        "| `triplets` | 1 | 1 | 1 | 3 |",
        "| elementwise | 3 |",
        "| NVIDIA H200 | 2026-12-01 | 2026-12-01 | 9 |",
        "| passed | 6 |",
        "| wrong_values | 3 |",
        "| solution | 9 | 6 | 3 | 0 |",
    ):
        assert told in text
    assert str(folder) not in text


def test_every_column_is_described(folder: Path) -> None:
    body = card_body((folder / "README.md").read_text())
    for config in CONFIGS:
        part = body.partition(f"### `{config}`\n")[2].partition("\n### ")[0]
        for name in RECORDS[config].model_fields:
            (line,) = [ln for ln in part.splitlines() if ln.startswith(f"| `{name}` |")]
            assert len(line.split("|")[3].strip()) > 5, line


def test_the_body_is_the_template_where_nothing_is_generated(folder: Path) -> None:
    lines = TEMPLATE.read_text().splitlines()
    body = card_body((folder / "README.md").read_text()).splitlines()
    remaining = iter(body)
    assert all(line in remaining for line in lines)


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (5, 1), (50, 2), (75, 3), (95, 4)])
def test_percentile(percent: int, expected: int) -> None:
    assert percentile([1, 2, 3, 4], percent) == expected


@pytest.mark.parametrize(
    ("rows", "expected"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10**8, "n>10M")]
)
def test_size_category(rows: int, expected: str) -> None:
    assert size_category(rows) == expected
