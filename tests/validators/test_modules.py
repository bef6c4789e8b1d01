"""The host of Python in a child: what it records of results, whatever foreign code does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from concur.validators.inside.serve import Refused

from .hosting import POISON, SHADOW, Host, X, module, places


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
