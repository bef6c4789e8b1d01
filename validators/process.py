"""A running child, as the judge sees it: commands out, one answer each in, killed when in doubt."""

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concur.validators.isolation import CHILD, child_environment, library_paths

_LOG_HEAD, _LOG_TAIL = 16_384, 49_152
_ANSWER_LIMIT = 4 << 20


class ChildFailed(Exception):
    """Base of everything that can go wrong with a child."""


class ChildTimeout(ChildFailed):
    """No answer in time; the child was killed. The text says after how many seconds."""


class ChildDied(ChildFailed):
    """The child ended; the text says by which signal or exit code."""

    def __init__(self, text: str, *, killed: bool = False) -> None:
        """Take the text, and whether it was SIGKILL: not ours, so most likely the kernel's, for
        want of memory."""
        super().__init__(text)
        self.killed = killed


class ChildForged(ChildFailed):
    """A line came back that the child's own program did not write."""


class ChildError(ChildFailed):
    """The child answered with an error; `kind` is its kind, the text the traceback."""

    def __init__(self, kind: str, text: str) -> None:
        """Take the kind and the text."""
        super().__init__(text)
        self.kind = kind


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals have none but their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True)
class ChildSettings:
    """What a child is started with."""

    device: str
    """cpu or cuda."""
    folder: Path
    """Private folder, which must exist."""
    tf32: bool = False
    """Whether PyTorch may use TF32."""
    threads: int = 1
    """Threads of PyTorch."""
    environment: dict[str, str] = field(default_factory=dict)
    """Further environment variables."""


def _has_shape(do: str, answer: dict[str, Any]) -> bool:
    """Whether an answer has the shape that the child's program gives it."""
    if "error" in answer:
        return isinstance(answer["error"], dict)
    match do:
        case "run":
            lists = [answer.get(k) for k in ("results", "mutated", "notes")]
            return all(isinstance(x, list) for x in lists) and all(
                isinstance(said, dict) for said in answer["results"]
            )
        case "profile":
            kernels = answer.get("kernels")
            return isinstance(kernels, list) and all(
                isinstance(k, list) and len(k) == 2 and isinstance(k[1], float | int)
                for k in kernels
            )
    return True


class Child:
    """One child process. Use it as a context manager: leaving kills the whole process group."""

    def __init__(self, settings: ChildSettings, timeout: float = 180.0) -> None:
        """Start the child, and wait until it has imported PyTorch. Raises ChildFailed."""
        self.folder = settings.folder
        self._head, self._tail = bytearray(), bytearray()
        self._pending = b""
        command_read, self._commands = os.pipe()
        self._replies, reply_write = os.pipe()
        nonce = secrets.token_hex(8)
        plain = {
            "device": settings.device,
            "commands": command_read,
            "replies": reply_write,
            "nonce": nonce,
            "threads": settings.threads,
            "tf32": settings.tf32,
            "torch_seed": secrets.randbits(62),
            "paths": library_paths(),
        }
        threads = {"OMP_NUM_THREADS": str(settings.threads)}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", CHILD, json.dumps(plain)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=settings.folder,
            env=child_environment(settings.folder, {**threads, **settings.environment}),
            pass_fds=(command_read, reply_write),
            start_new_session=True,
        )
        os.close(command_read)
        os.close(reply_write)
        self._drain = threading.Thread(target=self._drain_log, daemon=True)
        self._drain.start()
        try:
            self.layers: list[str] = list(self._answer(nonce, timeout)["layers"])
        except ChildFailed:
            self.close()
            raise

    def ask(self, do: str, timeout: float, **job: Any) -> dict[str, Any]:
        """Send a command and return the answer. Raises ChildFailed; the child is dead after all of
        them but ChildError."""
        nonce = secrets.token_hex(8)
        line = json.dumps({"do": do, "nonce": nonce, **job}).encode() + b"\n"
        try:
            self._send(line)
        except OSError:
            raise self._death() from None
        answer = self._answer(nonce, timeout)
        if not _has_shape(do, answer):
            self.close()
            raise ChildForged("an answer reached the judge that its own program does not give")
        error = answer.get("error")
        if isinstance(error, dict):
            raise ChildError(str(error.get("kind")), str(error.get("text"))[-16_000:])
        return answer

    def log(self) -> str:
        """Return the beginning and end of what the child printed."""
        cut = b"\n...\n" if len(self._tail) >= _LOG_TAIL else b""
        return (bytes(self._head) + cut + bytes(self._tail)).decode("utf-8", "replace")

    def close(self) -> None:
        """Kill the child and what is left of its process group. May be called again."""
        if self._commands < 0:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for descriptor in (self._commands, self._replies):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._commands = self._replies = -1
        # A process that left the group may hold the pipe open: the log is not waited for longer.
        self._drain.join(timeout=2.0)

    def __enter__(self) -> "Child":
        """Return the child itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it."""
        self.close()

    def _send(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._commands, line) :]

    def _answer(self, nonce: str, timeout: float) -> dict[str, Any]:
        line = self._line(time.monotonic() + timeout, timeout)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("nonce") != nonce:
            self.close()
            raise ChildForged("a line reached the judge that its own program did not write")
        return answer

    def _line(self, deadline: float, timeout: float) -> bytes:
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._replies], [], [], max(0.0, left))
            if not ready:
                self.close()
                raise ChildTimeout(f"no answer within {timeout:g} s")
            data = os.read(self._replies, 1 << 16)
            if not data:
                raise self._death()
            self._pending += data
            if len(self._pending) > _ANSWER_LIMIT:
                self.close()
                raise ChildForged("more bytes reached the judge than its own program writes")
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _death(self) -> ChildDied:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.close()
            return ChildDied("closed its pipe to the judge")
        self.close()
        if code < 0:
            return ChildDied(f"was killed by {signal_name(-code)}", killed=-code == signal.SIGKILL)
        return ChildDied(f"ended by itself with exit code {code}")

    def _drain_log(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        descriptor = stream.fileno()
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:
                return
            if not data:
                stream.close()
                return
            room = _LOG_HEAD - len(self._head)
            self._head += data[: max(0, room)]
            self._tail = (self._tail + data[max(0, room) :])[-_LOG_TAIL:]
