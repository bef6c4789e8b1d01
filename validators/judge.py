"""Judge solutions of one task: the public entry, and the boundary that always gives a verdict.

A solution runs in a process of its own, isolated, with nothing in it but the solution and its
inputs. The judge draws those from a secret seed that is fresh for every solution, lends the memory,
and reads results, side effects and its own clock there; what a solution has to give is computed
after it has run. What this shows and what it does not is told in `docs/verification.md`.
"""

import datetime
import secrets
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from concur.schemas.rules import RULES_VERSION
from concur.schemas.solution import Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Fault, Finding, Outcome, Status, Verdict
from concur.validators.candidate import Candidate
from concur.validators.draw import derive
from concur.validators.ended import Ended, finding
from concur.validators.environment import probe
from concur.validators.failures import ChildFailed
from concur.validators.gates import Bench, Gates
from concur.validators.health import is_healthy
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions, Level, Timeouts
from concur.validators.reference import Reference

__all__ = ["JudgeOptions", "Level", "Timeouts", "judge", "prebuild"]


def judge(task: Task, solutions: Iterable[Solution], options: JudgeOptions) -> Iterator[Verdict]:
    """Yield one verdict per solution, in order; never raises for a bad task or solution.

    One process computes the task's oracle and program for all of them, each solution gets a process
    of its own. What fails in the judge itself gives a verdict `undecided`.
    """
    session = _Session(task, options)
    try:
        for solution in solutions:
            yield session.judge(solution)
    finally:
        session.close()


def prebuild(task: Task, solution: Solution, options: JudgeOptions) -> None:
    """Compile a solution into the build cache, so that judging it need not wait.

    What fails here fails again, and is reported, when the solution is judged.
    """
    # Without the device, which others may be timing on: a build needs none.
    candidate = Candidate(task, solution, replace(options, device="cpu"))
    try:
        candidate.compile()
        if candidate.is_module:
            candidate.load()
    except (Ended, ChildFailed):
        return
    finally:
        candidate.close()


class _Session:
    def __init__(self, task: Task, options: JudgeOptions) -> None:
        self._reference: Reference | None = None
        self._unfit: Ended | None = None
        self._healthy = True
        self._bench = Bench(
            task=task,
            options=options,
            environment=probe(options.device),
            reference=self._open_reference,
            lock=DeviceLock(options.lock),
        )

    def judge(self, solution: Solution) -> Verdict:
        """Return the verdict on one solution.

        One that lacked memory, or whose process somebody killed, gets a second, alone.
        """
        verdict = self._try(self._bench, solution)
        if not _may_be_others(verdict):
            return verdict
        with self._bench.lock.exclusive():
            # The reference's process may hold on to a failed state.
            self.close()
            self._reference, self._unfit = None, None
            return self._try(replace(self._bench, lock=DeviceLock(None)), solution)

    def _try(self, bench: Bench, solution: Solution) -> Verdict:
        gates = Gates(bench, solution, self._seed(solution))
        findings: tuple[Finding, ...] = ()
        try:
            self._healthy = self._healthy or is_healthy(bench.options.device)
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
        if status is not Status.PASSED:
            self._healthy = is_healthy(self._bench.options.device)
        return self._verdict(gates, status, fault, findings)

    def close(self) -> None:
        """Kill the reference's process."""
        if self._reference is not None:
            self._reference.close()

    def _seed(self, solution: Solution) -> int:
        """Return a seed that no other solution of the run shares."""
        if self._bench.options.seed is None:
            return secrets.randbits(63)
        return derive(self._bench.options.seed, solution.id)

    def _open_reference(self) -> Reference:
        if self._unfit is not None:
            raise self._unfit
        if self._reference is None:
            try:
                self._reference = Reference(self._bench.task, self._bench.options)
            except Ended as ended:
                self._unfit = ended
                raise
        return self._reference

    def _verdict(
        self, gates: Gates, status: Status, fault: Fault, findings: tuple[Finding, ...]
    ) -> Verdict:
        told = gates.timing
        baseline: Literal["reference", "oracle"] = (
            "reference" if _has_pytorch(gates.task) else "oracle"
        )
        return Verdict(
            task_id=gates.task.id,
            solution_id=gates.solution.id,
            rules_version=RULES_VERSION,
            level=self._bench.options.level,
            status=status,
            fault=fault,
            gates=tuple(gates.passed_through),
            findings=(*findings, *gates.findings),
            comparisons=tuple(gates.comparisons),
            timings=told.timings,
            baseline=baseline if told.timings else "",
            speedup=told.speedup,
            speedup_low=told.speedup_low,
            speedup_high=told.speedup_high,
            claim=told.claim,
            baselines=told.baselines,
            clocks=told.clocks,
            environment=self._bench.environment,
            isolation=tuple(gates.isolation),
            seed=gates.seed,
            judged_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
        )


def _may_be_others(verdict: Verdict) -> bool:
    """Whether a run ended as it does when others take the memory, or kill the process."""
    told = " ".join(f"{f.rule} {f.message} {f.evidence}" for f in verdict.findings)
    if verdict.outcome is Outcome.UNDECIDED:
        return "out of memory" in told.lower()
    return verdict.status is Status.RUNTIME_ERROR and "killed by SIGKILL" in told


def _has_pytorch(task: Task) -> bool:
    return task.program is not None and task.program.language == "pytorch"
