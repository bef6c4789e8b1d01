"""Extensions that a module builds while it runs: the judge builds them, this loads the library.

No process can be started here. `torch.utils.cpp_extension` does all that leads up to a build by
itself, such as turning strings into files; only `_jit_compile`, to which every way leads, is
replaced, along with what would start programs on the way there.
"""

import importlib.machinery
import importlib.util
import inspect
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import cpp_extension

from concur.validators.inside import serve
from concur.validators.inside.compiling import HOME_MARK

_FLAG_KINDS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")
_SUFFIXES = frozenset(
    ".h .hh .hpp .hxx .cuh .inl .inc .ipp .tpp .c .cc .cpp .cxx .cu".split()  # noqa: SIM905
)
_CUDA = (".cu", ".cuh")
_MOST_FILE = 1 << 20


def intercept() -> None:
    """Have the judge do every build from now on. Call it before the module is imported."""
    extension: Any = cpp_extension
    if isinstance(extension._jit_compile, _Builds):
        return
    home = Path.cwd()
    os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(home / "extensions"))
    extension._jit_compile = _Builds(home, inspect.signature(extension._jit_compile))
    replaced: dict[str, Callable[..., Any]] = {
        "is_ninja_available": lambda: True,
        "verify_ninja_availability": lambda: None,
        "check_compiler_ok_for_platform": lambda *_: True,
        "check_compiler_is_gcc": lambda *_: True,
        "_check_and_build_extension_h_precompiler_headers": lambda *_, **__: None,
        "remove_extension_h_precompiler_headers": lambda: None,
    }
    for name, function in replaced.items():
        if hasattr(extension, name):
            setattr(extension, name, function)


class _Builds:
    """Stands in for `_jit_compile`."""

    def __init__(self, home: Path, signature: inspect.Signature) -> None:
        self._home, self._signature = home, signature
        self._loaded: dict[str, Any] = {}
        self._versions: dict[str, int] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        bound = self._signature.bind(*arguments, **named)
        bound.apply_defaults()
        asked = bound.arguments
        if asked.get("is_standalone"):
            raise RuntimeError("a standalone program could not be started here")
        if asked.get("with_sycl"):
            raise RuntimeError("there is no SYCL here")
        request = self._request(asked)
        key = json.dumps([request, bool(asked["is_python_module"])])
        if key not in self._loaded:
            self._loaded[key] = self._load(request, asked["is_python_module"])
        return self._loaded[key]

    def _load(self, request: dict[str, Any], is_python_module: bool) -> Any:
        # As PyTorch does: another build of the same name in one process takes another name.
        base = request["name"]
        version = self._versions.get(base, -1) + 1
        name = f"{base}_v{version}" if version else base
        answer, descriptors = serve.ask({"need": "build", **request, "name": name})
        if "error" in answer or not descriptors:
            text = answer.get("error", "no library came back")
            raise RuntimeError(f"Error building extension {name!r}: {text}")
        self._versions[base] = version
        # Never closed: the loader would take another library of the same path for this one.
        path = f"/proc/self/fd/{descriptors[0]}"
        if not is_python_module:
            load: Callable[[str], None] = torch.ops.load_library
            load(path)
            return None
        return _import(name, path)

    def _request(self, asked: dict[str, Any]) -> dict[str, Any]:
        sources = [self._inside(path) for path in asked["sources"]]
        include = [Path(path).resolve() for path in asked["extra_include_paths"] or []]
        # Folders of the machine are left out: their headers are no part of the solution.
        include = [path for path in include if path.is_relative_to(self._home)]
        flags = {
            kind: [str(f).replace(str(self._home), HOME_MARK) for f in _list(asked.get(kind))]
            for kind in _FLAG_KINDS
        }
        folders = [source.parent for source in sources] + include
        folders += [self._home / f for kind in flags.values() for f in _named(kind)]
        with_cuda = asked["with_cuda"]
        if with_cuda is None:
            with_cuda = any(source.suffix in _CUDA for source in sources)
        return {
            "name": str(asked["name"]),
            "files": [
                {"path": str(path.relative_to(self._home)), "content": text}
                for path, text in sorted(_texts(sources, folders).items())
            ],
            "sources": [str(source.relative_to(self._home)) for source in sources],
            "flags": flags,
            "include": [str(path.relative_to(self._home)) for path in include],
            "with_cuda": bool(with_cuda),
            "architectures": os.environ.get("TORCH_CUDA_ARCH_LIST", ""),
        }

    def _inside(self, path: Any) -> Path:
        found = Path(path).resolve()
        if not found.is_relative_to(self._home):
            raise RuntimeError(f"the source {path} is no part of the solution")
        return found


def _list(given: Any) -> list[Any]:
    return list(given or [])


def _named(flags: list[str]) -> Iterator[str]:
    """Yield folders of the private one that flags such as -I name, relative to it."""
    for flag in flags:
        _, mark, path = flag.partition(f"{HOME_MARK}/")
        if mark:
            yield path


def _texts(sources: list[Path], folders: list[Path]) -> dict[Path, str]:
    """Return the text of the sources, and of files beside and below that they may include."""
    found = {path: path.read_text(encoding="utf-8") for path in sources}
    for folder in folders:
        for path in folder.rglob("*") if folder.is_dir() else ():
            fits = path.suffix in _SUFFIXES and path.is_file()
            if path not in found and fits and path.stat().st_size <= _MOST_FILE:
                found[path] = path.read_text(encoding="utf-8", errors="replace")
    return found


def _import(name: str, path: str) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
