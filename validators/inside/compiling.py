"""The host of compilers: a library from sources, or an extension by PyTorch's own recipe.

Compilers read hostile text, and some of their flags run programs, so they work in a process that
has nothing to give away. What they print goes into records: it is cut to size, and quotes files of
the solution and headers of the toolchain only (an `#include` may name any file that is readable).
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HOME_MARK = "%HOME%"
"""Stands for the private folder in flags, whose path differs from child to child."""

_MOST_OUTPUT = 64 << 10
_NICE = 10
_HEADERS = ("/usr/include", "/usr/local/include", "/usr/lib", "/usr/lib64", "/usr/local/cuda")
_PASSED_ON = ("PATH", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "TMPDIR", "LANG")
_LOCATED = re.compile(
    r"(?P<path>[^\s:(][^:(]*)(?::(?P<a>\d+)(?::\d+)?:|\((?P<b>\d+)\):|: (?:In|At) )"
)
_TOOL = re.compile(
    r"(?:ptxas|nvcc|nvlink|cicc|cudafe\+\+|fatbinary|collect2|[cg](?:cc|\+\+)|cc1\w*|ninja|FAILED"
    r"|\S*/(?:ld|as|gcc|g\+\+|c\+\+|nvcc)|In file included|Error |Traceback|\[\d+/\d+\]|\d+ error)"
    r"\b"
)


class Server:
    """The commands `compile` and `extension`. Both end in {code, output, size}."""

    def __init__(self, _settings: dict[str, Any]) -> None:
        """Work in the private folder, which is the current one."""
        self._home = Path.cwd()
        # Others may be timing calls: a build takes what processors they leave.
        os.nice(_NICE)

    def compile(self, job: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Run one compiler over files and write the library into the descriptor.

        The job gives `tool`, `leading` and `trailing` flags, `files` and `entry`.
        """
        folder = self._home / "source"
        _write(folder, job["files"])
        flags = [*job["leading"], "-o", "out.so", job["entry"], *job["trailing"]]
        run = subprocess.run(
            [job["tool"], *flags],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        )
        return self._ended(run.returncode, run.stdout, folder, folder / "out.so", descriptors)

    def extension(self, job: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Build as `torch.utils.cpp_extension` does, and import nothing of the result.

        The job gives `name`, `files`, `sources` (paths among them), `flags` (by the name of the
        parameter that takes them), `include` (folders among them) and `with_cuda`.
        """
        from torch.utils import cpp_extension

        _write(self._home, job["files"])
        folder = self._home / "build"
        folder.mkdir()
        here = str(self._home)
        wanted = {
            "name": job["name"],
            "sources": [str(self._home / path) for path in job["sources"]],
            "extra_include_paths": [str(self._home / path) for path in job["include"]],
            "build_directory": str(folder),
            "verbose": False,
            "with_cuda": job["with_cuda"],
            "is_python_module": True,
            "is_standalone": False,
        }
        for kind, flags in job["flags"].items():
            wanted[kind] = [flag.replace(HOME_MARK, here) for flag in flags]
        extension: Any = cpp_extension
        extension._import_module_from_library = lambda *_: None
        build = extension._jit_compile
        code, output = 0, ""
        try:
            # Parameters differ between versions of PyTorch: the rest is what `None` means to them.
            names = inspect.signature(build).parameters
            build(**{name: wanted.get(name) for name in names if name != "keep_intermediates"})
        except (RuntimeError, OSError, ValueError) as error:
            code, output = 1, str(error)
        return self._ended(code, output, self._home, folder / f"{job['name']}.so", descriptors)

    def _ended(
        self, code: int, output: str, folder: Path, built: Path, descriptors: list[int]
    ) -> dict[str, Any]:
        size = 0
        if code == 0 and built.is_file():
            with built.open("rb") as source, os.fdopen(descriptors[0], "wb") as target:
                shutil.copyfileobj(source, target)
                size = target.tell()
        return {"code": code, "output": quotable(output, folder, self._home), "size": size}


def quotable(output: str, folder: Path, home: Path) -> str:
    """Return what may be shown of a compiler's output, with paths relative to `folder`.

    Errors in files other than those below `home` and headers of the toolchain are told by their
    place alone, since message and excerpt would show what is written there.
    """
    kept: list[str] = []
    roots = [str(home), *_header_folders()]
    shown = True
    for line in output.splitlines():
        found = _LOCATED.match(line)
        if found is not None and not _TOOL.match(line):
            shown = _is_below(folder / found["path"], roots)
            if not shown:
                number = found["a"] or found["b"]
                if number:
                    place = f"{found['path']}:{number}"
                    kept.append(f"{place}: error: this file is no part of the solution")
        elif _TOOL.match(line):
            shown = True
        if shown:
            kept.append(line)
    return _cut("\n".join(kept)).replace(f"{folder}/", "").replace(f"{home}/", "")


def _header_folders() -> list[str]:
    folders = [*_HEADERS, sys.prefix, sys.base_prefix + "/include"]
    folders += [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    folders += [path for path in sys.path if path.endswith("-packages")]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        folders.append(str(Path(nvcc).resolve().parent.parent))
    return [os.path.realpath(path) for path in folders]


def _is_below(path: Path, roots: list[str]) -> bool:
    real = os.path.realpath(path)
    return any(real.startswith(f"{root}/") for root in roots if root != "/")


def _write(folder: Path, files: list[dict[str, str]]) -> None:
    for file in files:
        target = folder / file["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file["content"], encoding="utf-8")


def _cut(text: str) -> str:
    if len(text) <= _MOST_OUTPUT:
        return text
    half = _MOST_OUTPUT // 2
    return f"{text[:half]}\n...\n{text[-half:]}"
