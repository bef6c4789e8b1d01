"""The empty launcher, the copy in parts, and a baseline that somebody slows down."""

import ctypes

import numpy as np
import pytest
import torch

from concur.schemas.verdict import Fault, Status
from concur.validators.calls import Line, Request
from concur.validators.draw import case_of, draw
from concur.validators.ended import Ended
from concur.validators.hosts import EmptyHost
from concur.validators.inside.memory import Memory
from concur.validators.options import JudgeOptions
from concur.validators.pairs import SLOT
from concur.validators.twoclocks import Readings, undisturbed
from tests.sampling import task_of


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 1000, 4099])
def test_copies_in_parts_copy_everything_once(size: int) -> None:
    source = ctypes.create_string_buffer(bytes(i % 251 for i in range(size)) + b"!", size + 1)
    target = ctypes.create_string_buffer(size + 1)
    order = [int(i) for i in np.random.default_rng(size).permutation(16)]
    ends = (ctypes.addressof(target), ctypes.addressof(source))
    Memory("cpu").copy_parts(*ends, size, order)
    assert target.raw[:size] == source.raw[:size]
    assert target.raw[size] == 0


def test_an_empty_launcher_returns_poison() -> None:
    task = task_of("axpby")
    case = case_of(task, task.workloads[0], "cpu", "trial-0", 1)
    with EmptyHost(task, JudgeOptions(device="cpu")) as host:
        called = host.call(Request(task, case, draw(task, case, "cpu"), SLOT, layout=3))
    assert called.mutated == [] and called.overwritten == []
    assert bool(called.results[0].isnan().all())
    assert called.wall_us > 0


def test_every_call_has_its_own_order_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_of("axpby")
    case = case_of(task, task.workloads[0], "cpu", "trial-0", 1)
    tensors, orders = draw(task, case, "cpu"), []
    with EmptyHost(task, JudgeOptions(device="cpu")) as host:
        line: Line = host._line
        ask = line.child.ask

        def listening(do: str, timeout: float, **job: object) -> dict[str, object]:
            if do == "call":
                orders.append(tuple(job["results"][0]["order"]))  # type: ignore[index]
            return ask(do, timeout, **job)  # type: ignore[arg-type]

        monkeypatch.setattr(line.child, "ask", listening)
        for layout in range(4):
            line.call(Request(task, case, tensors, SLOT, layout=layout), 10.0)
    assert len(set(orders)) == 4
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(16))}


def readings(us: float) -> Readings:
    times = np.full(40, us)
    return Readings(times, times + 300.0)


def test_a_baseline_that_is_left_alone_counts_as_it_is() -> None:
    us, found = undisturbed(readings(100.0), [98.0] * 10, "w")
    assert found == [] and float(np.median(us)) == 100.0


def test_slowing_the_baseline_down_gains_nothing() -> None:
    us, (found,) = undisturbed(readings(150.0), [100.0] * 10, "w")
    assert found.rule == "timing.disturbed" and found.severity == "warning"
    assert float(np.median(us)) == pytest.approx(100.0)


def test_keeping_the_device_busy_between_calls_is_cheating() -> None:
    with pytest.raises(Ended) as ended:
        undisturbed(readings(8000.0), [100.0] * 10, "w")
    assert (ended.value.status, ended.value.fault) == (Status.CHEATING, Fault.CANDIDATE)


def test_results_are_copies_that_the_next_call_leaves_alone() -> None:
    task = task_of("axpby")
    case = case_of(task, task.workloads[0], "cpu", "trial-0", 1)
    tensors = draw(task, case, "cpu")
    with EmptyHost(task, JudgeOptions(device="cpu")) as host:
        first = host.call(Request(task, case, tensors, SLOT, layout=1)).results[0]
        kept = first.clone()
        host.call(Request(task, case, tensors, SLOT, layout=2, guard=7))
    assert torch.equal(first.view(torch.uint8), kept.view(torch.uint8))
