"""Watch a child from outside: what memory and threads it takes, what files it has mapped.

Reads /proc, where the kernel tells; nothing that the child says is asked for.
"""

import contextlib
import os
import signal
import threading
from pathlib import Path

MOST_THREADS = 4096
"""Threads of a child; the CUDA driver and PyTorch stay far below."""

_EVERY_S = 0.05
_DEEPEST = 8


def descendant(pid: int) -> int:
    """Return the process that a chain of waiting parents ends in: `pid` itself without children."""
    for _ in range(_DEEPEST):
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return pid
        if len(children) != 1:
            return pid
        pid = int(children[0])
    return pid


def mapped_files(pid: int) -> list[str]:
    """Return the paths of all files that are mapped into a process, sorted; none when it ended."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []
    fields = (line.split(maxsplit=5) for line in lines)
    return sorted({f[5] for f in fields if len(f) == 6 and f[5].startswith("/")})


def memory_kills() -> int:
    """Return how many processes the kernel has killed for want of memory since it started."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


class Watch:
    """A thread that kills a child which takes too much. `found` is the rule and a sentence."""

    def __init__(self, pid: int, memory: int) -> None:
        """Watch the child that started as `pid` and its descendants; `memory` in bytes."""
        self.found: tuple[str, str] | None = None
        self._pid, self._memory = pid, memory
        self._stopped = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            pid = descendant(self._pid)
            memory, threads = _taken(pid)
            if memory > self._memory:
                self.found = ("run.host-memory", f"took {memory >> 20} MiB of memory")
            elif threads > MOST_THREADS:
                self.found = ("run.threads", f"started {threads} threads")
            else:
                continue
            for victim in (pid, self._pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(victim, signal.SIGKILL)
            return


def _taken(pid: int) -> tuple[int, int]:
    """Return bytes of anonymous memory and number of threads of a process."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    memory = int(told.get("RssAnon", "0 kB").split()[0]) << 10
    return memory, int(told.get("Threads", "0"))
