"""The last stage of a build: rows to shards, card and manifest, staged and then moved into place.

Everything is written beside the data set first. Then files are renamed one by one, the manifest
last, and only after it old files go. A build that is killed in between leaves a folder whose files
do not match its manifest, which loading refuses and the next build heals.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from concur import __version__, manifest, tokens
from concur.card import CardFacts, render_card
from concur.jsonl import replace as replace_file
from concur.manifest import FORMAT, NAME, FileEntry, Manifest, Tally, content_version, sha256_file
from concur.rows import CONFIGS, RECORDS, RowStore
from concur.schemas.arrow import arrow_schema
from concur.schemas.rules import RULES_VERSION
from concur.shards import Shard, write_split
from concur.splits import SALT, SPLITS

README = "README.md"
# Only files of the names that are given here are ever removed.
_OURS = re.compile(rf"data/({'|'.join(CONFIGS)})/({'|'.join(SPLITS)})-\d{{5}}-of-\d{{5}}\.parquet")


def publish(out: Path, state: Path, rows: RowStore, accounting: Mapping[str, Tally]) -> Manifest:
    """Write the rows as a data set into `out`, in place of what is there; returns its manifest.

    `state` is a folder on the same file system for what is not whole yet.
    """
    staging = state / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    shards = _write_shards(staging, rows)
    entries = tuple(sorted(map(_entry, shards), key=lambda e: e.path))
    version = content_version(__version__, entries)
    card = render_card(CardFacts.gather(rows, shards, accounting, version))
    replace_file(staging / README, card.encode())
    whole = Manifest(
        format=FORMAT,
        version=version,
        library=__version__,
        pyarrow=pa.__version__,
        rules_version=RULES_VERSION,
        split_salt=SALT,
        token_encoding=tokens.ENCODING,
        tokenizer=tokens.TOKENIZER,
        accounting=dict(accounting),
        files=entries,
        readme_sha256=sha256_file(staging / README),
    )
    manifest.write(staging, whole)
    _move(staging, out, whole)
    return whole


def _write_shards(staging: Path, rows: RowStore) -> list[Shard]:
    shards = []
    for config in CONFIGS:
        schema = arrow_schema(RECORDS[config])
        for split, count in rows.counts(config).items():
            shards += write_split(staging, config, split, schema, rows.rows(config, split), count)
    return shards


def _entry(shard: Shard) -> FileEntry:
    plain = asdict(shard)
    del plain["arrow_bytes"]
    return FileEntry(**plain)


def _move(staging: Path, out: Path, whole: Manifest) -> None:
    for entry in whole.files:
        target = out / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        (staging / entry.path).replace(target)
    for name in (README, NAME):
        (staging / name).replace(out / name)
    kept = {entry.path for entry in whole.files}
    for path in sorted((out / "data").glob("*/*.parquet")):
        relative = path.relative_to(out).as_posix()
        if _OURS.fullmatch(relative) and relative not in kept:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
    shutil.rmtree(staging)
