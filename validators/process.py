"""A running child, as the judge sees it: commands out, one answer each in, killed when in doubt."""

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from concur.validators.failures import (
    ChildDied,
    ChildError,
    ChildFailed,
    ChildForged,
    ChildGreedy,
    ChildTimeout,
    ChildUnstarted,
)
from concur.validators.isolation import (
    BOOT,
    ESSENTIAL,
    SOURCES,
    child_environment,
    library_paths,
    make_home,
    plan,
)
from concur.validators.watch import Watch, descendant, mapped_files, memory_kills

_LOG_HEAD, _LOG_TAIL = 16_384, 49_152
_ANSWER_LIMIT = 8 << 20
_DESCRIPTORS = 4

Need = Callable[[dict[str, Any], list[int]], tuple[dict[str, Any], tuple[int, ...]]]
"""Answers what a child asks for in the middle of a command: a message, and descriptors to send,
which are closed here."""


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals have none but their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True)
class ChildSettings:
    """What a child is started with."""

    kind: Literal["launcher", "torch", "build"]
    """launcher: no PyTorch in it. torch: modules and references. build: compilers."""
    device: str
    """cpu or cuda."""
    tf32: bool = False
    """Whether PyTorch may use TF32."""
    threads: int = 1
    """Threads of PyTorch."""
    processes: bool = False
    """Whether it may start programs, which a build may in any case."""
    host_memory: int = 24 << 30
    """Bytes of memory that it may take; beyond that it is killed."""
    environment: dict[str, str] = field(default_factory=dict)
    """Further environment variables."""
    without: tuple[str, ...] = ()
    """Layers of isolation to leave out (namespaces, landlock, seccomp); tests ask for it."""


