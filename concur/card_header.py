"""The YAML front matter of a card: what `datasets` and the Hub read.

Every config entry carries the content version. `datasets` keys its cache by this text, and would
otherwise answer a rebuilt folder, or another folder of the same name, with stale rows.
"""

from typing import Any

from datasets import DatasetInfo
from datasets.info import DatasetInfosDict
from datasets.splits import SplitDict, SplitInfo
from huggingface_hub import DatasetCardData

from concur.card_facts import CardFacts
from concur.rows import RECORDS
from concur.schemas.arrow import features

_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
_TAGS = ["cuda", "gpu-kernels", "kernel-generation", "code", "reasoning"]


def front_matter(facts: CardFacts) -> str:
    """Return the YAML text, without its dashes."""
    licenses = sorted(_hub_license(name) for name in facts.licenses)
    data = DatasetCardData(
        pretty_name="concur",
        language=["en"],
        license=licenses[0] if len(set(licenses)) == 1 else sorted(set(licenses)),
        task_categories=["text-generation"],
        size_categories=[size_category(sum(facts.rows[facts.configs[0]].values()))],
        tags=_TAGS,
        configs=[_config(facts, config) for config in facts.configs],
    )
    infos = DatasetInfosDict({config: _info(facts, config) for config in facts.configs})
    infos.to_dataset_card_data(data)
    text: str = data.to_yaml(line_break="\n")
    return text.rstrip("\n") + "\n"


def size_category(rows: int) -> str:
    """Return the Hub's name of a size."""
    return next((name for bound, name in _SIZES if rows < bound), "n>10M")


def _hub_license(spdx: str) -> str:
    # The Hub writes ids in lower case and knows no expressions.
    return "unknown" if spdx == "unknown" else spdx.lower() if " " not in spdx else "other"


def _config(facts: CardFacts, config: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"config_name": config}
    if config == facts.configs[0]:
        entry["default"] = True
    entry["version"] = facts.version
    of_config = [shard for shard in facts.shards if shard.config == config]
    # The number of files is spelt out, so that a file of an earlier build can never match.
    files = {s: sum(f.split == s for f in of_config) for s in facts.rows[config]}
    entry["data_files"] = [
        {"split": split, "path": f"data/{config}/{split}-*-of-{total:05d}.parquet"}
        for split, total in files.items()
    ]
    return entry


def _info(facts: CardFacts, config: str) -> DatasetInfo:
    splits = SplitDict()
    shards = [s for s in facts.shards if s.config == config]
    for split, count in facts.rows[config].items():
        size = sum(s.arrow_bytes for s in shards if s.split == split)
        splits.add(SplitInfo(split, num_bytes=size, num_examples=count))
    return DatasetInfo(
        features=features(RECORDS[config]),
        splits=splits,
        download_size=sum(s.bytes for s in shards),
        dataset_size=sum(s.arrow_bytes for s in shards),
    )
