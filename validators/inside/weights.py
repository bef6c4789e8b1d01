"""Give a module the parameters of a task: by name, else by a shape that only one of each has.

Values are copied into the module's own tensors, so that a second set of values comes to the same
addresses: what a module worked out from the first set is then wrong.
"""

from typing import Any

import torch

from concur.validators.inside.serve import Refused


def fill(model: Any, parameters: dict[str, torch.Tensor]) -> list[str]:
    """Set parameters and buffers. Returns notes on guesses.

    A declared name is a key of `state_dict` with dots written as underscores. Raises Refused
    (structure) where a declared parameter finds no place of its shape, or where the module has a
    parameter that is not declared.
    """
    targets, notes = _matched(model, parameters)
    extra = {key for key, _ in model.named_parameters()} - set(targets.values())
    if extra:
        raise Refused("structure", f"parameters that the task does not declare: {sorted(extra)}")
    for name, key in targets.items():
        owner, _, leaf = key.rpartition(".")
        _set(model.get_submodule(owner), leaf, parameters[name])
    return notes


def _matched(model: Any, parameters: dict[str, torch.Tensor]) -> tuple[dict[str, str], list[str]]:
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    keys = {key.replace(".", "_"): key for key in shapes}
    targets = {
        name: keys[name]
        for name, value in parameters.items()
        if name in keys and shapes[keys[name]] == tuple(value.shape)
    }
    unnamed = [name for name in parameters if name not in targets]
    free = [key for key in shapes if key not in targets.values()]
    notes = []
    for name in unnamed:
        shape = tuple(parameters[name].shape)
        fitting = [key for key in free if shapes[key] == shape]
        rivals = [other for other in unnamed if tuple(parameters[other].shape) == shape]
        if len(fitting) != 1 or len(rivals) != 1:
            held = ", ".join(f"{key}{list(s)}" for key, s in shapes.items()) or "nothing"
            text = f"no parameter {name!r} of shape {list(shape)}; it has {held}"
            raise Refused("structure", text)
        targets[name] = fitting[0]
        notes.append(f"parameter {name!r} was matched with {fitting[0]!r} by its shape")
    return targets, notes


def _set(module: Any, leaf: str, value: torch.Tensor) -> None:
    """Copy a value in place; a tensor of another type or device is exchanged for a copy."""
    is_parameter = leaf in module._parameters
    held = module._parameters[leaf] if is_parameter else module._buffers[leaf]
    if held.dtype == value.dtype and held.device.type == value.device.type:
        held.data.copy_(value)
    elif is_parameter:
        held.data = value.clone()
    else:
        module._buffers[leaf] = value.clone()
