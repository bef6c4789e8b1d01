"""Build what a module asks for while it runs, in a child of its own, and remember what was built.

The request comes from the foreign process: nothing in it is taken for granted but its being JSON.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concur.schemas.solution import Solution
from concur.validators.compile import build, key_of, refused_flag, required
from concur.validators.store import Store

MOST_BUILDS = 8
"""Builds of one solution."""

FLAG_KINDS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")
"""Parameters of `torch.utils.cpp_extension.load` that take flags."""

_MOST_FLAGS, _MOST_FILES, _MOST_TEXT = 64, 200, 4 << 20
_NAME = re.compile(r"[A-Za-z_]\w{0,99}")
_PATH = re.compile(r"(?!.*(?:^|/)\.\.?(?:/|$))[\w.+-]+(?:/[\w.+-]+)*")
_ARCHITECTURES = re.compile(r"[\w.+; ]{1,100}")
_FLAG = re.compile(r"[^\x00-\x1f\x7f]{0,1000}")


class Malformed(Exception):
    """A request that no program of ours sends."""


class Builder:
    """Answers the build requests of one solution."""

    def __init__(self, solution: Solution, cache: Path, architecture: str, timeout: float) -> None:
        """Build for an architecture such as sm_90; `timeout` in seconds is for each build."""
        self.solution = solution
        self.libraries: list[bytes] = []
        """What was handed out, in order."""
        self.sources: list[dict[str, str]] = []
        """Texts by path that each of them was built from."""
        self.transform: Callable[[str], str] | None = None
        """Applied to every text before it is built."""
        self._store, self._timeout = Store(cache), timeout
        self._architectures = _dotted(architecture)

    def answer(
        self, need: dict[str, Any], _descriptors: list[int]
    ) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Return {} and the descriptor of a library, or {"error": text}, as `Child.needs`.

        Raises Ended where a build does not come to an end of its own, or lacks a tool.
        """
        from concur.validators.arena import sealed  # imports PyTorch

        try:
            library, output = self._build(_request(need, self._architectures))
        except Malformed as error:
            library, output = b"", f"no such build: {error}"
        if not library:
            return {"error": output}, ()
        return {}, (sealed(library),)

    def _build(self, request: dict[str, Any]) -> tuple[bytes, str]:
        if len(self.libraries) >= MOST_BUILDS:
            raise Malformed(f"more than {MOST_BUILDS} builds in one solution")
        if self.transform is not None:
            for file in request["files"]:
                file["content"] = self.transform(file["content"])
        library, output = self._cached(request)
        if library:
            self.libraries.append(library)
            self.sources.append({file["path"]: file["content"] for file in request["files"]})
        return library, output

    def _cached(self, request: dict[str, Any]) -> tuple[bytes, str]:
        versions = [required(tool) for tool in _tools(request)]
        key = key_of("extension", _torch_version(), versions, request)
        with self._store.building(key):
            library = self._store.get(key)
            if library is not None:
                return library, ""
            environment = {"TORCH_CUDA_ARCH_LIST": request["architectures"], "MAX_JOBS": "2"}
            built = build("extension", "ninja", self._timeout, environment, **request)
            if built.library:
                self._store.put(key, built.library)
        return built.library, built.output or "no library came out"


def _request(need: dict[str, Any], architectures: str) -> dict[str, Any]:
    """Return the job of a build child. Raises Malformed."""
    if need.get("need") != "build":
        raise Malformed("only builds can be asked for")
    files = _files(need.get("files"))
    paths = {file["path"] for file in files}
    sources = _strings(need.get("sources"), _PATH, _MOST_FILES)
    if not sources or not paths.issuperset(sources):
        raise Malformed("sources that did not come along")
    given = need.get("flags")
    if not isinstance(given, dict):
        raise Malformed("flags")
    flags = {kind: _strings(given.get(kind), _FLAG, _MOST_FLAGS) for kind in FLAG_KINDS}
    refused = next(filter(None, map(refused_flag, flags.values())), "")
    if refused:
        raise Malformed(f"the flag {refused} reads flags from a file")
    wanted = need.get("architectures")
    return {
        "name": _matching(need.get("name"), _NAME),
        "files": files,
        "sources": sources,
        "flags": flags,
        "include": _strings(need.get("include"), _PATH, _MOST_FLAGS),
        "with_cuda": need.get("with_cuda") is True,
        "architectures": _matching(wanted, _ARCHITECTURES) if wanted else architectures,
    }


def _files(given: Any) -> list[dict[str, str]]:
    if not isinstance(given, list) or len(given) > _MOST_FILES:
        raise Malformed("files")
    found: dict[str, str] = {}
    for file in given:
        content = file.get("content") if isinstance(file, dict) else None
        if not isinstance(content, str):
            raise Malformed("a file without text")
        found[_matching(file.get("path"), _PATH)] = content
    if sum(map(len, found.values())) > _MOST_TEXT:
        raise Malformed(f"more than {_MOST_TEXT} characters")
    return [{"path": path, "content": found[path]} for path in sorted(found)]


def _strings(given: Any, pattern: re.Pattern[str], most: int) -> list[str]:
    if not isinstance(given, list) or len(given) > most:
        raise Malformed("a list that is none, or too long")
    return [_matching(one, pattern) for one in given]


def _matching(given: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(given, str) or pattern.fullmatch(given) is None:
        raise Malformed(f"{str(given)[:80]!r} as a name, path or flag")
    return given


def _tools(request: dict[str, Any]) -> list[str]:
    return ["ninja", "g++", *(["nvcc"] if request["with_cuda"] else [])]


def _torch_version() -> str:
    import torch

    return f"{torch.__version__} {torch.version.git_version}"


def _dotted(architecture: str) -> str:
    """Return an architecture such as sm_90a as PyTorch writes it, 9.0a."""
    number = architecture.removeprefix("sm_")
    digits = number.rstrip("af")
    return f"{digits[:-1]}.{digits[-1]}{number[len(digits) :]}"
