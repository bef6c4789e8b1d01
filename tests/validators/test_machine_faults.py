"""What a solution does to the machine costs neither the next solution nor anything else."""

import os
import signal
from pathlib import Path

import pytest

from concur.schemas import Verdict
from concur.schemas.verdict import Fault, Outcome, Status
from concur.validators import judge as judging
from concur.validators.environment import cuda_available
from concur.validators.judge import JudgeOptions, Timeouts, judge
from concur.validators.process import Child
from tests.sampling import SampleCase, cases

LIMITS = Timeouts(compile=60, load=10, run=3)
GOOD = {
    "cpu": {"scaled-column-sum": "by-row"},
    "cuda": {
        "axpby": "grid-stride",
        "half-gelu": "flat-scalar",
        "scaled-column-sum": "chunk-atomics",
    },
}
ON_CPU = [
    "bomb-files",
    "bomb-forks",
    "bomb-output",
    "hang-with-signals-blocked",
    "kills-every-process",
    "leaves-daemon",
]
ON_GPU = [
    "cheats/axpby/bomb-device-memory",
    "cheats/axpby/destroys-context",
    "cheats/axpby/hang-spin-kernel",
    "cheats/axpby/poisons-context",
    "faults/half-gelu/assertion",
    "faults/scaled-column-sum/illegal-address",
]


def sample(name: str) -> SampleCase:
    kind, _, key = name.partition("/")
    (found,) = [case for case in cases(kind) if case.key == key]
    return found


def good_beside(key: str, device: str) -> SampleCase:
    task = key.partition("/")[0]
    return sample(f"good/{task}/{GOOD[device][task]}")


def both(name: str, device: str, cache: Path) -> tuple[SampleCase, list[Verdict]]:
    """Judge a sample, and a good one after it beside the same reference."""
    bad = sample(name)
    good = good_beside(bad.key, device)
    options = JudgeOptions(
        device=device,  # type: ignore[arg-type]
        timeouts=LIMITS,
        build_cache=cache,
        further_baselines=False,
    )
    return bad, list(judge(bad.task, [bad.solution, good.solution], options))


@pytest.mark.parametrize("slug", ON_CPU)
def test_the_next_solution_is_unaffected(slug: str, cache: Path) -> None:
    bad, (first, second) = both(f"cheats/scaled-column-sum/{slug}", "cpu", cache)
    assert first.status in bad.expectation.status
    assert second.status is Status.PASSED
    assert not [p.name for p in Path("/proc").iterdir() if p.name.isdigit() and _is_child(p)]


@pytest.mark.gpu
@pytest.mark.skipif(not cuda_available(), reason="needs a GPU and nvcc")
@pytest.mark.parametrize("name", ON_GPU)
def test_the_next_solution_is_unaffected_on_a_gpu(name: str, cache: Path) -> None:
    bad, (first, second) = both(name, "cuda", cache)
    assert first.status in bad.expectation.status
    assert second.status is Status.PASSED


def test_a_device_that_is_lost_decides_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = iter([False, False, True])
    monkeypatch.setattr(judging, "is_healthy", lambda _device: next(healthy, True))
    bad, good = (
        sample("faults/scaled-column-sum/segfault"),
        good_beside("scaled-column-sum/x", "cpu"),
    )
    options = JudgeOptions(device="cpu", timeouts=LIMITS, build_cache=cache)
    order = [bad.solution, good.solution, good.solution]
    first, second, third = judge(bad.task, order, options)
    assert first.outcome is Outcome.REJECTED
    assert (second.status, second.fault) == (Status.UNDECIDED, Fault.INFRASTRUCTURE)
    assert second.findings[0].rule == "device.unhealthy"
    assert third.status is Status.PASSED


def test_a_child_that_somebody_kills_is_judged_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is the machine's doing; a solution that ends so again did it itself."""
    killed: list[int] = []
    ask = Child.ask

    def killing(child: Child, do: str, timeout: float, **job: object) -> object:
        if do == "call" and not killed and job.get("slot") == "candidate":
            killed.append(child.pid)
            os.kill(child.pid, signal.SIGKILL)
        return ask(child, do, timeout, **job)  # type: ignore[arg-type]

    monkeypatch.setattr(Child, "ask", killing)
    good = good_beside("scaled-column-sum/x", "cpu")
    options = JudgeOptions(device="cpu", timeouts=LIMITS, build_cache=cache)
    (verdict,) = judge(good.task, [good.solution], options)
    assert killed and verdict.status is Status.PASSED


def _is_child(process: Path) -> bool:
    """Whether a process is a judge's child: its parent is this process, and it is no zombie."""
    try:
        fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        command = (process / "cmdline").read_text()
    except OSError:
        return False
    return fields[0] != "Z" and int(fields[1]) == os.getpid() and "receive_exactly" in command
