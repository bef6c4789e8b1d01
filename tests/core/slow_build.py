"""A build whose admissions take a while, to be killed: `slow_build.py OUT CORPUS WORKERS`."""

import sys
import time
from pathlib import Path

from concur.schemas import Admission, Task

SECONDS = 0.15


def admit(task: Task) -> Admission:
    """Say the same of every task, after a while."""
    time.sleep(SECONDS)
    environment = {"device_kind": "cpu", "device": "forged", "torch": "0", "python": "3", "os": "x"}
    return Admission.from_plain(
        {
            "task_id": task.id,
            "rules_version": 1,
            "sizes": "twin",
            "outcome": "accepted",
            "environment": environment,
            "seed": 1,
            "judged_on": "2026-12-01",
        }
    )


def main(out: str, corpus: str, workers: str) -> None:
    """Build with every admission run again, telling each step on stdout."""
    from concur.pipeline import BuildOptions, build  # not for the workers, which import this file

    options = BuildOptions(
        Path(out), (Path(corpus),), workers=int(workers), recheck=True, trust_recorded=True
    )
    build(options, admit=admit, progress=lambda line: print(line, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
