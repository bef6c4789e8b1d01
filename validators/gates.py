"""The gates of one solution, cheap ones first; the first that refuses ends the run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task, Workload
from concur.schemas.verdict import Comparison, Environment, Fault, Finding, Status, Timing
from concur.validators.candidate import Candidate, extension_folder
from concur.validators.draw import case_of, derive, draw, release
from concur.validators.ended import Ended, ended_by, finding
from concur.validators.jobs import expect
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions
from concur.validators.ownwork import library_findings
from concur.validators.process import ChildError, ChildFailed
from concur.validators.reference import Reference
from concur.validators.screens import screen
from concur.validators.timing import Stopwatch
from concur.validators.verify import WrongResult, check


@dataclass(frozen=True)
class Bench:
    """What all solutions of a task are judged with."""

    task: Task
    """The task."""
    options: JudgeOptions
    """How to judge."""
    seed: int
    """Secret seed of the run."""
    environment: Environment
    """The machine."""
    workspace: Path
    """Private folder of the run."""
    reference: Callable[[], Reference]
    """The reference side, started when it is first asked for. Raises Ended."""
    lock: DeviceLock
    """Lock of the device."""


class Gates:
    """One solution on its way; what was found stays here when a gate raises Ended."""

    def __init__(self, bench: Bench, solution: Solution) -> None:
        """Take the bench and a solution."""
        self.bench, self.solution = bench, solution
        self.task, self.options = bench.task, bench.options
        self.passed_through: list[str] = []
        self.findings: list[Finding] = []
        self.comparisons: list[Comparison] = []
        self.timings: list[Timing] = []
        self.isolation: list[str] = []
        guard = 1 + derive(bench.seed, solution.id, "guard") % 254
        folder = bench.workspace / solution.id
        self.candidate = Candidate(bench.task, solution, bench.options, folder, guard)

    def run(self) -> None:
        """Go through all gates. Raises Ended at the one that refuses."""
        steps: list[tuple[str, Callable[[], None]]] = [
            ("schema", self._schema),
            ("screens", self._screens),
            ("compile", self.candidate.compile),
            ("load", self._load),
            ("first-workload", self._first_workload),
            ("workloads", self._workloads),
            ("repeat-call", self._repeat_call),
        ]
        if self.options.device == "cuda":
            steps.append(("timing", self._timing))
            steps.append(("own-work", self._own_work))
        try:
            for name, step in steps:
                self.passed_through.append(name)
                step()
        finally:
            self.findings += self.candidate.notes

    def _schema(self) -> None:
        if self.solution.task_id != self.task.id:
            found = finding("abi.task", "the solution belongs to another task")
            raise Ended(Status.SCHEMA_INVALID, Fault.CANDIDATE, found)
        missing = _missing_device(self.task, self.solution, self.bench.environment)
        if missing:
            found = finding("abi.device", missing)
            raise Ended(Status.UNSUPPORTED, Fault.INFRASTRUCTURE, found)

    def _screens(self) -> None:
        found = list(screen(self.task, self.solution))
        if found:
            raise Ended(Status.SCREENED_OUT, Fault.CANDIDATE, *found)

    def _load(self) -> None:
        self.bench.reference()  # started here, where the device is not held
        self.isolation += self.candidate.load()

    def _first_workload(self) -> None:
        self._trial(self._cheapest(), 0)

    def _workloads(self) -> None:
        for workload in self.task.workloads:
            for trial in range(self.options.trials):
                if (workload.name, trial) != (self._cheapest().name, 0):
                    self._trial(workload, trial)

    def _cheapest(self) -> Workload:
        def size(workload: Workload) -> int:
            sizes = workload.axes if self.options.device == "cuda" else workload.twin
            product = 1
            for value in sizes.values():
                product *= max(1, value)
            return product

        return min(self.task.workloads, key=size)

    def _trial(self, workload: Workload, trial: int) -> None:
        case = case_of(self.task, workload, self.options.device, f"trial-{trial}", self.bench.seed)
        with self.bench.lock.shared():
            expected = self.bench.reference().expected(case)
            results = self.candidate.run(case, draw(self.task, case, self.options.device))
            self._compare(lambda: check(self.task, case, trial, results, expected))
            release(self.options.device)

    def _repeat_call(self) -> None:
        """Call with A, then B, then A again in the same memory: all three have to be right."""
        workload, device = self._cheapest(), self.options.device
        cases = [
            case_of(self.task, workload, device, f"repeat-{which}", self.bench.seed)
            for which in ("a", "b", "a")
        ]
        self.candidate.ask("free", cases[0])
        for case in cases:
            with self.bench.lock.shared():
                expected = self.bench.reference().expected(case)
                results = self.candidate.run(case, draw(self.task, case, device), reuse=True)
                trial, rule = self.options.trials, "values.repeat"
                check(self.task, case, trial, results, expected, rule)
        self.candidate.ask("free", cases[0])

    def _timing(self) -> None:
        stopwatch = Stopwatch(
            self.candidate, self.bench.reference(), self.bench.lock, self.bench.seed
        )
        self.timings = stopwatch.measure()

    def _own_work(self) -> None:
        """Profile the workload that was timed last, whose inputs the child still holds."""
        if not self.options.profile:
            return
        case = case_of(self.task, self.task.workloads[-1], "cuda", "timed-0", self.bench.seed)
        targets = expect(self.task, case, self.candidate.folder)
        job = {"results": targets, "guard": self.candidate.guard, "ring": case.workload.name}
        try:
            with self.bench.lock.shared():
                answer = self.candidate.child.ask("profile", self.options.timeouts.run, **job)
        except ChildError as error:
            message = "the profiler failed, so that library work could not be looked for"
            found = finding("work.unknown", message, evidence=str(error))
            raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found) from None
        except ChildFailed as error:
            log = self.candidate.child.log()
            raise ended_by(error, "work.unknown", case.workload.name, log) from None
        kernels = [(str(name), float(spent)) for name, spent in answer.get("kernels") or []]
        self.findings += library_findings(kernels, list(self._binaries()))

    def _binaries(self) -> Iterator[Path]:
        if self.candidate.library is not None:
            yield self.candidate.library
        if self.solution.contract is Contract.MODEL_NEW:
            yield from sorted(extension_folder(self.solution, self.options).glob("**/*.so"))

    def _compare(self, comparing: Callable[[], list[Comparison]]) -> None:
        try:
            self.comparisons += comparing()
        except WrongResult as wrong:
            self.comparisons += wrong.comparisons
            raise


def _missing_device(task: Task, solution: Solution, environment: Environment) -> str:
    """Return what the solution needs and this machine has not got; empty when it has all."""
    needed = "cpu" if solution.contract is Contract.CPP_FUNCTION else "cuda"
    if environment.device_kind != needed:
        return (
            f"contract {solution.contract} is judged on {needed}, not on {environment.device_kind}"
        )
    if needed == "cpu":
        return ""
    here = environment.compute_capability
    if _pair(here) < _pair(task.min_compute_capability):
        return (
            f"the task needs compute capability {task.min_compute_capability}, this GPU has {here}"
        )
    wanted = solution.architecture.removeprefix("sm_").rstrip("af")
    if wanted and wanted != here.replace(".", ""):
        return f"the solution is written for {solution.architecture}, this GPU has {here}"
    return ""


def _pair(capability: str) -> tuple[int, int]:
    major, _, minor = capability.partition(".")
    return int(major or 0), int(minor or 0)
