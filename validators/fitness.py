"""Whether a solution can be judged on this machine at all."""

from concur.schemas.solution import Contract, Solution
from concur.schemas.task import Task
from concur.schemas.verdict import Environment


def missing_device(task: Task, solution: Solution, environment: Environment) -> str:
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
