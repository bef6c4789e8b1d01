"""One call of foreign code: memory laid out and filled, the call, and what it left behind.

Everything that decides is done here, on the judge's side: inputs are written and compared again
afterwards, results are poisoned before and read from their shadow copies, and the gaps between all
of them show what was written outside.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from concur.schemas.expressions import evaluate_shape
from concur.schemas.signature import axes
from concur.validators.abi import SIZES, attribute_values
from concur.validators.arena import Arena
from concur.validators.environment import Device
from concur.validators.process import Child
from concur.validators.request import POISON, Called, Request
from concur.validators.roofline import flush_cache

__all__ = ["Called", "Line", "Request"]

GAP = 1 << 16
"""Bytes between two tensors, at the least: what is written there is seen."""

_ALIGNMENT = 512
_PARTS = 16
_FILLS = 20
_SHIFTS = 64
_MAP_S = 60.0


@dataclass
class Place:
    """Where a tensor lies in the arena."""

    name: str
    """Name of the argument or result."""
    dtype: str
    """Element type, by its name in PyTorch."""
    shape: tuple[int, ...]
    """Shape."""
    size: int
    """Bytes."""
    role: str
    """input, parameter, result or shadow."""
    offset: int = field(default=-1)
    """First byte in the arena."""

    def told(self) -> dict[str, Any]:
        """Return what the child is told."""
        return {
            "name": self.name,
            "role": self.role,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "offset": self.offset,
            "bytes": self.size,
        }


class Line:
    """A child and the memory that it shares with the judge."""

    def __init__(self, child: Child, device: Device) -> None:
        """Take a running child."""
        self.child, self.device = child, device
        self._arena: Arena | None = None
        self._places: list[Place] = []
        self._staging: list[torch.Tensor] = []

    def call(self, request: Request, timeout: float) -> Called:
        """Call once. Raises ChildFailed."""
        places = list(_places(request))
        arena = self._lay_out(places, request.layout)
        self._write(arena, places, request)
        job = _job(request, places)
        self._make_stage(places)
        flush_cache(self.device)
        self._settle()
        begin = time.perf_counter()
        answer = self.child.ask("call", timeout, **job)
        # To where the results are read, since a child may answer early and let its work go on
        # meanwhile. What they are read into is there already: allocating it may take longer.
        staged = self._stage(arena, places)
        self._settle()
        wall_us = (time.perf_counter() - begin) * 1e6
        results = [_as_result(data, place) for data, place in staged]
        called = self._collect(arena, places, request, (results, answer, wall_us))
        self._places = places
        return called

    def profile(self, request: Request, timeout: float) -> dict[str, Any]:
        """Call once under the profiler. Returns its answer. Raises ChildFailed."""
        places = list(_places(request))
        arena = self._lay_out(places, request.layout)
        self._write(arena, places, request)
        self._settle()
        return self.child.ask("profile", timeout, **_job(request, places))

    def recopy(self, timeout: float) -> list[torch.Tensor]:
        """Return held results of the last call with `hold` once more. Raises ChildFailed."""
        arena = self._arena
        assert arena is not None
        shadows = [p for p in self._places if p.role == "shadow"]
        for place in shadows:
            arena.memory[place.offset : place.offset + place.size].fill_(POISON)
        self._settle()
        self.child.ask("recopy", timeout, results=_results(self._places, 0))
        self._make_stage(self._places)
        return [_as_result(*staged) for staged in self._stage(arena, self._places)]

    def close(self) -> None:
        """Kill the child and give the memory back. May be called again."""
        self.child.close()
        if self._arena is not None:
            self._arena.close()
            self._arena = None

    def _lay_out(self, places: list[Place], layout: int) -> Arena:
        """Give every place an offset at random, with gaps; make the arena larger if need be."""
        order = random.Random(layout)
        shuffled = places[:]
        order.shuffle(shuffled)
        offset = 0
        for place in shuffled:
            offset += GAP + order.randrange(_SHIFTS) * _ALIGNMENT
            place.offset = offset = -(-offset // _ALIGNMENT) * _ALIGNMENT
            offset += place.size
        slack = (_SHIFTS * _ALIGNMENT + _ALIGNMENT) * len(places)
        needed = sum(p.size + GAP for p in places) + slack + GAP
        if self._arena is None or self._arena.size < needed:
            if self._arena is not None:
                self._arena.close()
            self._arena = Arena(self.device, needed)
            descriptors = (self._arena.descriptor,)
            size = self._arena.size
            self.child.ask("arena", _MAP_S, descriptors=descriptors, size=size)
        return self._arena

    def _write(self, arena: Arena, places: list[Place], request: Request) -> None:
        for begin, end, _ in _gaps(arena, places):
            arena.memory[begin:end].fill_(request.guard)
        for place in places:
            target = arena.memory[place.offset : place.offset + place.size]
            if place.role in ("result", "shadow"):
                floating = place.dtype in ("float16", "bfloat16", "float32", "float64")
                target.fill_(POISON if floating else request.guard)
            else:
                target.copy_(_bytes_of(request.tensors[place.name]))

    def _make_stage(self, places: list[Place]) -> None:
        sizes = [place.size for place in places if place.role == "shadow"]
        if [data.numel() for data in self._staging] != sizes:
            self._staging = [
                torch.empty(size, dtype=torch.uint8, device=self.device) for size in sizes
            ]

    def _stage(self, arena: Arena, places: list[Place]) -> list[tuple[torch.Tensor, Place]]:
        """Copy the shadows to memory that no child can reach."""
        shadows = [place for place in places if place.role == "shadow"]
        for data, place in zip(self._staging, shadows, strict=True):
            data.copy_(arena.memory[place.offset : place.offset + place.size])
        return list(zip(self._staging, shadows, strict=True))

    def _settle(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def _collect(
        self,
        arena: Arena,
        places: list[Place],
        request: Request,
        came: tuple[list[torch.Tensor], dict[str, Any], float],
    ) -> Called:
        results, answer, wall_us = came
        mutated = [
            p.name
            for p in places
            if p.role in ("input", "parameter")
            and not torch.equal(
                arena.memory[p.offset : p.offset + p.size], _bytes_of(request.tensors[p.name])
            )
        ]
        spent = answer.get("us")
        return Called(
            results=results,
            answer=answer,
            mutated=mutated,
            overwritten=_overwritten(arena, places, request.guard),
            wall_us=wall_us,
            us=spent if isinstance(spent, float) else None,
        )


def _places(request: Request) -> Iterator[Place]:
    sizes = request.case.sizes
    for argument in request.task.arguments:
        tensor = request.tensors[argument.name]
        size = tensor.numel() * tensor.element_size()
        yield Place(argument.name, argument.dtype.value, tuple(tensor.shape), size, argument.role)
    for result in request.task.results:
        shape = evaluate_shape(result.shape, sizes)
        elements = 1
        for length in shape:
            elements *= length
        wide = request.mode == "float64" and result.dtype.is_floating
        size = elements * (8 if wide else SIZES[result.dtype])
        dtype = "float64" if wide else result.dtype.value
        yield Place(result.name, dtype, shape, size, "result")
        yield Place(result.name, dtype, shape, size, "shadow")


def _job(request: Request, places: list[Place]) -> dict[str, Any]:
    task, case = request.task, request.case
    attributes = attribute_values(task, case.workload)
    values: dict[str, int | float] = {**case.sizes, **attributes}
    constructor = [values[name] for name in task.constructor]
    return {
        "slot": request.slot,
        "mode": request.mode,
        "model": f"{case.workload.name}/{constructor}",
        "scalars": [*(case.sizes[a] for a in axes(task)), *attributes.values()],
        "keywords": values,
        "constructor": constructor,
        "extra": [v for n, v in attributes.items() if n not in task.constructor],
        "args": [p.told() for p in places if p.role in ("input", "parameter")],
        "results": _results(places, request.layout),
        "parameters": request.parameters,
        "hold": request.hold,
        "fills": _FILLS if request.lead == "long" else 0,
    }


def _results(places: list[Place], secret: int) -> list[dict[str, Any]]:
    shadows = {p.name: p.offset for p in places if p.role == "shadow"}
    order = random.Random(secret).sample(range(_PARTS), _PARTS)
    return [
        p.told() | {"shadow": shadows[p.name], "order": order} for p in places if p.role == "result"
    ]


def _as_result(staged: torch.Tensor, place: Place) -> torch.Tensor:
    data = staged.clone()
    if place.dtype == "bool":
        # Any other byte than 0 and 1 would be an undefined bool; it reads as a wrong value here.
        return data.reshape(place.shape)
    return data.view(getattr(torch, place.dtype)).reshape(place.shape)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _gaps(arena: Arena, places: list[Place]) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Yield begin and end of each gap, and the names of what lies before and behind it."""
    begin, before = 0, ""
    for place in sorted(places, key=lambda p: p.offset):
        yield begin, place.offset, (before, place.name)
        begin, before = place.offset + place.size, place.name
    yield begin, min(arena.size, begin + GAP), (before, "")


def _overwritten(arena: Arena, places: list[Place], guard: int) -> list[str]:
    found = []
    for begin, end, (before, behind) in _gaps(arena, places):
        changed = int((arena.memory[begin:end] != guard).sum())
        if changed:
            where = f"behind {before}" if before else f"before {behind}"
            found.append(f"{changed} bytes {where}")
    return found
