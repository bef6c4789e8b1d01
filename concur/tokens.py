"""Token counts with OpenAI's o200k_base, without the network.

tiktoken wants a file of ranks, which it would fetch from the network on first use. It comes from
the first of: the folder named by TIKTOKEN_CACHE_DIR (or DATA_GYM_CACHE_DIR), our own cache folder,
the package `bpe-openai` (extra `tokens`), which is unpacked into our cache folder. The hash of the
file is checked here, since tiktoken answers a wrong one with a download.
"""

import gzip
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from concur import jsonl
from concur.errors import MissingDependency

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODING = "o200k_base"
"""Name of the encoding of every count."""
TOKENIZER = f"tiktoken {version('tiktoken')}"
"""Library and version that counts."""
INSTALL = 'pip install "concur-kernels[tokens]"'
"""Command that brings the ranks."""

_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_FILE = hashlib.sha1(_URL.encode(), usedforsecurity=False).hexdigest()
_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")


def count(texts: Iterable[str]) -> list[int]:
    """Return the number of tokens of every text; text that looks like a special token is text.

    Raises MissingDependency, with the command to run, when the ranks are nowhere on this machine.
    """
    encoding = _encoding()
    return [len(encoding.encode_ordinary(text)) for text in texts]


@cache
def _encoding() -> "Encoding":
    import tiktoken

    with _cache_variable(_ranks_folder()):
        return tiktoken.get_encoding(ENCODING)


def _ranks_folder() -> Path:
    """Return a folder that holds the ranks under the name that tiktoken looks for."""
    for variable in _CACHE_VARIABLES:
        given = os.environ.get(variable)
        if given and _is_whole(Path(given) / _FILE):
            return Path(given)
    folder = _own_cache()
    if not _is_whole(folder / _FILE):
        data = _packaged()
        folder.mkdir(parents=True, exist_ok=True)
        jsonl.replace(folder / _FILE, data)
    return folder


def _own_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "concur" / "tiktoken"


def _packaged() -> bytes:
    """Return the ranks that the package carries; the package itself is not imported."""
    spec = importlib.util.find_spec("bpe_openai")
    if spec is None or spec.origin is None:
        raise MissingDependency(f"token counts need the ranks of {ENCODING}: {INSTALL}")
    path = Path(spec.origin).parent / "data" / f"{ENCODING}.tiktoken.gz"
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise MissingDependency(f"{path} cannot be read ({error}): {INSTALL}") from error
    if hashlib.sha256(data).hexdigest() != _SHA256:
        raise MissingDependency(
            f"{path} does not hold the ranks of {ENCODING} that tiktoken knows: {INSTALL}"
        )
    return data


def _is_whole(path: Path) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == _SHA256


@contextmanager
def _cache_variable(folder: Path) -> Iterator[None]:
    """Point tiktoken at a folder while it loads, and leave the environment as it was."""
    before = os.environ.get(_CACHE_VARIABLES[0])
    os.environ[_CACHE_VARIABLES[0]] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_CACHE_VARIABLES[0]]
        else:
            os.environ[_CACHE_VARIABLES[0]] = before
