"""Judge solutions of one task: the public entry, and the boundary that always gives a verdict.

What this first form covers: the candidate runs in a process of its own with nothing of value in it;
inputs are drawn from secret seeds, results are read and compared by the judge; a launcher's memory
is poisoned, guarded and reused (a module allocates its own); every workload, three drawings each;
timing beside the baseline.

What it does not protect against: the child measures times, the profile and changes of inputs inside
the candidate's process, where they can be forged; the candidate runs as the same user with the file
system readable and writable, so that it can read or overwrite the oracle's results on their way, or
plant a library in the build cache, or call the oracle itself; a candidate that recognises the
contents of inputs it saw before may skip work in timed calls, as their contents repeat; work on a
stream of its own may escape the events; reads out of bounds go unseen; solutions judged in one call
share their inputs; a killed judge leaves its folder in /dev/shm.
"""

import datetime
import secrets
import shutil
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from concur.schemas.rules import RULES_VERSION
from concur.schemas.solution import Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Fault, Finding, Status, Verdict
from concur.validators.candidate import Candidate
from concur.validators.ended import Ended, finding
from concur.validators.environment import probe
from concur.validators.gates import Bench, Gates
from concur.validators.isolation import make_workspace
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions, Timeouts
from concur.validators.process import Child, ChildFailed, ChildSettings
from concur.validators.reference import Reference
from concur.validators.timing import geometric_mean

__all__ = ["JudgeOptions", "Timeouts", "judge", "prebuild"]

_HEALTH_S = 120.0


def judge(task: Task, solutions: Iterable[Solution], options: JudgeOptions) -> Iterator[Verdict]:
    """Yield one verdict per solution, in order; never raises for a bad task or solution.

    One process computes the task's oracle and program for all of them, each solution gets a process
    of its own. What fails in the judge itself gives a verdict `undecided`.
    """
    workspace = make_workspace("judge")
    session = _Session(task, options, workspace)
    try:
        for solution in solutions:
            yield session.judge(solution)
    finally:
        session.close()
        shutil.rmtree(workspace, ignore_errors=True)


def prebuild(task: Task, solution: Solution, options: JudgeOptions) -> None:
    """Compile a solution into the build cache, so that judging it need not wait.

    What fails here fails again, and is reported, when the solution is judged.
    """
    workspace = make_workspace("build")
    candidate = Candidate(task, solution, options, workspace / "candidate", guard=1)
    try:
        candidate.compile()
        if candidate.is_module:
            candidate.load()
    except (Ended, ChildFailed):
        return
    finally:
        candidate.close()
        shutil.rmtree(workspace, ignore_errors=True)


class _Session:
    def __init__(self, task: Task, options: JudgeOptions, workspace: Path) -> None:
        self._reference: Reference | None = None
        self._unfit: Ended | None = None
        self._healthy = True
        self._bench = Bench(
            task=task,
            options=options,
            seed=secrets.randbits(63) if options.seed is None else options.seed,
            environment=probe(options.device),
            workspace=workspace,
            reference=self._open_reference,
            lock=DeviceLock(options.lock),
        )

    def judge(self, solution: Solution) -> Verdict:
        """Return the verdict on one solution."""
        gates = Gates(self._bench, solution)
        findings: tuple[Finding, ...] = ()
        try:
            if not self._healthy:
                found = finding(
                    "device.unhealthy", "the device failed a probe before this solution"
                )
                raise Ended(Status.UNDECIDED, Fault.INFRASTRUCTURE, found)
            gates.run()
            status, fault = Status.PASSED, Fault.NONE
        except Ended as ended:
            status, fault, findings = ended.status, ended.fault, ended.findings
        except Exception as error:  # noqa: BLE001 (the judge's boundary: its own faults are undecided)
            text = "".join(traceback.format_exception(error))
            found = finding("judge.failed", f"{type(error).__name__}: {error}", evidence=text)
            status, fault, findings = Status.UNDECIDED, Fault.JUDGE, (found,)
        finally:
            gates.candidate.close()
            shutil.rmtree(gates.candidate.folder, ignore_errors=True)
        self._probe_after(status)
        return self._verdict(gates, status, fault, findings)

    def close(self) -> None:
        """Kill the reference's process."""
        if self._reference is not None:
            self._reference.close()

    def _open_reference(self) -> Reference:
        if self._unfit is not None:
            raise self._unfit
        if self._reference is None:
            try:
                bench = self._bench
                self._reference = Reference(bench.task, bench.options, bench.workspace)
            except Ended as ended:
                self._unfit = ended
                raise
        return self._reference

    def _probe_after(self, status: Status) -> None:
        suspect = status in (Status.RUNTIME_ERROR, Status.TIMEOUT, Status.CHEATING)
        if self._bench.options.device == "cuda" and suspect:
            self._healthy = is_healthy(self._bench.workspace)

    def _verdict(
        self, gates: Gates, status: Status, fault: Fault, findings: tuple[Finding, ...]
    ) -> Verdict:
        speedups = [t.speedup for t in gates.timings]
        complete = len(speedups) == len(gates.task.workloads)
        baseline: Literal["reference", "oracle"] = (
            "reference" if _has_pytorch(gates.task) else "oracle"
        )
        return Verdict(
            task_id=gates.task.id,
            solution_id=gates.solution.id,
            rules_version=RULES_VERSION,
            status=status,
            fault=fault,
            gates=tuple(gates.passed_through),
            findings=(*findings, *gates.findings),
            comparisons=tuple(gates.comparisons),
            timings=tuple(gates.timings) if complete else (),
            baseline=baseline if complete else "",
            speedup=geometric_mean(speedups) if complete else None,
            environment=self._bench.environment,
            isolation=tuple(gates.isolation),
            seed=self._bench.seed,
            judged_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
        )


def is_healthy(workspace: Path) -> bool:
    """Return whether a fresh process computes a known sum on the GPU."""
    folder = workspace / "health"
    folder.mkdir(exist_ok=True)
    try:
        with Child(ChildSettings("cuda", folder)) as child:
            answer = child.ask("health", _HEALTH_S)
    except ChildFailed:
        return False
    count = 1 << 20
    return bool(answer.get("sum") == float(count * (count - 1)))


def _has_pytorch(task: Task) -> bool:
    return task.program is not None and task.program.language == "pytorch"
