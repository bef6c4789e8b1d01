"""The gates of one solution, cheap ones first; the first that refuses ends the run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch

from concur.schemas.solution import Solution
from concur.schemas.task import Task, Workload
from concur.schemas.verdict import Comparison, Environment, Fault, Finding, Status
from concur.validators.audit import empty_kernels_must_fail
from concur.validators.calls import Request
from concur.validators.candidate import Candidate
from concur.validators.draw import Case, case_of, derive, draw, release
from concur.validators.ended import Ended, ended_by, finding
from concur.validators.failures import ChildError, ChildFailed
from concur.validators.fitness import missing_device
from concur.validators.hosts import EmptyHost
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions
from concur.validators.ownwork import library_findings, vendor_files
from concur.validators.pairs import SLOT
from concur.validators.probes import Probe, exactly, probes_of, unfit
from concur.validators.process import missing_layers
from concur.validators.reference import Reference
from concur.validators.screens import screen
from concur.validators.timing import Stopwatch, TimingReport, disagreements
from concur.validators.verify import WrongResult, check


@dataclass(frozen=True)
class Bench:
    """What all solutions of a task are judged with."""

    task: Task
    """The task."""
    options: JudgeOptions
    """How to judge."""
    environment: Environment
    """The machine."""
    reference: Callable[[], Reference]
    """The reference side, started when it is first asked for. Raises Ended."""
    lock: DeviceLock
    """Lock of the device."""


class Gates:
    """One solution on its way; what was found stays here when a gate raises Ended."""

    def __init__(self, bench: Bench, solution: Solution, seed: int) -> None:
        """Take the bench, a solution, and the secret seed of its run."""
        self.bench, self.solution, self.seed = bench, solution, seed
        self.task, self.options = bench.task, bench.options
        self.passed_through: list[str] = []
        self.findings: list[Finding] = []
        self.comparisons: list[Comparison] = []
        self.timing = TimingReport()
        self.isolation: list[str] = []
        self.candidate = Candidate(bench.task, solution, bench.options)

    def run(self) -> None:
        """Go through all gates. Raises Ended at the one that refuses."""
        try:
            for name, step in self._steps():
                self.passed_through.append(name)
                step()
        finally:
            self.findings += self.candidate.notes

    def _steps(self) -> list[tuple[str, Callable[[], None]]]:
        steps: list[tuple[str, Callable[[], None]]] = [
            ("schema", self._schema),
            ("screens", self._screens),
            ("isolation", self._isolation),
            ("compile", self.candidate.compile),
            ("load", self._load),
            ("first-workload", self._first_workload),
            ("workloads", self._workloads),
            ("repeat-call", self._repeat_call),
            ("probes", self._probes),
        ]
        if self.candidate.is_module:
            steps.append(("held", self._held))
        if self.options.device == "cuda":
            steps.append(("timing", self._timing))
            steps.append(("own-work", self._own_work))
        if self.options.level == "audit":
            steps.append(("ghost", self._ghost))
        if self.options.level == "quick":
            steps.append(("quick", self._only_quick))
        return steps

    def _schema(self) -> None:
        if self.solution.task_id != self.task.id:
            found = finding("abi.task", "the solution belongs to another task")
            raise Ended(Status.SCHEMA_INVALID, Fault.CANDIDATE, found)
        missing = missing_device(self.task, self.solution, self.bench.environment)
        if missing:
            found = finding("abi.device", missing)
            raise Ended(Status.UNSUPPORTED, Fault.INFRASTRUCTURE, found)

    def _screens(self) -> None:
        found = list(screen(self.task, self.solution))
        refused = [f for f in found if f.severity == "error"]
        self.findings += [f for f in found if f.severity != "error"]
        if refused:
            raise Ended(Status.SCREENED_OUT, Fault.CANDIDATE, *refused)

    def _isolation(self) -> None:
        missing = () if self.options.trust else missing_layers()
        if missing:
            found = finding("isolation.missing", f"not offered here: {', '.join(missing)}")
            raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)

    def _load(self) -> None:
        self.bench.reference()  # started here, where the device is not held
        self.isolation += self.candidate.load()

    def _first_workload(self) -> None:
        self._trial(cheapest(self.task, self.options), 0)

    def _workloads(self) -> None:
        first = cheapest(self.task, self.options)
        workloads = list(self.task.workloads)
        if self.options.level == "quick":
            edge = next((w for w in workloads if w.role == "boundary" and w is not first), None)
            workloads = [first, *([edge] if edge else [])]
        for workload in workloads:
            for trial in range(self.options.trials):
                if (workload.name, trial) != (first.name, 0):
                    self._trial(workload, trial)

    def _case(self, workload: Workload, label: str) -> Case:
        return case_of(self.task, workload, self.options.device, label, self.seed)

    def _request(self, case: Case, tensors: dict[str, torch.Tensor], layout: str) -> Request:
        """Return a call with secret addresses and a secret filling, by a label."""
        number = derive(self.seed, self.solution.id, layout)
        guard = 0xFF if number & 1 else 1 + number % 253
        lead: Literal["short", "long"] = "long" if number & 2 else "short"
        return Request(self.task, case, tensors, SLOT, layout=number, guard=guard, lead=lead)

    def _trial(self, workload: Workload, trial: int) -> None:
        case = self._case(workload, f"trial-{trial}")
        with self.bench.lock.shared():
            tensors = draw(self.task, case, self.options.device)
            self._judge(case, tensors, case.label, trial)
            release(self.options.device)

    def _judge(
        self,
        case: Case,
        tensors: dict[str, torch.Tensor],
        layout: str,
        trial: int,
        rule: str = "",
    ) -> None:
        """Call, and compare with what is computed only then."""
        called = self.candidate.call(self._request(case, tensors, layout))
        expected = self.bench.reference().expected_of(case, tensors)
        try:
            found = check(self.task, case, trial, called.results, expected, rule)
        except WrongResult as wrong:
            self.comparisons += wrong.comparisons
            raise
        if not rule:
            self.comparisons += found

    def _repeat_call(self) -> None:
        """Call with A, then B, then A again in the same memory: all three have to be right."""
        workload = cheapest(self.task, self.options)
        for which in ("a", "b", "a"):
            case = self._case(workload, f"repeat-{which}")
            with self.bench.lock.shared():
                tensors = draw(self.task, case, self.options.device)
                self._judge(case, tensors, "repeat", self.options.trials, "values.repeat")

    def _probes(self) -> None:
        device, row = self.options.device, ""
        for probe in probes_of(self.task, device, self.seed, self.options.level):
            if not probe.in_place:
                row = f"{probe.case.workload.name}/{probe.case.label}"
            with self.bench.lock.shared():
                self._probe(probe, row)
                release(device)

    def _probe(self, probe: Probe, layout: str) -> None:
        case = probe.case
        called = self.candidate.call(self._request(case, probe.tensors, layout))
        expected = self.bench.reference().expected_of(case, probe.tensors)
        reason = unfit(self.task, probe, expected)
        if reason:
            message, where = f"a probe was left out: {reason}", f"{case.workload.name}/{case.label}"
            self.findings.append(finding("probe.unfit", message, where=where, severity="info"))
            return
        wanted = exactly(expected) if probe.expect == "exact" else expected
        check(self.task, case, self.options.trials, called.results, wanted, probe.rule)

    def _held(self) -> None:
        """Results must outlive the next call."""
        workload = cheapest(self.task, self.options)
        a, b = (self._case(workload, f"held-{which}") for which in "ab")
        with self.bench.lock.shared():
            first = draw(self.task, a, self.options.device)
            request = self._request(a, first, "held")
            kept = self.candidate.call(replace(request, hold=True)).results
            second = draw(self.task, b, self.options.device)
            self.candidate.call(self._request(b, second, "held"))
            self._same(kept, workload, "structure.held", "the next call overwrites a result")

    def _same(self, kept: list[torch.Tensor], workload: Workload, rule: str, message: str) -> None:
        now = self.candidate.recopy(workload.name)
        if not all(torch.equal(_raw(a), _raw(b)) for a, b in zip(kept, now, strict=True)):
            found = finding(rule, message, where=workload.name)
            raise Ended(Status.WRONG_VALUES, Fault.CANDIDATE, found)

    def _timing(self) -> None:
        if self.candidate.is_module:
            self._time(None)
            return
        with EmptyHost(self.task, self.options) as host:
            self._time(host)

    def _time(self, host: EmptyHost | None) -> None:
        self.timing = self._stopwatch("once", host).measure()
        self.findings += self.timing.findings
        if self.options.level == "audit":
            again = self._stopwatch("again", host).measure()
            self.findings += disagreements(self.timing, again)

    def _stopwatch(self, label: str, host: EmptyHost | None) -> Stopwatch:
        """Return a stopwatch whose inputs nobody has seen."""
        seed = derive(self.seed, label)
        return Stopwatch(
            self.candidate, self.bench.reference(), self.bench.lock, seed, self.options, host
        )

    def _own_work(self) -> None:
        if not self.candidate.is_module:
            vendors = vendor_files(self.candidate.line.child.mapped_files())
            if vendors:
                message = f"libraries of vendors were loaded: {', '.join(vendors)}"
                found = finding("work.vendor-library", message)
                raise Ended(Status.LIBRARY_WORK, Fault.CANDIDATE, found)
            return
        workload = self.task.workloads[-1]
        case = self._case(workload, "profile")
        tensors = draw(self.task, case, self.options.device)
        try:
            with self.bench.lock.shared():
                kernels = self.candidate.profile(self._request(case, tensors, "profile"))
        except ChildError as error:
            message = "the profiler failed, so that library work could not be looked for"
            found = finding("work.unknown", message, evidence=str(error))
            raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found) from None
        except ChildFailed as error:
            log = self.candidate.line.child.log()
            raise ended_by(error, "work.unknown", workload.name, log) from None
        self.findings += library_findings(kernels, self.candidate.libraries, self.task.operations)

    def _ghost(self) -> None:
        workload = cheapest(self.task, self.options)
        case = self._case(workload, "ghost")
        with self.bench.lock.shared():
            tensors = draw(self.task, case, self.options.device)
            request = self._request(case, tensors, "ghost")
            expected = self.bench.reference().expected_of(case, tensors)
            empty_kernels_must_fail(self.candidate, request, expected)

    def _only_quick(self) -> None:
        found = finding(
            "quick.only", "nothing was found; a full run has to pass it", severity="info"
        )
        raise Ended(Status.UNDECIDED, Fault.NONE, found)


def cheapest(task: Task, options: JudgeOptions) -> Workload:
    """Return the workload with the smallest product of axes."""

    def size(workload: Workload) -> int:
        sizes = workload.axes if options.device == "cuda" else workload.twin
        product = 1
        for value in sizes.values():
            product *= max(1, value)
        return product

    return min(task.workloads, key=size)


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
