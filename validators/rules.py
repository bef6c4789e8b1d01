"""The judge's rules, by id; their version is in `concur.schemas.rules`, where rows find it too."""

from concur.validators.rule import Rule
from concur.validators.rules_candidate import RULES as _CANDIDATE
from concur.validators.rules_measured import RULES as _MEASURED
from concur.validators.rules_task import RULES as _TASK

GATES: dict[str, str] = {
    "check": "Checks of a sample's texts. Nothing is run, and no GPU is needed.",
    "admission": "Admission of a task, before any solution is judged on it.",
    "schema": "Whether the solution can be judged here at all.",
    "screens": "What the source text alone shows. Rules without a status give hints and never"
    " decide.",
    "compile": "Building a library from the sources.",
    "load": "Starting an isolated process that loads the library.",
    "calls": "What holds for every call, whichever gate makes it.",
    "workloads": "Comparing results with the oracle, for fresh inputs on every workload.",
    "repeat-call": "Calling again after other inputs.",
    "probes": "Inputs that tell right solutions from nearly right ones.",
    "timing": "Measuring time beside the baselines.",
    "own-work": "Whose kernels took the time.",
    "ghost": "Emptying the own kernels (level audit).",
    "judge": "The judge itself and its machine.",
}
"""What happens at each gate, in order."""

RULES: dict[str, Rule] = {rule.id: rule for rule in (*_TASK, *_CANDIDATE, *_MEASURED)}
"""Every rule."""

__all__ = ["GATES", "RULES", "Rule"]
