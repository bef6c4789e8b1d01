"""`dataset_card.md` is the card of a build of our own corpus; there is none without verdicts."""

from pathlib import Path

from concur.builders.folder import CORPUS, find_samples, read_sample
from concur.card import card_body
from concur.pipeline import BuildOptions, build

CARD = Path(__file__).parent.parent.parent / "dataset_card.md"


def test_the_card_has_not_drifted(tmp_path: Path) -> None:
    reads = [read_sample(path) for path in find_samples(CORPUS)]
    if not any(read.recorded.verdicts for read in reads):
        assert not CARD.exists(), "a card needs verdicts"
        return
    build(BuildOptions(tmp_path / "out"))
    # The front matter holds hashes of files, which depend on the version of pyarrow.
    built = card_body((tmp_path / "out" / "README.md").read_text())
    told = "build the corpus and copy its README.md to dataset_card.md"
    assert card_body(CARD.read_text(encoding="utf-8")) == built, told
