"""Both sides of a timing with a simulated clock: z = x + y, computed at once, timed by a script."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from concur.schemas.task import Task
from concur.validators.calls import Called, Request
from concur.validators.draw import Case, draw
from concur.validators.reference import Expected

OVERHEAD_US = 200.0
BASE_US = 30.0


@dataclass
class World:
    """What both sides share: one device, whose speed drifts, and the order of all calls."""

    drift: float = 0.0
    """By how much slower the device is after a hundred calls, as a share."""
    noise: float = 0.01
    """Standard deviation of the logarithm of a time."""
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Side, workload and what the call was made with, in order."""
    draw: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def spent(self, us: float) -> float:
        """Return what work of so many microseconds takes now."""
        slower = 1.0 + self.drift * len(self.calls) / 100.0
        return float(us * slower * self.draw.lognormal(0.0, self.noise))

    def note(self, side: str, case: Case, tensors: dict[str, torch.Tensor], **told: Any) -> None:
        """Write a call down."""
        contents = tensors["x"].numpy().tobytes()
        self.calls.append((side, case.workload.name, {"x": contents, "case": case.label, **told}))


def called(results: list[torch.Tensor], us: float | None, wall_us: float) -> Called:
    """Return what a call left that wrote nothing it must not."""
    return Called(results, {"results": [], "notes": []}, [], [], wall_us, us)


class Baseline:
    """A `Reference` whose times are simulated."""

    def __init__(self, task: Task, world: World, us: float | None = BASE_US) -> None:
        self.task, self.world, self.us = task, world, us
        self.expected_after: list[int] = []

    def timed(
        self, case: Case, tensors: dict[str, torch.Tensor], layout: int, guard: int
    ) -> Called:
        self.world.note("base", case, tensors, layout=layout, guard=guard)
        us = None if self.us is None else self.world.spent(self.us)
        return called(
            [tensors["x"] + tensors["y"]], us, (us or 0.0) + self.world.spent(OVERHEAD_US)
        )

    def expected(self, case: Case) -> Expected:
        self.expected_after.append(len(self.world.calls))
        tensors = draw(self.task, case, "cpu")
        return Expected((tensors["x"].double() + tensors["y"].double(),), (1e-6,), (0.1,))

    def free(self) -> None:
        pass


class Honest:
    """A `Candidate` that computes what it has to, in `us`, and says so."""

    def __init__(self, world: World, us: float = 10.0, overhead_us: float = OVERHEAD_US) -> None:
        self.world, self.us, self.overhead_us = world, us, overhead_us
        self.number = 0

    def call(self, request: Request) -> Called:
        told: dict[str, Any] = {"layout": request.layout, "guard": request.guard}
        told |= {"lead": request.lead, "parameters": request.parameters}
        self.world.note("mine", request.case, request.tensors, **told)
        us = self.world.spent(self.us)
        wall = us + self.world.spent(self.overhead_us)
        self.number += 1
        return called(self.results(request), self.claim(us), wall)

    def stop(self) -> None:
        pass

    def go_on(self) -> None:
        pass

    def results(self, request: Request) -> list[torch.Tensor]:
        return [request.tensors["x"] + request.tensors["y"]]

    def claim(self, us: float) -> float | None:
        return us


class Forger(Honest):
    """Claims a part of the time that it takes, as forged events or work on another stream do."""

    share = 0.2

    def claim(self, us: float) -> float | None:
        return us * self.share


class Silent(Honest):
    """Gives no time."""

    def claim(self, us: float) -> float | None:
        return None


class Skipper(Honest):
    """Does nothing in one single call: poison stays."""

    skipped = 41

    def results(self, request: Request) -> list[torch.Tensor]:
        right = super().results(request)
        return [r * torch.nan for r in right] if self.number == self.skipped else right


class TailSkipper(Skipper):
    """Leaves the last element out in one single call."""

    def results(self, request: Request) -> list[torch.Tensor]:
        (z,) = Honest.results(self, request)
        if self.number == self.skipped:
            z[-1] = 0.0
        return [z]


class Memoiser(Honest):
    """Returns in one single call what it returned in the call before."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.held: dict[str, list[torch.Tensor]] = {}

    def results(self, request: Request) -> list[torch.Tensor]:
        name = request.case.workload.name
        if self.number == 41 and name in self.held:
            return self.held[name]
        self.held[name] = super().results(request)
        return self.held[name]


class Switcher(Honest):
    """Is right for so many calls, and never again."""

    def results(self, request: Request) -> list[torch.Tensor]:
        right = super().results(request)
        return right if self.number < 40 else [torch.zeros_like(r) for r in right]
