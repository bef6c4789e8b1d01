"""Say whether samples would be accepted: read, check, admit the task, judge the solutions.

The cheap steps come first, and a step that finds an error ends the sample there. What needs PyTorch
or a GPU that is not here is pending, which is no fault of the sample. Files of the judge that come
with a sample are reported and never believed.
"""

import importlib.util
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from concur.builders.folder import SampleRead, find_samples, read_samples
from concur.errors import JudgeError, MissingDependency
from concur.schemas.sample import Sample
from concur.schemas.solution import Contract, Solution
from concur.schemas.verdict import Admission, Finding, Outcome, Verdict
from concur.validators.checks import check_sample
from concur.validators.environment import cuda_available

GpuMode = Literal["auto", "require", "never"]
Device = Literal["cpu", "cuda"]

INSTALL_JUDGE = 'pip install "concur-kernels[judge]"'
"""What installs everything that judging needs, CUDA's compiler aside."""


@dataclass(frozen=True)
class ValidateOptions:
    """How far validation goes."""

    gpu: GpuMode = "auto"
    """auto: judge CUDA where there is a GPU. require: JudgeError without one. never: CPU only."""
    level: Literal["quick", "full", "audit"] = "full"
    """How thorough the judge is; quick can only reject."""
    trust: bool = False
    """Whether to run solutions where the machine cannot keep them apart or off the network."""


@dataclass(frozen=True)
class Judged:
    """A verdict and what it is about."""

    subject: str
    """`solutions/NAME`, or `trajectories/NAME/N` for attempt N, from 0."""
    is_attempt: bool
    """An attempt of a trajectory may fail without costing the sample."""
    verdict: Verdict
    """What the judge found."""


@dataclass(frozen=True)
class SampleReport:
    """Everything that validation found out about one sample."""

    path: Path
    """Folder or file."""
    name: str
    """Name of the task, or of the file where the task cannot be read."""
    line: int = 0
    """Line in a .jsonl file; 0 otherwise."""
    findings: tuple[Finding, ...] = ()
    """Of reading and checking."""
    admissions: tuple[Admission, ...] = ()
    """Of the task: on the CPU, and on the GPU where there is one."""
    judged: tuple[Judged, ...] = ()
    """Verdicts that were made now."""
    pending: tuple[str, ...] = ()
    """What could not be done on this machine, and what it takes."""
    awaiting_gpu: int = 0
    """Solutions and attempts that a GPU has yet to judge."""
    failure: str = ""
    """What went wrong with the judge itself; the sample is undecided then."""

    @property
    def outcome(self) -> Outcome:
        """rejected when anything is wrong with the sample; accepted includes pending steps."""
        outcomes = [a.outcome for a in self.admissions]
        outcomes += [j.verdict.outcome for j in self.judged if not j.is_attempt]
        has_error = any(f.severity == "error" for f in self.findings)
        if has_error or Outcome.REJECTED in outcomes:
            return Outcome.REJECTED
        attempts = [j.verdict.outcome for j in self.judged if j.is_attempt]
        if self.failure or Outcome.UNDECIDED in (*outcomes, *attempts):
            return Outcome.UNDECIDED
        return Outcome.ACCEPTED


@dataclass(frozen=True)
class _Machine:
    has_torch: bool
    devices: tuple[Device, ...] = ()
    options: ValidateOptions = field(default_factory=ValidateOptions)


def validate(paths: Iterable[Path], options: ValidateOptions) -> Iterator[SampleReport]:
    """Yield a report for every sample at the paths, in order.

    Raises JudgeError when `gpu` is `require` and there is none, MissingDependency when it is and
    PyTorch is missing. Never raises for a bad sample.
    """
    machine = _machine(options)
    for path in paths:
        for found in find_samples(path):
            for read in read_samples(found):
                yield _validate_one(read, machine)