class Child:
    """One child process. Use it as a context manager: leaving kills all of its processes."""

    def __init__(self, settings: ChildSettings, timeout: float = 180.0) -> None:
        """Start the child, and wait until its host is ready. Raises ChildUnstarted."""
        self.needs: Need | None = None
        self._head, self._tail = bytearray(), bytearray()
        self._pending = b""
        self._home = make_home()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._kills = memory_kills()
        self._process = self._start(settings, theirs)
        theirs.close()
        self._drain = threading.Thread(target=self._drain_log, daemon=True)
        self._drain.start()
        self._watch = Watch(self._process.pid, settings.host_memory)
        try:
            nonce = secrets.token_hex(8)
            self._hand_over(settings, nonce)
            answer = self._answer(nonce, time.monotonic() + timeout, timeout)
            _raise_error(answer)
            self.layers = [str(layer) for layer in answer.get("layers", [])]
            self.pid = descendant(self._process.pid)
        except ChildFailed as error:
            self.close()
            raise ChildUnstarted(str(error)) from None

    def ask(
        self, do: str, timeout: float, *, descriptors: tuple[int, ...] = (), **job: Any
    ) -> dict[str, Any]:
        """Send a command and return the answer.

        Raises ChildFailed; the child is dead after all of them but ChildError.
        """
        nonce = secrets.token_hex(8)
        line = json.dumps({"do": do, "nonce": nonce, **job}).encode() + b"\n"
        deadline = time.monotonic() + timeout
        try:
            self._send(line, descriptors)
        except OSError:
            raise self._death() from None
        answer = self._answer(nonce, deadline, timeout)
        while "need" in answer and self.needs is not None:
            begin = time.monotonic()
            self._grant(answer)
            deadline += time.monotonic() - begin  # a build has a limit of its own
            answer = self._answer(nonce, deadline, timeout)
        if not _has_shape(do, answer):
            self.close()
            raise ChildForged("an answer reached the judge that its own program does not give")
        _raise_error(answer)
        return answer

    def log(self) -> str:
        """Return the beginning and end of what the child printed."""
        cut = b"\n...\n" if len(self._tail) >= _LOG_TAIL else b""
        return (bytes(self._head) + cut + bytes(self._tail)).decode("utf-8", "replace")

    def mapped_files(self) -> list[str]:
        """Return the paths of all files that are mapped into the child, by the kernel's account."""
        return mapped_files(self.pid)

    def close(self) -> None:
        """Kill the child and what is left of its process group. May be called again."""
        if self._socket.fileno() < 0:
            return
        self._watch.stop()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._socket.close()
        # A process that left the group may hold the pipe open: the log is not waited for longer.
        self._drain.join(timeout=2.0)
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> "Child":
        """Return the child itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it."""
        self.close()

    def _start(self, settings: ChildSettings, theirs: socket.socket) -> subprocess.Popen[bytes]:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(settings.threads))
        return subprocess.Popen(
            [sys.executable, "-I", "-c", BOOT, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._home,
            env=child_environment(self._home, {**threads, **settings.environment}),
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )

    def _hand_over(self, settings: ChildSettings, nonce: str) -> None:
        touch = plan(settings.kind, self._home, processes=settings.processes)
        plain = {
            "kind": settings.kind,
            "device": settings.device,
            "nonce": nonce,
            "threads": settings.threads,
            "tf32": settings.tf32,
            "torch_seed": secrets.randbits(62),
            "paths": library_paths() if settings.kind != "launcher" else [],
            "plan": touch | {"without": list(settings.without)},
        }
        payload = json.dumps({"sources": SOURCES, "settings": plain}).encode()
        with contextlib.suppress(OSError):  # a child that died at once is told by its answer
            self._socket.sendall(len(payload).to_bytes(8, "little") + payload)

    def _send(self, line: bytes, descriptors: tuple[int, ...]) -> None:
        sent = socket.send_fds(self._socket, [line], descriptors) if descriptors else 0
        self._socket.sendall(line[sent:])

    def _grant(self, asked: dict[str, Any]) -> None:
        assert self.needs is not None
        message, descriptors = self.needs(asked, [])
        try:
            self._send(json.dumps(message).encode() + b"\n", descriptors)
        except OSError:
            raise self._death() from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _answer(self, nonce: str, deadline: float, timeout: float) -> dict[str, Any]:
        line = self._line(deadline, timeout)
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
            ready, _, _ = select.select([self._socket], [], [], max(0.0, left))
            if not ready:
                self.close()
                raise ChildTimeout(f"no answer within {timeout:g} s")
            try:
                data = self._socket.recv(1 << 16)  # descriptors that come along are dropped
            except OSError:
                data = b""
            if not data:
                raise self._death()
            self._pending += data
            if len(self._pending) > _ANSWER_LIMIT:
                self.close()
                raise ChildForged("more bytes reached the judge than its own program writes")
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _death(self) -> ChildFailed:
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.close()
            return ChildDied("closed its connection to the judge")
        greed = self._watch.found
        self.close()
        if greed is not None:
            return ChildGreedy(*greed)
        if code > 128:
            # The first process of a namespace cannot end by a signal of its own: it tells it so.
            code = 128 - code
        if code < 0:
            killed = -code == signal.SIGKILL and memory_kills() > self._kills
            return ChildDied(f"was killed by {signal_name(-code)}", killed=killed)
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


@lru_cache(maxsize=1)
def missing_layers() -> tuple[str, ...]:
    """Return the essential layers that this machine does not offer. Raises ChildFailed."""
    with Child(ChildSettings("launcher", "cpu")) as child:
        return tuple(layer for layer in ESSENTIAL if layer not in child.layers)


def _has_shape(do: str, answer: dict[str, Any]) -> bool:
    """Whether an answer has the shape that the child's program gives it."""
    if "error" in answer:
        return isinstance(answer["error"], dict)
    match do:
        case "call":
            lists = [answer.get(k) for k in ("results", "notes")]
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


def _raise_error(answer: dict[str, Any]) -> None:
    if isinstance(error := answer.get("error"), dict):
        raise ChildError(str(error.get("kind")), str(error.get("text"))[-16_000:])
