"""The host of Python in a child, by itself: over memory of this process, on a CPU."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from concur.validators.inside.memory import Memory
from concur.validators.inside.modules import Server
from concur.validators.inside.serve import Refused

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

    def load(self, source: str, kind: str = "module", name: str = "ModelNew") -> dict[str, Any]:
        files = [{"path": "sub/entry.py", "content": source}]
        entry = {"slot": "candidate", "entry": "sub/entry.py", "module": "model_new", "name": name}
        return self.server.load({"kind": kind, "files": files, **entry}, [])

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
            "timed": False,
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
        told.append(place | {"offset": 0, "shadow": SHADOW + 512 * position})
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


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.chdir(tmp_path)
    yield Host()
    torch.set_grad_enabled(True)


def test_a_result_reaches_its_shadow(host: Host) -> None:
    host.load(module("return x * 2"))
    answer = host.call({"x": X})
    assert torch.equal(host.shadow(), X * 2)
    (said,) = answer["results"]
    assert said == {
        **{"type": "Tensor", "dtype": "float32", "shape": [4]},
        **{"device": "cpu", "aliases": ""},
    }
    assert (answer["us"], answer["notes"], answer["type"]) == (None, [], "Tensor")


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "int64"])
def test_types_without_a_common_name_travel_as_bytes(host: Host, dtype: str) -> None:
    x = torch.tensor([1, 0, 1, 1]).to(getattr(torch, dtype))
    host.load(module("return x.clone()"))
    host.call({"x": x}, results=[("y", dtype, [4])])
    assert torch.equal(host.shadow(dtype), x)


def test_scalars_and_empty_tensors(host: Host) -> None:
    host.load(module("return x.sum(), inputs[1].clone()"))
    empty = [("y", "float32", []), ("z", "float32", [0, 3])]
    answer = host.call({"x": torch.tensor(2.5), "e": torch.empty(0, 3)}, results=empty)
    assert [r["shape"] for r in answer["results"]] == [[], [0, 3]]
    assert host.shadow(count=1).item() == 2.5


def test_a_result_with_strides_is_copied_in_order(host: Host) -> None:
    host.load(module("return (x * 2).view(2, 2).t()"))
    host.call({"x": X}, results=[("y", "float32", [2, 2])])
    assert torch.equal(host.shadow(), (X * 2).view(2, 2).t().reshape(-1))


@pytest.mark.parametrize(
    ("forward", "key", "found"),
    [
        ("return x.double()", "dtype", "float64"),
        ("return x[:2]", "shape", [2]),
        ("return x.view(2, 2)", "shape", [2, 2]),
        ("return x.to('meta')", "device", "meta"),
        ("return x.tolist()[0]", "type", "float"),
        ("return {'y': x}", "type", "dict"),
    ],
)
def test_what_was_not_declared_is_told_and_not_copied(
    host: Host, forward: str, key: str, found: object
) -> None:
    host.load(module(forward))
    answer = host.call({"x": X})
    assert answer["results"][0][key] == found
    assert host.is_poisoned()


def test_a_storage_that_does_not_hold_the_tensor_is_not_read(host: Host) -> None:
    host.load(module("y = x * 1\n        y.untyped_storage().resize_(0)\n        return y"))
    host.call({"x": X})
    assert host.is_poisoned()


def test_a_sparse_result_is_not_read(host: Host) -> None:
    host.load(module("return x.to_sparse()"))
    host.call({"x": X})
    assert host.is_poisoned()


@pytest.mark.parametrize("name", ["Lazy", "Tensor"])
def test_a_subclass_is_told_by_its_name_and_never_asked(host: Host, name: str) -> None:
    lazy = f"""class {name}(torch.Tensor):
    def __torch_function__(self, *_, **__):
        raise AssertionError('asked')

    def contiguous(self, *_, **__):
        raise AssertionError('asked')
"""
    host.load(module(f"return (x * 2).as_subclass({name})", before=lazy))
    answer = host.call({"x": X})
    assert answer["results"] == [{"type": "Lazy" if name == "Lazy" else "another Tensor"}]
    assert host.is_poisoned()


def test_a_tuple_that_works_late_is_not_asked(host: Host) -> None:
    late = """class Late(tuple):
    def __iter__(self):
        self[0].fill_(7)
        return tuple.__iter__(self)
"""
    host.load(module("return Late((x * 2,))", before=late))
    host.call({"x": X})
    assert torch.equal(host.shadow(), X * 2)


NAMES = ("contiguous", "data_ptr", "is_contiguous", "numel", "element_size", "reshape", "view")
PATCHES = f"""from torch.overrides import TorchFunctionMode