def _machine(options: ValidateOptions) -> _Machine:
    gpu = options.gpu
    has_torch = importlib.util.find_spec("torch") is not None
    if gpu == "require" and not has_torch:
        raise MissingDependency(f"judging on a GPU needs PyTorch: {INSTALL_JUDGE}")
    has_gpu = gpu != "never" and cuda_available()
    if gpu == "require" and not has_gpu:
        raise JudgeError(
            "no usable GPU was found (nvidia-smi lists none, or nvcc is not on PATH); "
            "run it on a machine with one, or leave --gpu at auto"
        )
    if not has_torch:
        return _Machine(has_torch=False)
    devices: tuple[Device, ...] = ("cpu", "cuda") if has_gpu else ("cpu",)
    return _Machine(True, devices, options)


def _validate_one(read: SampleRead, machine: _Machine) -> SampleReport:
    findings = [*read.findings, *_files_of_the_judge(read)]
    name = read.sample.task.name if read.sample else read.path.name
    report = SampleReport(read.path, name, read.line)
    if read.sample is None:
        return replace(report, findings=tuple(findings))
    findings += check_sample(read.sample)
    report = replace(report, findings=tuple(findings))
    if report.outcome is Outcome.REJECTED:
        return report
    report = _with_pending(report, read.sample, machine)
    try:
        for device in machine.devices:
            report = _judge_on(device, read.sample, report, machine.options)
            if report.outcome is Outcome.REJECTED:
                break
    except JudgeError as error:
        report = replace(report, failure=str(error))
    return report


def _judge_on(
    device: Device, sample: Sample, report: SampleReport, wanted: ValidateOptions
) -> SampleReport:
    # Both import PyTorch's side of the judge, which a light installation has not got.
    from concur.validators.admission import admit
    from concur.validators.judge import JudgeOptions, judge

    admission = admit(sample.task, device=device, seed=secrets.randbits(32))
    report = replace(report, admissions=(*report.admissions, admission))
    if admission.outcome is not Outcome.ACCEPTED:
        return report
    candidates = [c for c in sample.candidates if _device_of(c) == device]
    options = JudgeOptions(device=device, level=wanted.level, trust=wanted.trust)
    verdicts = {v.solution_id: v for v in judge(sample.task, candidates, options)}
    judged = [
        Judged(subject, is_attempt, verdicts[solution.id])
        for subject, is_attempt, solution in _subjects(sample)
        if solution.id in verdicts
    ]
    return replace(report, judged=(*report.judged, *judged))


def _with_pending(report: SampleReport, sample: Sample, machine: _Machine) -> SampleReport:
    pending = []
    if not machine.has_torch:
        pending.append(f"CPU admission pending: {INSTALL_JUDGE}")
        if any(_device_of(c) == "cpu" for c in sample.candidates):
            pending.append(f"CPU verdict pending: {INSTALL_JUDGE}")
    awaiting = 0
    if "cuda" not in machine.devices:
        awaiting = sum(_device_of(c) == "cuda" for c in sample.candidates)
    if awaiting:
        plural = "s" if awaiting > 1 else ""
        pending.append(f"GPU verdict pending for {awaiting} solution{plural}")
    return replace(report, pending=tuple(pending), awaiting_gpu=awaiting)


def _subjects(sample: Sample) -> Iterator[tuple[str, bool, Solution]]:
    for solution in sample.solutions:
        yield f"solutions/{solution.name}", False, solution
    for log in sample.trajectories:
        for attempt in log.attempts:
            yield f"trajectories/{log.name}/{attempt.solution.name}", True, attempt.solution


def _device_of(solution: Solution) -> Device:
    return "cpu" if solution.contract is Contract.CPP_FUNCTION else "cuda"


def _files_of_the_judge(read: SampleRead) -> Iterator[Finding]:
    count = len(read.recorded.verdicts) + len(read.recorded.admissions)
    if count:
        verb = "files of the judge are" if count > 1 else "file of the judge is"
        yield Finding(
            rule="folder.verdict-ignored",
            severity="info",
            message=f"{count} {verb} not looked at: only what the judge finds now counts",
            path=str(read.path),
            remedy="Leave verdict.json and admission-*.json out of a contribution.",
        )
