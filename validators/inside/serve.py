"""The loop of a child: isolate, load the host of its kind, then one answer to each command.

A command is a JSON object on a line with `do` and `nonce`; the answer repeats the nonce.
Descriptors ride along. Whatever is answered is hearsay, since foreign code shares this memory.
"""

import contextlib
import json
import os
import re
import socket
import sys
import traceback
from typing import Any

from concur.validators.inside.isolate import enter

_MOST_DESCRIPTORS = 8
_TEXT = 16_000


class Refused(Exception):
    """A fault that has a name of its own: its kind goes into the answer."""

    def __init__(self, kind: str, text: str) -> None:
        """Take the kind (oom, symbol, returned, structure) and a sentence."""
        super().__init__(text)
        self.kind = kind


class Channel:
    """Lines of JSON with descriptors, over one socket."""

    def __init__(self, connection: socket.socket) -> None:
        """Take the socket to the judge."""
        self._connection = connection
        self._pending = b""
        self._descriptors: list[int] = []

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return the next message and its descriptors; None when the judge has gone."""
        while b"\n" not in self._pending:
            part, descriptors, _, _ = socket.recv_fds(self._connection, 1 << 16, _MOST_DESCRIPTORS)
            self._descriptors += descriptors
            if not part:
                return None
            self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        came, self._descriptors = self._descriptors, []
        return json.loads(line), came

    def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises OSError when the judge has gone."""
        self._connection.sendall(json.dumps(message).encode() + b"\n")


_channel: Channel | None = None
_nonce = ""


def ask(need: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """Ask the judge for something in the middle of a command. Returns its answer."""
    assert _channel is not None
    _channel.send({"nonce": _nonce, **need})
    granted = _channel.receive()
    if granted is None:
        os._exit(0)
    return granted


def main(connection: socket.socket, settings: dict[str, Any]) -> None:
    """Isolate this process, then serve the judge until it closes the socket."""
    global _channel, _nonce
    if settings["kind"] == "launcher":
        # Imported now, since a launcher's host cannot even read Python's own folders afterwards.
        _prepare_launcher()
    layers = enter(settings["plan"])
    sys.path.extend(p for p in settings["paths"] if p not in sys.path)
    _channel = Channel(connection)
    _nonce = settings["nonce"]
    try:
        server = _server(settings)
    except BaseException as error:  # noqa: BLE001 (what cannot start says why)
        _channel.send({"nonce": _nonce, "error": failure(error)})
        os._exit(1)
    _channel.send({"nonce": _nonce, "layers": layers})
    while (message := _channel.receive()) is not None:
        job, descriptors = message
        _nonce = job["nonce"]
        answer: dict[str, Any]
        try:
            answer = getattr(server, job["do"])(job, descriptors)
        except BaseException as error:  # noqa: BLE001 (foreign code may raise anything at all)
            answer = {"error": failure(error)}
        _channel.send({"nonce": _nonce, **answer})
    os._exit(0)  # foreign exit handlers may wait, and tearing PyTorch down takes most of a second


def _prepare_launcher() -> None:
    from concur.validators.inside import launcher  # noqa: F401


def _server(settings: dict[str, Any]) -> Any:
    if settings["kind"] == "build":
        from concur.validators.inside import compiling

        return compiling.Server(settings)
    from concur.validators.inside.memory import Memory

    if settings["kind"] == "launcher":
        from concur.validators.inside import launcher

        return launcher.Server(Memory(settings["device"]), settings)
    from concur.validators.inside import modules

    return modules.Server(Memory(settings["device"]), settings)


def failure(error: BaseException) -> dict[str, str]:
    """Return what an answer says about an error."""
    if isinstance(error, Refused):
        return {"kind": error.kind, "text": str(error)[:_TEXT]}
    text = ""
    with contextlib.suppress(Exception):
        text = "".join(traceback.format_exception(error))
    lacking = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    # Other allocators of PyTorch and its libraries raise a plain RuntimeError.
    if lacking or re.search(r"_ALLOC_FAILED|can't allocate memory", text):
        return {"kind": "oom", "text": text[-2000:]}
    return {"kind": "exception", "text": text[-_TEXT:], "type": type(error).__name__}
