"""`import concur` and `concur --help` are quick and load nothing heavy."""

import subprocess
import sys
import time
from pathlib import Path

HEAVY = {
    "torch",
    "datasets",
    "pyarrow",
    "huggingface_hub",
    "pandas",
    "numpy",
    "tiktoken",
    "pydantic",
}
RUNS = 7


def best_time_s(code: str) -> float:
    """Shortest of several fresh interpreters; the shortest is the one that nothing disturbed."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-P", "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def modules_after(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-P", "-c", f"{code}\nimport sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    return {name.split(".")[0] for name in run.stdout.split()}


def test_import_is_quick() -> None:
    cost = best_time_s("import concur") - best_time_s("pass")
    assert cost < 0.1, f"import concur takes {cost * 1e3:.0f} ms"


def test_import_loads_nothing_heavy() -> None:
    loaded = modules_after("import concur")
    assert "concur" in loaded
    assert not loaded & HEAVY


def test_records_load_nothing_heavier_than_pydantic() -> None:
    loaded = modules_after("import concur.schemas")
    assert "pydantic" in loaded
    assert not loaded & (HEAVY - {"pydantic"})


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    loading = "from concur.cli import main"
    assert not modules_after(f"{loading}; main(['--help'], standalone_mode=False)") & HEAVY
    program = Path(sys.executable).with_name("concur")
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([program, "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.3


def test_a_light_installation_can_do_everything_but_judge() -> None:
    parts = ("pipeline", "loading", "rejudge", "report", "summary", "validate", "doctor")
    loaded = modules_after(f"import {', '.join(f'concur.{part}' for part in parts)}")
    assert "concur" in loaded
    assert "torch" not in loaded
