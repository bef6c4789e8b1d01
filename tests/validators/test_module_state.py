"""The host of Python in a child: switches that are put back, parameters that are set in place."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from concur.validators.inside import modules
from concur.validators.inside.serve import Refused

from .hosting import Host, X, module


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.chdir(tmp_path)
    yield Host()
    torch.set_grad_enabled(True)


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
    assert host.call({"x": X})["notes"] == []


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
    ((model, _),) = host.server._models.values()
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


def test_a_compiled_module_is_filled_as_any_other(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped = []

    def compile_(model: torch.nn.Module) -> torch.nn.Module:
        wrapped.append(model)
        return torch.nn.Sequential(model)

    monkeypatch.setattr(modules, "_compile", compile_)
    host.load(WEIGHTED, compiled=True)
    weight = torch.randn(4, 4)
    for factor in (1, 2):
        host.call({"x": X, "w_fc": factor * weight, "w_b": X})
        assert torch.allclose(host.shadow(), factor * weight @ X + X, atol=1e-5)
    assert len(wrapped) == 1
