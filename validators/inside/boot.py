"""The first lines of a child: take the sources of the host from the judge, and hand over to it.

Run as `python -I -c TEXT DESCRIPTOR`; what comes over the socket is eight bytes of length and a
JSON object with `sources` (texts by module name) and `settings`.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import socket
import sys
from collections.abc import Sequence
from types import ModuleType


class Held(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from texts in memory."""

    def __init__(self, sources: dict[str, str]) -> None:
        """Take the texts by full module name; a package is a name that others begin with."""
        self.sources = sources

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that is held, None for any other."""
        package = any(other.startswith(f"{name}.") for other in self.sources)
        if name not in self.sources and not package:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=package)

    def exec_module(self, module: ModuleType) -> None:
        """Run the text of a module in its namespace."""
        text = self.sources.get(module.__name__, "")
        exec(compile(text, f"<{module.__name__}>", "exec"), module.__dict__)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Return `size` bytes. Raises EOFError where the judge has gone."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


if __name__ == "__main__":
    _connection = socket.socket(fileno=int(sys.argv[1]))
    _size = int.from_bytes(receive_exactly(_connection, 8), "little")
    _payload = json.loads(receive_exactly(_connection, _size))
    sys.meta_path.insert(0, Held(_payload["sources"]))
    from concur.validators.inside import serve

    serve.main(_connection, _payload["settings"])