def fake(self, *_, **__):
    return torch.zeros(4)

class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return torch.zeros(4)

def patch():
    for name in {NAMES}:
        setattr(torch.Tensor, name, fake)
    torch.Tensor.dtype = torch.float64
    Mode().__enter__()
"""


def test_patches_of_pytorch_change_nothing_that_is_recorded(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*NAMES, "dtype"):
        monkeypatch.setattr(torch.Tensor, name, getattr(torch.Tensor, name))
    host.load(module("y = (x * 2).flip(0)[::2]\n        patch()\n        return y", before=PATCHES))
    answer = host.call({"x": X}, results=[("y", "float32", [2])])
    torch._C._pop_torch_function_stack()
    monkeypatch.undo()
    assert "flag: torch function modes" in answer["notes"]
    said = answer["results"][0]
    assert (said["dtype"], said["shape"]) == ("float32", [2])
    assert host.shadow(count=2).tolist() == [1.0, -4.0]


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("return x", ["argument x"]),
        ("return x.view(2, 2)[0]", ["argument x"]),
        ("y = x * 2\n        return y, y", ["", "result y"]),
        ("y = x * 2\n        return y, y[:2]", ["", "result y"]),
        ("y = torch.stack((x, x))\n        return y[0], y[1]", ["", ""]),
        ("y = torch.stack((x, x), 1)\n        return y[:, 0], y[:, 1]", ["", ""]),
    ],
)
def test_shared_memory_is_told(host: Host, forward: str, words: list[str]) -> None:
    host.load(module(forward))
    answer = host.call({"x": X}, results=[("y", "float32", [4]), ("z", "float32", [4])])
    assert [r["aliases"] for r in answer["results"]] == words


def test_a_buffer_that_is_returned_twice_is_told_and_seen(host: Host) -> None:
    buffered = "return self.y.copy_(x * 2)"
    host.load(module(buffered, init="self.y = torch.empty(4)"))
    host.call({"x": X}, hold=True)
    again = host.call({"x": X + 1})
    assert again["results"][0]["aliases"] == "held result y"
    host.memory.bytes[SHADOW:] = bytes([POISON]) * SHADOW
    host.server.recopy({"results": places([("y", "float32", [4])])}, [])
    assert torch.equal(host.shadow(), (X + 1) * 2)


def test_a_held_result_stays_what_it_was(host: Host) -> None:
    host.load(module("return x * 2"))
    host.call({"x": X}, hold=True)
    again = host.call({"x": X + 1})
    assert again["results"][0]["aliases"] == ""
    host.server.recopy({"results": places([("y", "float32", [4])])}, [])
    assert torch.equal(host.shadow(), X * 2)
    host.server.free({}, [])
    assert host.server.recopy({"results": []}, []) == {"results": []}


FLAGS = {
    "torch.backends.cuda.matmul.allow_tf32 = True": "tf32 of matmul",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'": "tf32 of matmul",
    "torch.backends.cudnn.allow_tf32 = True": "tf32 of cudnn",
    "torch.backends.fp32_precision = 'tf32'": "tf32 of cudnn",
    "torch.set_float32_matmul_precision('medium')": "matmul precision",
    "torch.set_default_dtype(torch.float16)": "default dtype",
    "torch.backends.cudnn.benchmark = True": "cudnn.benchmark",
    "torch.backends.cudnn.deterministic = True": "cudnn.deterministic",
    "torch.set_grad_enabled(True)": "grad mode",
    "torch.use_deterministic_algorithms(True)": "deterministic algorithms",
}


@pytest.mark.parametrize(("line", "name"), FLAGS.items(), ids=FLAGS)
def test_a_switch_that_was_changed_is_told_and_put_back(host: Host, line: str, name: str) -> None:
    loaded = host.load(module(f"{line}\n        return x * 2", before=line))
    assert f"flag: {name}" in loaded["notes"]
    for _ in range(2):
        assert f"flag: {name}" in host.call({"x": X})["notes"]
    assert torch.get_default_dtype() is torch.float32 and not torch.is_grad_enabled()
    assert torch.backends.cuda.matmul.allow_tf32 is False
    host.load(module("return x * 2"))
    assert host.call({"x": X}, model="another")["notes"] == []


def test_switches_are_put_back_after_an_error(host: Host) -> None:
    host.load(module("torch.set_grad_enabled(True)\n        raise ValueError('no')"))
    with pytest.raises(ValueError, match="no"):
        host.call({"x": X})
    assert not torch.is_grad_enabled()


WEIGHTED = module(
    "return torch.nn.functional.linear(x, self.fc.weight, self.fc.bias)",
    init="self.fc = torch.nn.Linear(4, 4)",
)


def test_parameters_are_set_in_place(host: Host) -> None:
    host.load(WEIGHTED)
    weight, bias = torch.randn(4, 4), torch.randn(4)
    tensors = {"x": X, "w_fc": weight, "w_b": bias}
    notes = host.call(tensors)["notes"]
    assert sorted(notes) == [
        "parameter 'w_b' was matched with 'fc.bias' by its shape",
        "parameter 'w_fc' was matched with 'fc.weight' by its shape",
    ]
    (model,) = host.server._models.values()
    address = model.fc.weight.data_ptr()
    assert torch.allclose(host.shadow(), weight @ X + bias)
    host.call(tensors | {"w_fc": 2 * weight})
    assert model.fc.weight.data_ptr() == address
    assert torch.allclose(host.shadow(), 2 * weight @ X + bias, atol=1e-5)
    host.call(tensors, parameters="keep")
    assert torch.allclose(host.shadow(), 2 * weight @ X + bias, atol=1e-5)
    host.call(tensors, parameters="keep", model="another")
    assert torch.allclose(host.shadow(), weight @ X + bias, atol=1e-5)


def test_names_go_before_shapes(host: Host) -> None:
    init = "self.w_a, self.w_b = (torch.nn.Parameter(torch.zeros(4)) for _ in range(2))"
    host.load(module("return x * self.w_a + self.w_b", init=init))
    answer = host.call({"x": X, "w_a": X, "w_b": X + 1})
    assert answer["notes"] == [] and torch.allclose(host.shadow(), X * X + X + 1)


def test_buffers_and_other_types_take_values_too(host: Host) -> None:
    init = "self.register_buffer('w', torch.zeros(4, dtype=torch.float16))"
    host.load(module("return x * self.w", init=init))
    host.call({"x": X, "w": X})
    assert torch.equal(host.shadow(), X * X)


@pytest.mark.parametrize(
    ("init", "text"),
    [
        ("pass", "no parameter 'w' of shape [4, 2]; it has nothing"),
        ("self.p = torch.nn.Parameter(torch.zeros(2, 4))", "it has p[2, 4]"),
        (
            "self.p, self.q = (torch.nn.Parameter(torch.zeros(4, 2)) for _ in 'ab')",
            "it has p[4, 2]",
        ),
        (
            "self.w, self.q = (torch.nn.Parameter(torch.zeros(4, 2)) for _ in 'ab')",
            "does not declare: ['q']",
        ),
    ],
)
def test_other_parameters_are_a_fault_of_structure(host: Host, init: str, text: str) -> None:
    host.load(module("return x", init=init))
    with pytest.raises(Refused) as refused:
        host.call({"x": X, "w": torch.zeros(4, 2)})
    assert refused.value.kind == "structure" and text in str(refused.value)


def test_a_module_is_widened_for_itself(host: Host) -> None:
    host.load(WEIGHTED, kind="reference")
    tensors = {"x": X, "w_fc": torch.randn(4, 4), "w_b": torch.randn(4)}
    host.call(tensors, mode="float64", results=[("y", "float64", [4])])
    wide = tensors["w_fc"].double() @ X.double() + tensors["w_b"].double()
    assert torch.allclose(host.shadow("float64"), wide, rtol=1e-14)
    assert host.call(tensors)["results"][0]["dtype"] == "float32"


def test_an_oracle_gets_everything_by_name(host: Host) -> None:
    host.load("def oracle(x, *, n, **_):\n    return x * n\n", kind="oracle", name="oracle")
    keywords = {"n": 3, "eps": 0.5}
    host.call({"x": X}, keywords=keywords, mode="float64", results=[("y", "float64", [4])])
    assert torch.equal(host.shadow("float64"), 3 * X.double())


def test_a_name_that_is_missing_is_refused(host: Host) -> None:
    with pytest.raises(Refused, match="model_new defines no 'ModelNew'") as refused:
        host.load("x = 1\n")
    assert refused.value.kind == "symbol"


def test_a_profile_on_a_cpu_calls_once_and_has_no_kernels(host: Host) -> None:
    host.load(module("return x * 2"))
    job: dict[str, Any] = {}
    host.server.call = lambda told, _: job.update(told) or {}  # type: ignore
    host.call({"x": X})
    answer = host.server.profile(job, [])
    assert answer["kernels"] == [] and answer["results"][0]["shape"] == [4]
    assert torch.equal(host.shadow(), X * 2)
