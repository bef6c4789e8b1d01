"""`dataset_card.md` is the card of a build of our own corpus; there is none without verdicts."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from concur import tokens
from concur.builders.folder import CORPUS, find_samples, read_sample
from concur.card import card_body
from concur.pipeline import BuildOptions, build

CARD = Path(__file__).parent.parent.parent / "dataset_card.md"


def comparable(text: str) -> str:
    """The body of a card, without what depends on versions that are installed.

    The front matter holds hashes of files, which depend on the version of pyarrow.
    """
    return re.sub(r"\btiktoken \d[\w.+-]*", "tiktoken VERSION", card_body(text))


def test_another_tiktoken_is_no_drift(
    tmp_path: Path, write_corpus: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, cards = write_corpus(1), []
    for version in ("0.12.0", "1.0.0rc1"):
        monkeypatch.setattr(tokens, "TOKENIZER", f"tiktoken {version}")
        build(BuildOptions(tmp_path / version, sources=(corpus,), trust_recorded=True))
        cards.append((tmp_path / version / "README.md").read_text(encoding="utf-8"))
        assert f"tiktoken {version}" in card_body(cards[-1])
    assert comparable(cards[0]) == comparable(cards[1])
    assert comparable(cards[0]) != comparable(f"{cards[0]}another word")


def test_the_card_has_not_drifted(tmp_path: Path) -> None:
    reads = [read_sample(path) for path in find_samples(CORPUS)]
    if not any(read.recorded.verdicts for read in reads):
        assert not CARD.exists(), "a card needs verdicts"
        return
    build(BuildOptions(tmp_path / "out"))
    built = comparable((tmp_path / "out" / "README.md").read_text(encoding="utf-8"))
    told = "build the corpus and copy its README.md to dataset_card.md"
    assert comparable(CARD.read_text(encoding="utf-8")) == built, told
