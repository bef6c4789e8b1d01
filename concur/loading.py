"""Loading a data set the safe way: whole files, the right rows, never another build's.

`datasets.load_dataset` works on the same folder or repository; what is added here is the comparison
with the manifest before and after.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from concur import manifest
from concur.errors import ConcurError, IntegrityError
from concur.manifest import Manifest

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

    Loaded: TypeAlias = Dataset | DatasetDict | IterableDataset | IterableDatasetDict


def load(
    path_or_repo: str | os.PathLike[str],
    config: str = "triplets",
    *,
    split: str | None = None,
    streaming: bool = False,
    columns: Sequence[str] | None = None,
    filters: Sequence[Any] | None = None,
    revision: str | None = None,
    verify: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
) -> "Loaded":
    """Load one config of a built data set, from a local folder or from the Hub.

    `split`, `streaming`, `columns` and `filters` (such as `[("speedup", ">", 1.0)]`) are those of
    `datasets`. Returns what `load_dataset` returns. `revision` is for the Hub: with a local folder,
    which has none, it raises ConcurError.

    With `verify`, the files of a local folder are compared with the SHA-256 in its manifest first,
    and row counts with it afterwards (unless filtered or streamed; on the Hub where it has a
    manifest that can be fetched). Raises IntegrityError naming what differs, or the configs that
    there are.
    """
    from datasets import load_dataset

    place = os.fspath(path_or_repo)
    if revision is not None and Path(place).is_dir():
        raise ConcurError(f"{place} is a local folder, which has no revision; leave `revision` out")
    known = _known(place, config, revision) if verify else None
    options: dict[str, Any] = {"split": split, "streaming": streaming, "revision": revision}
    if cache_dir is not None:
        options["cache_dir"] = os.fspath(cache_dir)
    if columns is not None:
        options["columns"] = list(columns)
    if filters is not None:
        options["filters"] = list(filters)
    loaded: Loaded = load_dataset(place, config, **options)
    if known is not None and not streaming and filters is None:
        _compare(known, config, split, loaded, place)
    return loaded


def _known(place: str, config: str, revision: str | None) -> Manifest | None:
    """Return the manifest of a data set; files of a local folder are compared with it."""
    folder = Path(place)
    if not folder.is_dir():
        return _fetch(place, revision)
    known = manifest.read(folder)
    _refuse_unknown(known, config, folder)
    manifest.verify(folder, known.of(config))
    return known


def _refuse_unknown(known: Manifest, config: str, folder: Path) -> None:
    if config not in known.configs:
        raise IntegrityError(
            f"{folder} has no config {config!r}; it has {', '.join(known.configs) or 'none'}"
        )


def _fetch(repository: str, revision: str | None) -> Manifest | None:
    """Return the manifest of a repository; None when it cannot be had, such as without network."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        path = hf_hub_download(repository, manifest.NAME, repo_type="dataset", revision=revision)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError):
        return None  # load_dataset tells what is wrong with the repository, if anything is
    return manifest.parse(Path(path).read_bytes(), f"{repository}/{manifest.NAME}")


def _compare(known: Manifest, config: str, split: str | None, loaded: "Loaded", place: str) -> None:
    """Compare row counts with the manifest, which knows none of slices such as train[:10]."""
    from datasets import Dataset, DatasetDict

    expected = known.rows(config)
    if isinstance(loaded, DatasetDict):
        found = {name: part.num_rows for name, part in loaded.items()}
    elif isinstance(loaded, Dataset) and split in expected:
        found = {split: loaded.num_rows}
        expected = {split: expected[split]}
    else:
        return
    if found != expected:
        raise IntegrityError(
            f"{place}, config {config}: loaded {found}, but the manifest says {expected}; the "
            "cache holds another build: pass a fresh cache_dir"
        )
