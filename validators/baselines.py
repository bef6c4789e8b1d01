"""Further baselines of a task: eager PyTorch with TF32, and torch.compile.

They belong to the task and the machine, not to a solution: measured once for a task, device,
PyTorch and version of the rules, and kept as JSON in the cache folder. Each gets a child of its
own, since TF32 and a compiler's settings belong to a process. One that fails is left out, and a
note says why; a failure that is the machine's doing is tried again the next time.
"""

import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import torch

from concur.schemas.rules import RULES_VERSION
from concur.schemas.task import Task
from concur.schemas.timing import Baseline
from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.calls import Request
from concur.validators.draw import case_of, derive, draw
from concur.validators.ended import Ended, finding
from concur.validators.helper import Helper
from concur.validators.isolation import private_folder
from concur.validators.lock import DeviceLock
from concur.validators.options import JudgeOptions
from concur.validators.process import Child, ChildSettings
from concur.validators.statistics import summarise

CALLS = 30
"""Calls of each workload that count."""

_WARM_UP = 5
_THREADS = 2
_SLOT = "reference"


@dataclass(frozen=True)
class _Way:
    """A way to run the reference."""

    kind: Literal["eager-tf32", "compile"]
    compiled: bool = False
    environment: dict[str, str] = field(default_factory=dict)


_WAYS = (
    _Way("eager-tf32"),
    # In the child's own process: its workers would be further processes to watch.
    _Way("compile", compiled=True, environment={"TORCHINDUCTOR_COMPILE_THREADS": "1"}),
)


def further_baselines(
    task: Task, options: JudgeOptions, lock: DeviceLock, seed: int
) -> tuple[list[Baseline], list[Finding]]:
    """Return further baselines and notes on what is missing.

    There are none on a CPU, in a quick run, where the options ask for none, and for a task without
    a PyTorch program.
    """
    if not options.further_baselines:
        return [], []
    pytorch = task.program is not None and task.program.language == "pytorch"
    if options.device != "cuda" or options.level == "quick" or not pytorch:
        return [], []
    path = _path(task, options)
    kept = _read(path)
    found = []
    for way in _WAYS:
        if way.kind not in kept:
            try:
                kept[way.kind] = _measure(way, task, options, lock, seed)
            except Ended as ended:
                text = ended.findings[0].message
                if ended.fault is not Fault.TASK:
                    found.append(_missing(way.kind, text))
                    continue
                kept[way.kind] = text
    _write(path, kept)
    found += [_missing(name, text) for name, text in kept.items() if isinstance(text, str)]
    times = [entry for entry in kept.values() if isinstance(entry, list)]
    return [baseline for entry in times for baseline in entry], found


def _measure(
    way: _Way, task: Task, options: JudgeOptions, lock: DeviceLock, seed: int
) -> list[Baseline]:
    """Return the times of one way on every workload. Raises Ended."""
    tf32 = way.kind == "eager-tf32" or "tf32" in task.allowed_precision
    settings = ChildSettings(
        "torch",
        options.device,
        tf32=tf32,
        threads=_THREADS,
        processes=way.compiled,
        environment=way.environment,
    )
    # A first call compiles, which takes as long as loading may.
    patient = replace(options, timeouts=replace(options.timeouts, run=options.timeouts.load))
    helper = Helper(settings, patient, {_SLOT: lambda child: _load(child, way, task, options)})
    try:
        helper.start()
        # Compiling may take minutes and needs no device of its own.
        with lock.shared():
            for request in _requests(task, options, seed, 1):
                helper.call(request)
        with lock.exclusive():
            return _times(helper, way, _requests(task, options, seed, _WARM_UP + CALLS))
    finally:
        helper.close()


def _requests(task: Task, options: JudgeOptions, seed: int, calls: int) -> Iterator[Request]:
    """Yield calls like those of `pairs`, workload by workload; single ones set the weights."""
    for workload in task.workloads:
        for index in range(calls):
            case = case_of(task, workload, options.device, f"timed-alone-{calls}-{index}", seed)
            yield Request(
                task,
                case,
                draw(task, case, options.device),
                _SLOT,
                layout=derive(seed, workload.name, case.label, "alone"),
                lead="long",
                parameters="set" if calls == 1 else "keep",
            )


def _times(helper: Helper, way: _Way, requests: Iterator[Request]) -> list[Baseline]:
    """Return the median of each workload's calls, without the first ones. Raises Ended."""
    times: dict[str, list[float]] = {}
    for request in requests:
        us, name = helper.call(request).us, request.case.workload.name
        if us is None or not us > 0.0:
            found = finding("timing.failed", "a timed call gave no time", where=name)
            raise Ended(Status.UNDECIDED, Fault.JUDGE, found)
        times.setdefault(name, []).append(us)
    return [
        Baseline(kind=way.kind, workload=name, median_us=round(summarise(us[_WARM_UP:]).median, 3))
        for name, us in times.items()
    ]


def _load(child: Child, way: _Way, task: Task, options: JudgeOptions) -> None:
    assert task.program is not None
    files = [{"path": "reference.py", "content": task.program.source}]
    child.ask(
        "load",
        options.timeouts.load,
        slot=_SLOT,
        kind="reference",
        name="Model",
        module=_SLOT,
        entry="reference.py",
        files=files,
        compiled=way.compiled,
    )


def _path(task: Task, options: JudgeOptions) -> Path:
    """Return the file that holds what was measured for a task on this machine."""
    here = f"{torch.cuda.get_device_name(0)}/{torch.__version__}/{RULES_VERSION}"
    folder = private_folder(options.cache) / "baselines"
    folder.mkdir(exist_ok=True)
    return folder / f"{task.id}-{hashlib.sha256(here.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> dict[str, list[Baseline] | str]:
    """Return times, or why there are none, by way; nothing where nothing sound is kept."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(name): told if isinstance(told, str) else [Baseline.from_plain(b) for b in told]
            for name, told in plain.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _write(path: Path, kept: dict[str, list[Baseline] | str]) -> None:
    plain = {
        name: told if isinstance(told, str) else [b.to_plain() for b in told]
        for name, told in kept.items()
    }
    partial = path.with_suffix(f".{secrets.token_hex(4)}")
    partial.write_text(json.dumps(plain), encoding="utf-8")
    partial.replace(path)


def _missing(name: str, text: str) -> Finding:
    message = f"the baseline {name} could not be measured: {text}"
    return finding("timing.failed", message, severity="info")
