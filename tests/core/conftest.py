"""Small corpora in temporary folders, with verdicts and admissions that are forged for the tests.

Nothing here is ever a verdict of the judge: the records only have to be valid and bound to the
samples, so that a build can be exercised without a GPU.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from concur.builders.folder import SampleRead, read_sample, write_admission, write_verdict
from concur.schemas import Admission, Task, Verdict
from concur.splits import SPLITS, split_of

Factory = Callable[..., Any]

KERNEL = """#include <cstdint>

__global__ void add(const float* x, const float* y, float* z, int64_t n) {
    int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}

extern "C" int launch(const float* x, const float* y, float* z, int64_t N, void* stream) {
    add<<<(N + 255) / 256, 256, 0, static_cast<cudaStream_t>(stream)>>>(x, y, z, N);
    return cudaGetLastError();
}
"""


def groups() -> Iterator[str]:
    """Group names that fall into each split in turn."""
    found: dict[str, list[str]] = {split: [] for split in SPLITS}
    number = 0
    while True:
        for split in SPLITS:
            while not found[split]:
                found[split_of(f"group-{number}")].append(f"group-{number}")
                number += 1
            yield found[split].pop(0)


def forged_admission(task: Task, **changes: Any) -> Admission:
    plain = {
        "task_id": task.id,
        "rules_version": 1,
        "sizes": "twin",
        "outcome": "accepted",
        "environment": {
            "device_kind": "cpu",
            "device": "forged processor",
            "torch": "2.13.0",
            "python": "3.11.9",
            "os": "Linux 6.1",
        },
        "seed": 1,
        "judged_on": "2026-12-01",
    }
    return Admission.from_plain({**plain, **changes})


def use_cuda(folder: Path, mark: str) -> None:
    """Turn the C++ solutions of a sample folder into CUDA ones with sources of their own."""
    for header in sorted(folder.rglob("solution.json")):
        plain = json.loads(header.read_text())
        header.write_text(json.dumps({**plain, "contract": "cuda_function", "entry": "kernel.cu"}))
        (header.parent / "kernel.cpp").unlink()
        text = f"// {mark}, {header.parent.name}\n{KERNEL}"
        (header.parent / "kernel.cu").write_text(text)
        reasoning = "One thread an element: memory bound, 12 bytes an element. " * 4
        (header.parent / "reasoning.md").write_text(f"{reasoning}{mark}.\n")


@pytest.fixture
def forge(make_verdict: Factory) -> Callable[[Path], SampleRead]:
    """`forge(folder)` writes an admission and a verdict for everything in a sample folder.

    An attempt whose name ends in `wrong` failed; everything else passed.
    """

    def write(folder: Path) -> SampleRead:
        read = read_sample(folder)
        assert read.sample is not None, read.findings
        write_admission(folder, forged_admission(read.sample.task))
        for solution in read.sample.candidates:
            changes: dict[str, Any] = {}
            if solution.name.endswith("wrong"):
                finding = {"rule": "values.tolerance", "severity": "error", "message": "Wrong."}
                changes = {"status": "wrong_values", "fault": "candidate", "findings": [finding]}
                changes |= {"timings": [], "speedup": None, "baseline": ""}
            verdict: Verdict = make_verdict(solution, **changes)
            write_verdict(read.recorded.folders[solution.id], verdict)
        return read_sample(folder)

    return write


@pytest.fixture
def write_corpus(
    tmp_path: Path, write_sample_folder: Factory, forge: Callable[[Path], SampleRead]
) -> Factory:
    """`write_corpus(count=3, name="corpus") -> Path` of samples that all passed, in every split."""

    def write(count: int = 3, name: str = "corpus") -> Path:
        corpus = tmp_path / name
        for number, group in zip(range(count), groups(), strict=False):
            folder = write_sample_folder(f"add-vectors-{number}", corpus)
            task = json.loads((folder / "task.json").read_text())
            task["provenance"]["group"] = group
            (folder / "task.json").write_text(json.dumps(task))
            use_cuda(folder, f"{name} {number}")
            forge(folder)
        return corpus

    return write


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("hf")))


@pytest.fixture
def make_admission() -> Factory:
    """`make_admission(task, **changes) -> Admission` on a CPU, accepted."""
    return forged_admission
