"""Probes: inputs that a solution meets beside the plain drawings, each made to unmask something.

A probe is a case with its arguments; what it has to give comes from the oracle, on these very
arguments. The probes of a workload come in an order: those with `in_place` follow a call whose
arguments differ from theirs in a few contents only, and are to be put into the same memory, at the
same addresses. Whoever keeps results or prepared weights from call to call is then wrong.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch

from concur.schemas.expressions import evaluate, evaluate_shape
from concur.schemas.task import Task, Workload
from concur.schemas.tensors import Argument, Distribution, DType
from concur.validators.compare import everywhere
from concur.validators.contents import (
    EDGE,
    WIDE,
    density,
    heavy_block,
    largest_whole,
    widened,
    with_window,
    zeros_and_ones,
)
from concur.validators.draw import Case, case_of, derive, draw, draw_named
from concur.validators.environment import Device
from concur.validators.reference import Expected

Level = Literal["quick", "full", "audit"]
Kind = Literal["combined", "scaled", "heavy", "exact", "influence", "window"]
Tensors = dict[str, torch.Tensor]

SMALL, LARGE = 2.0**-10, 2.0**6
"""Factors of scaled inputs. Powers of two: scaling rounds nothing and makes no new ties."""
_SECRET_FACTORS = (2.0**-9, 2.0**-7, 2.0**-5, 2.0**3, 2.0**4, 2.0**5)
_REDRAWS = 8
EVERY: tuple[Kind, ...] = ("scaled", "heavy", "exact", "influence", "window")
"""What a level above quick probes the cheapest workload with."""


@dataclass(frozen=True)
class Probe:
    """One probe: call with `tensors`, expect what the oracle says of them."""

    case: Case
    """Workload, sizes and label."""
    tensors: Tensors
    """Every argument by name, as `draw` gives them."""
    shows: str
    """What a right result shows, in plain words."""
    rule: str
    """Rule that a wrong result breaks; empty for the rule of the values themselves."""
    expect: Literal["usual", "unusual", "exact"] = "usual"
    """usual: as any trial. unusual: only where the reference itself copes. exact: to the bit."""
    in_place: bool = False
    """Whether the contents replace those of the probe before it, at the same addresses."""


def probes_of(task: Task, device: Device, seed: int, level: Level) -> Iterator[Probe]:
    """Yield all probes of a level.

    quick: one on the cheapest workload, fresh drawings times a secret factor. full: every kind on
    the cheapest workload, scaled inputs and influence on the cheapest other boundary. audit: every
    kind on every workload.
    """
    ordered = sorted(task.workloads, key=lambda workload: _elements(task, workload, device))
    if level == "quick":
        yield from probe_cases(task, ordered[0], device, seed, ("combined",))
        return
    yield from probe_cases(task, ordered[0], device, seed, EVERY)
    if level == "audit":
        others, kinds = ordered[1:], EVERY
    else:
        others, kinds = (
            [w for w in ordered[1:] if w.role == "boundary"][:1],
            ("scaled", "influence"),
        )
    for workload in others:
        yield from probe_cases(task, workload, device, seed, kinds)


def probe_cases(
    task: Task, workload: Workload, device: Device, seed: int, kinds: tuple[Kind, ...]
) -> Iterator[Probe]:
    """Yield the probes of some kinds on one workload, drawn from the run's secret seed.

    Influence and window probes come in a row that begins with a plain drawing; each differs from
    the one before it in one thing only.
    """
    maker = _Maker(task, workload, device, seed)
    if "combined" in kinds:
        yield maker.combined()
    if "scaled" in kinds:
        yield from maker.scaled()
    if "heavy" in kinds:
        yield from maker.heavy()
    if "exact" in kinds and task.tolerance.linear:
        yield from maker.exact()
    if "influence" in kinds or "window" in kinds:
        yield maker.plain()
    if "influence" in kinds:
        yield from maker.influence()
    if "window" in kinds:
        yield from maker.window()


def unfit(task: Task, probe: Probe, expected: Expected) -> str:
    """Return why a probe says nothing about a solution, to be noted; empty where it does.

    An unusual probe is unfit where the oracle leaves the range of a result's type, and where the
    reference in its own type is not finite or needs more than the quarter of the tolerance that the
    calibration grants it. An exact probe is unfit where a result is not a whole number that the
    result's type holds exactly.
    """
    if probe.expect == "usual":
        return ""
    for position, result in enumerate(task.results):
        oracle, ratio = expected.results[position], expected.reference_ratio[position]
        if probe.expect == "exact":
            if result.dtype.is_floating and not everywhere(oracle, _whole(result.dtype)):
                return f"{result.name} is not a whole number that {result.dtype} holds exactly"
            continue
        if result.dtype.is_floating and not everywhere(oracle, _in_range(result.dtype)):
            return f"{result.name} leaves the range of {result.dtype}"
        # The tolerance is four times the error of a reference that is good enough for that.
        if ratio > (0.2501 if result.dtype.is_floating else 0.0):
            return f"the reference is too far off in {result.name} itself"
    return ""


def exactly(expected: Expected) -> Expected:
    """Return what an exact probe must give: the same results, with no tolerance."""
    return replace(expected, rtol=(0.0,) * len(expected.rtol))


class _Maker:
    """Makes the probes of one workload, from one drawing that changes step by step."""

    def __init__(self, task: Task, workload: Workload, device: Device, seed: int) -> None:
        self.task, self.workload, self.device, self.seed = task, workload, device, seed
        self.tensors = draw(task, self._case("plain"), device)

    def plain(self) -> Probe:
        shows = "a plain drawing gives right results"
        return Probe(self._case("plain"), dict(self.tensors), shows, "")

    def combined(self) -> Probe:
        factor = _SECRET_FACTORS[derive(self.seed, "factor") % len(_SECRET_FACTORS)]
        shows = f"fresh arguments, inputs times {factor:g}, give right results"
        return self._unusual("combined", self._times(factor), shows, "values.scaled")

    def scaled(self) -> Iterator[Probe]:
        for label, factor in (("small", SMALL), ("large", LARGE)):
            if self._scalable():
                shows = f"inputs times {factor:g} give right results"
                yield self._unusual(label, self._times(factor), shows, "values.scaled")

    def heavy(self) -> Iterator[Probe]:
        """One late block of the largest input is large: the first values do not tell of it."""
        if scalable := self._scalable():
            name = max((a.name for a in scalable), key=self._size)
            changed = heavy_block(self.tensors[name], self._seed("heavy"))
            shows = f"a late block of {name} that is far larger than the rest gives right results"
            yield self._unusual("heavy", {name: changed}, shows, "values.scaled")

    def exact(self) -> Iterator[Probe]:
        """Zeros and ones: sums are whole numbers, so that a single missing term is seen.

        Where no lower precision is allowed, float32 arguments get wider numbers, one at a time.
        """
        linear = self.task.tolerance.linear
        shows = f"zeros and ones in {', '.join(linear)} give whole numbers exactly"
        yield self._exact("exact", "", shows)
        for argument in self.task.arguments:
            fit = argument.name in linear and argument.dtype is DType.FLOAT32
            if fit and not self.task.allowed_precision:
                shows = f"whole numbers of twelve bits in {argument.name} are not rounded"
                yield self._exact(f"exact-{argument.name}", argument.name, shows)

    def _exact(self, label: str, wide: str, shows: str) -> Probe:
        tolerance, case = self.task.tolerance, self._case(label)
        terms = float(evaluate(tolerance.reduction, case.sizes)) * (WIDE if wide else 1.0)
        types = tuple(result.dtype for result in self.task.results)
        share = density(types, terms, len(tolerance.linear))
        changed = {}
        for name in tolerance.linear:
            changed[name] = zeros_and_ones(self.tensors[name], share, self._seed(label, name))
            if name == wide:
                changed[name] = widened(changed[name], self._seed(label, "wide"))
        return Probe(case, {**self.tensors, **changed}, shows, "values.exact-probe", "exact")

    def influence(self) -> Iterator[Probe]:
        """One argument after the other gets new contents, and keeps them."""
        for argument in self.task.arguments:
            label = f"influence-{argument.name}"
            other = self._redrawn(argument.name, label)
            if other is not None:
                self.tensors[argument.name] = other
                rule = "values.influence" if argument.role == "input" else "values.parameters"
                shows = f"new contents of {argument.name} alone are read"
                case = self._case(label)
                yield Probe(case, dict(self.tensors), shows, rule, in_place=True)

    def window(self) -> Iterator[Probe]:
        """A few elements in the middle change: a fingerprint of ends or strides misses them."""
        inputs = [a for a in self.task.arguments if a.role == "input"]
        wide = [a for a in inputs if self._size(a.name) > 4 * EDGE]
        if inputs and not wide:
            wide = [max(inputs, key=lambda a: self._size(a.name))]
        scalable = self._scalable()
        sizes = self._case("window").sizes
        reach = max(4.0, math.sqrt(float(evaluate(self.task.tolerance.reduction, sizes))) / 4)
        changed = {}
        for argument in wide:
            growth = reach if argument in scalable else 0.0
            tensor, seed = self.tensors[argument.name], self._seed("window", argument.name)
            other = with_window(tensor, self._how(argument), sizes, growth, seed)
            if other is not None:
                changed[argument.name] = other
        if changed:
            shows = f"a few new elements amid {', '.join(changed)} are read"
            probe = self._unusual("window", changed, shows, "values.influence")
            yield replace(probe, in_place=True)

    def _unusual(self, label: str, changed: Tensors, shows: str, rule: str) -> Probe:
        return Probe(self._case(label), {**self.tensors, **changed}, shows, rule, "unusual")

    def _case(self, label: str) -> Case:
        return case_of(self.task, self.workload, self.device, f"probe-{label}", self.seed)

    def _seed(self, *labels: str) -> int:
        return derive(self.seed, self.task.id, self.workload.name, *labels)

    def _how(self, argument: Argument) -> Distribution:
        return self.workload.distributions.get(argument.name, argument.distribution)

    def _size(self, name: str) -> int:
        return self.tensors[name].numel()

    def _scalable(self) -> list[Argument]:
        """Return the floating inputs that may be multiplied; parameters where no input may."""
        fit = [
            argument
            for argument in self.task.arguments
            if argument.dtype.is_floating
            and self._how(argument).kind in ("normal", "uniform")
            and argument.name not in self.task.tolerance.unscaled
        ]
        return [a for a in fit if a.role == "input"] or fit

    def _times(self, factor: float) -> Tensors:
        return {a.name: self.tensors[a.name] * factor for a in self._scalable()}

    def _redrawn(self, name: str, label: str) -> torch.Tensor | None:
        """Return other contents; None where the argument seems to have only one."""
        for attempt in range(_REDRAWS):
            other = draw_named(self.task, self._case(f"{label}-{attempt}"), name, self.device)
            if not torch.equal(other, self.tensors[name]):
                return other
        return None


def _elements(task: Task, workload: Workload, device: Device) -> int:
    sizes = workload.axes if device == "cuda" else workload.twin
    shapes = [a.shape for a in task.arguments] + [r.shape for r in task.results]
    return sum(math.prod(evaluate_shape(shape, sizes)) for shape in shapes)


def _whole(dtype: DType) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda o: (o == o.round()) & (o.abs() <= largest_whole(dtype))


def _in_range(dtype: DType) -> Callable[[torch.Tensor], torch.Tensor]:
    kind: torch.dtype = getattr(torch, dtype.value)
    return lambda o: o.to(kind).isfinite()
