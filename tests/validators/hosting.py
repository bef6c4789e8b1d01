"""A host of Python as a child runs it, over memory of this process, for tests on a CPU."""

import ctypes
from typing import Any

import torch

from concur.validators.inside.memory import Memory
from concur.validators.inside.modules import Server

SIZE = 1 << 16
SHADOW, POISON = 1 << 15, 0xFF
ITEMS = {"float32": 4, "float64": 8, "bfloat16": 2, "bool": 1, "int64": 8}


class Lent(Memory):
    """Memory of this process in place of the judge's."""

    def __init__(self) -> None:
        super().__init__("cpu")
        self.bytes = bytearray(SIZE)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))


class Host:
    """A server, and a judge that hands it tensors and reads shadows."""

    def __init__(self) -> None:
        self.memory = Lent()
        self.server = Server(self.memory, {"tf32": False, "threads": 1, "torch_seed": 3})

    def load(
        self,
        source: str,
        kind: str = "reference",
        name: str = "ModelNew",
        *,
        compiled: bool = False,
    ) -> dict[str, Any]:
        """Load as a reference is: a solution would have the builds of this process replaced."""
        files = [{"path": "sub/entry.py", "content": source}]
        entry = {"slot": "candidate", "entry": "sub/entry.py", "module": "model_new", "name": name}
        job = {"kind": kind, "files": files, "compiled": compiled, **entry}
        return self.server.load(job, [])

    def call(self, tensors: dict[str, torch.Tensor], **changes: Any) -> dict[str, Any]:
        """Call with a result y of float32[4], unless told otherwise; w... are parameters."""
        results = changes.pop("results", [("y", "float32", [4])])
        self.memory.bytes[SHADOW:] = bytes([POISON]) * SHADOW
        args, offset = [], 0
        for name, tensor in tensors.items():
            raw: Any = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
            size = raw.nbytes
            self.memory.bytes[offset : offset + size] = raw.tobytes()
            place = {"name": name, "offset": offset, "bytes": size, "shape": list(tensor.shape)}
            place["dtype"] = str(tensor.dtype).removeprefix("torch.")
            args.append(place | {"role": "parameter" if name[0] == "w" else "input"})
            offset += -(-size // 512) * 512
        told: dict[str, Any] = {"slot": "candidate", "mode": "native", "model": "typical"}
        told |= {
            "constructor": [],
            "extra": [],
            "keywords": {},
            "parameters": "set",
            "hold": False,
            "fills": 0,
        }
        return self.server.call(told | {"args": args, "results": places(results)} | changes, [])

    def shadow(self, dtype: str = "float32", count: int = 4, position: int = 0) -> torch.Tensor:
        begin = SHADOW + 512 * position
        data = self.memory.bytes[begin : begin + count * ITEMS[dtype]]
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(getattr(torch, dtype))

    def is_poisoned(self) -> bool:
        return set(self.memory.bytes[SHADOW:]) == {POISON}


def places(results: list[tuple[str, str, list[int]]]) -> list[dict[str, Any]]:
    told = []
    for position, (name, dtype, shape) in enumerate(results):
        size = ITEMS[dtype] * int(torch.Size(shape).numel())
        place = {"name": name, "dtype": dtype, "shape": shape, "bytes": size}
        told.append(place | {"offset": 0, "shadow": SHADOW + 512 * position, "order": [2, 0, 1]})
    return told


def module(forward: str, *, init: str = "pass", before: str = "") -> str:
    return f"""import torch
{before}

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, *inputs):
        x = inputs[0]
        {forward}
"""


X = torch.tensor([1.0, -2.0, 3.0, 0.5])
