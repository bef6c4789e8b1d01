"""Token counts without the network, and what is said when the ranks are missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from concur import tokens

RANKS = "fb374d419588a4632f3f557e76b4b70aebbca790"
TEXT = "__global__ void add(const float* x) { x[threadIdx.x] += 1.0f; } // größer"


def count_in_a_fresh_process(
    *, block: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Count tokens where any attempt to connect fails loudly, with some module missing if asked."""
    code = f"""
import socket, sys
def refuse(*_): raise SystemExit("went to the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
blocked = {block!r}
if blocked:
    import importlib.util
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == blocked else find(name, *rest)
from concur import tokens
from concur.errors import MissingDependency
try:
    print(*tokens.count([{TEXT!r}, "", "<|endoftext|>"]))
except MissingDependency as error:
    print("missing:", error)
"""
    caches = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
    kept = {k: v for k, v in os.environ.items() if k not in caches}
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def expected() -> str:
    return " ".join(map(str, tokens.count([TEXT, "", "<|endoftext|>"])))


def test_counts() -> None:
    # Special tokens are plain text here: <|endoftext|> is seven tokens, not one.
    assert tokens.count(["hello world", "", "<|endoftext|>"]) == [2, 0, 7]
    assert tokens.ENCODING == "o200k_base" and tokens.TOKENIZER.startswith("tiktoken 0.")


def test_the_package_fills_our_own_cache(tmp_path: Path) -> None:
    run = count_in_a_fresh_process(XDG_CACHE_HOME=str(tmp_path))
    assert run.stdout.strip() == expected(), run.stderr
    assert [p.name for p in (tmp_path / "concur" / "tiktoken").iterdir()] == [RANKS]


def test_a_given_cache_is_used_and_needs_no_package(tmp_path: Path) -> None:
    count_in_a_fresh_process(XDG_CACHE_HOME=str(tmp_path))
    given = str(tmp_path / "concur" / "tiktoken")
    run = count_in_a_fresh_process(
        block="bpe_openai", TIKTOKEN_CACHE_DIR=given, XDG_CACHE_HOME=str(tmp_path / "none")
    )
    assert run.stdout.strip() == expected(), run.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("content", [None, b"", b"IQ== 0\n"])
def test_a_wrong_file_is_replaced(tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "concur" / "tiktoken"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / RANKS).write_bytes(content)
    run = count_in_a_fresh_process(XDG_CACHE_HOME=str(tmp_path), TIKTOKEN_CACHE_DIR=str(tmp_path))
    assert run.stdout.strip() == expected(), run.stderr
    assert (folder / RANKS).stat().st_size > 3_000_000


def test_without_package_and_cache_one_command_is_named(tmp_path: Path) -> None:
    run = count_in_a_fresh_process(block="bpe_openai", XDG_CACHE_HOME=str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("missing: ")
    assert 'pip install "concur-kernels[tokens]"' in run.stdout
