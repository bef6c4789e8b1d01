"""Admission: whether a task is fit to judge solutions on, each answer a stored measurement.

On a CPU it looks at the small twins, on a GPU at full size. A task that fails is rejected before
any solution is judged; what infrastructure or the judge itself failed at is undecided.
"""

import datetime
import traceback
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from concur.schemas.rules import RULES_VERSION
from concur.schemas.task import Task, Workload
from concur.schemas.verdict import Admission, Fault, Finding, Measurement, Outcome, Status
from concur.validators.compare import compare, compare_exactly, compare_floats
from concur.validators.draw import Case, case_of, draw, release
from concur.validators.ended import Ended, finding
from concur.validators.environment import Device, probe
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions
from concur.validators.reference import Expected, Reference
from concur.validators.rules import RULES
from concur.validators.tolerance import agreement_tolerance

_COPY_SHARE = 0.99
_SHORTEST_US = 50.0
_REDRAWS = 8
_WARM_CALLS, _TIMED_CALLS = 5, 10
_GUARD = 0xFF
_LARGEST = 1e300

_Tensors = tuple[torch.Tensor, ...]


def admit(
    task: Task, *, device: Device, seed: int, options: JudgeOptions | None = None
) -> Admission:
    """Return whether a task is admitted, with every measurement. Never raises for a bad task.

    `options` gives lock, cache and time limits; its device and seed are not looked at.
    """
    options = replace(options or JudgeOptions(), device=device)
    visit = _Visit(task, options, seed)
    undecided = False
    try:
        visit.run()
    except Ended as ended:
        undecided = ended.fault is not Fault.TASK
        visit.findings += ended.findings
    except Exception as error:  # noqa: BLE001 (the judge's boundary: its own faults are undecided)
        undecided = True
        text = "".join(traceback.format_exception(error))
        message = f"{type(error).__name__}: {error}"
        visit.findings.append(finding("judge.failed", message, evidence=text))
    failed = any(f.severity == "error" for f in visit.findings)
    outcome = Outcome.REJECTED if failed else Outcome.ACCEPTED
    return Admission(
        task_id=task.id,
        rules_version=RULES_VERSION,
        sizes="twin" if device == "cpu" else "full",
        outcome=Outcome.UNDECIDED if undecided else outcome,
        findings=tuple(visit.findings),
        measurements=tuple(visit.measurements),
        environment=probe(device),
        seed=seed,
        judged_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


@dataclass
class _Visit:
    task: Task
    options: JudgeOptions
    seed: int
    findings: list[Finding] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    largest: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    """By gate and result: the largest value over workloads, and where. A workload of few elements
    may be constant, or the same for two seeds, by chance; a fit result never is everywhere."""

    def run(self) -> None:
        lock = DeviceLock(self.options.lock)
        reference = Reference(self.task, self.options)
        try:
            thorough = self._thorough()
            for workload in self.task.workloads:
                with lock.shared():
                    self._workload(reference, workload, workload in thorough)
                    release(self.options.device)
            for (gate, name), (value, where) in self.largest.items():
                self._measure(gate, where, name, (value, 0.0), value > 0)
            with lock.shared():
                self._influence(reference, thorough)
            if self.options.device == "cuda":
                for workload in self.task.workloads:
                    with lock.shared():
                        self._time(reference, workload)
        finally:
            reference.close()

    def _thorough(self) -> tuple[Workload, ...]:
        """Return workloads that every gate looks at: all twins, at full size the smallest."""
        if self.options.device == "cpu":
            return self.task.workloads

        def elements(workload: Workload) -> int:
            case = self._case(workload, "a")
            return sum(t.numel() for t in draw(self.task, case, "cuda").values())

        return (min(self.task.workloads, key=elements),)

    def _case(self, workload: Workload, label: str) -> Case:
        return case_of(self.task, workload, self.options.device, f"admission-{label}", self.seed)

    def _workload(self, reference: Reference, workload: Workload, thorough: bool) -> None:
        case, other = self._case(workload, "a"), self._case(workload, "b")
        tensors = draw(self.task, case, self.options.device)
        expected = reference.expected(case)
        if thorough:
            again = reference.run(reference.decider, case, tensors, "float64")
            self._repeatable(workload, expected.results, again)
        fresh = draw(self.task, other, self.options.device)
        elsewhere = reference.run(reference.decider, other, fresh, "float64")
        del fresh
        for position, result in enumerate(self.task.results):
            value = expected.results[position]
            self._plain(workload, result.name, value, tensors)
            changed = _changed_share(value, elsewhere[position])
            if value.numel() > 1:
                self._note("seeds", workload.name, result.name, changed)
            ratio = expected.reference_ratio[position]
            self._measure("native", workload.name, result.name, (ratio, 1.0), ratio <= 1.0)
        self._trivial(workload, tensors, expected)
        if self.task.oracle is not None and reference.baseline == "reference":
            error, limit = reference.agreement(case)
            self._measure("agreement", workload.name, "program", (error, limit), error <= limit)

    def _note(self, gate: str, workload: str, result: str, value: float) -> None:
        key = (gate, result)
        self.largest[key] = max(self.largest.get(key, (-1.0, "")), (value, workload))

    def _repeatable(self, workload: Workload, first: _Tensors, again: _Tensors) -> None:
        limit = agreement_tolerance(1.0)
        for result, one, two in zip(self.task.results, first, again, strict=True):
            if one.is_floating_point():
                error = compare_floats(two, one, limit).max_scaled_error
            else:
                error = compare_exactly(two, one).max_scaled_error
            self._measure("repeatable", workload.name, result.name, (error, limit), error <= limit)

    def _plain(
        self,
        workload: Workload,
        name: str,
        value: torch.Tensor,
        tensors: dict[str, torch.Tensor],
    ) -> None:
        bad = float((~torch.isfinite(value)).sum()) if value.is_floating_point() else 0.0
        self._measure("finite", workload.name, name, (bad, 0.0), bad == 0)
        if value.numel() > 1:
            spread = float(value.max()) - float(value.min()) if bad == 0 else 0.0
            self._note("constant", workload.name, name, spread)
        for argument, tensor in tensors.items():
            if tensor.shape == value.shape:
                same = float((tensor.to(value.dtype) == value).double().mean())
                subject = f"{name} against {argument}"
                limits = (same, _COPY_SHARE)
                self._measure("copy", workload.name, subject, limits, same < _COPY_SHARE)

    def _trivial(
        self, workload: Workload, tensors: dict[str, torch.Tensor], expected: Expected
    ) -> None:
        """Measure which share of the elements each worthless candidate gets wrong."""
        # A single element is a constant, but not one that a candidate could know.
        several = any(r.numel() > 1 for r in expected.results)
        for subject in ("zeros", *(["constant"] if several else []), *tensors):
            wrong = elements = 0
            refused = False
            for position, oracle in enumerate(expected.results):
                fake = _worthless(subject, oracle, tensors)
                if fake is None:
                    break
                rtol = expected.rtol[position]
                difference = compare(self.task.tolerance, fake, oracle, rtol)
                wrong, elements = wrong + difference.wrong, elements + difference.elements
                refused = refused or not difference.accepted
            else:
                share = wrong / max(1, elements)
                if subject == "constant":
                    # A few elements may be alike by chance; they never are on every workload.
                    self._note("trivial", workload.name, subject, share if refused else 0.0)
                else:
                    self._measure("trivial", workload.name, subject, (share, 0.0), refused)

    def _influence(self, reference: Reference, workloads: tuple[Workload, ...]) -> None:
        for argument in self.task.arguments:
            best, where = 0.0, workloads[0].name
            for workload in workloads:
                share = self._influence_on(reference, workload, argument.name)
                if share > best:
                    best, where = share, workload.name
            self._measure("influence", where, argument.name, (best, 0.0), best > 0)

    def _influence_on(self, reference: Reference, workload: Workload, name: str) -> float:
        case = self._case(workload, "a")
        tensors = draw(self.task, case, self.options.device)
        expected = reference.expected(case).results
        for attempt in range(_REDRAWS):
            other = self._case(workload, f"influence-{attempt}")
            redrawn = draw(self.task, other, self.options.device)[name]
            if not torch.equal(redrawn, tensors[name]):
                break
        changed = {**tensors, name: redrawn}
        results = reference.run(reference.decider, case, changed, "float64")
        return max(_changed_share(a, b) for a, b in zip(expected, results, strict=True))

    def _time(self, reference: Reference, workload: Workload) -> None:
        case = self._case(workload, "a")
        tensors = draw(self.task, case, self.options.device)
        times = []
        for layout in range(_WARM_CALLS + _TIMED_CALLS):
            called = reference.timed(case, tensors, layout, _GUARD)
            if called.us is not None and layout >= _WARM_CALLS:
                times.append(called.us)
        reference.free()
        if not times:
            found = finding("timing.failed", "the baseline gave no times", where=workload.name)
            raise Ended(Status.UNDECIDED, Fault.JUDGE, found)
        median = sorted(times)[len(times) // 2]
        measured = (median, _SHORTEST_US)
        slow = median >= _SHORTEST_US
        self._measure("time", workload.name, reference.baseline, measured, slow, "warning")

    def _measure(
        self,
        gate: str,
        workload: str,
        subject: str,
        value_and_limit: tuple[float, float],
        passed: bool,
        severity: Literal["error", "warning"] = "error",
    ) -> None:
        value, limit = (min(float(v), _LARGEST) for v in value_and_limit)
        self.measurements.append(
            Measurement(
                gate=gate,
                workload=workload,
                subject=subject,
                value=value,
                limit=limit,
                passed=passed,
            )
        )
        if not passed:
            rule = f"admission.{gate}"
            message = f"{subject}: {value:.4g} against the limit {limit:.4g}. {RULES[rule]}"
            self.findings.append(finding(rule, message, where=workload, severity=severity))


def _worthless(
    subject: str, oracle: torch.Tensor, tensors: dict[str, torch.Tensor]
) -> torch.Tensor | None:
    if subject == "zeros":
        return torch.zeros_like(oracle)
    if subject == "constant":
        middle = oracle.double().mean()
        return torch.full_like(oracle, float(middle) if oracle.is_floating_point() else int(middle))
    source = tensors[subject]
    if source.numel() != oracle.numel():
        return None
    return source.reshape(oracle.shape).to(oracle.dtype)


def _changed_share(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a != b).double().mean())
