"""Records, each field declared once, and what is derived from them.

task, tensors, provenance   what to compute, how it is stated, where it comes from
solution, verdict           code under a contract; what one run of the judge found
timing                      what a verdict says of times, baselines and clocks
triplet, trajectory         the two kinds of published row
sample                      task + solutions + attempts, as a contributor hands them in
review                      a person's or model's judgement of a record
strict                      strict reading of contributed JSON (with json_text, problems)
jsonschema, arrow           JSON Schema and Arrow features, derived
"""

from concur.schemas.review import Review
from concur.schemas.sample import Sample
from concur.schemas.solution import Contract, DecidedSolution, Solution, SolutionHeader, SourceFile
from concur.schemas.task import Form, Program, Task, TaskHeader, Workload
from concur.schemas.tensors import Argument, Attribute, Distribution, DType, Result
from concur.schemas.timing import Baseline, Clocks, Timing
from concur.schemas.trajectory import (
    Attempt,
    AttemptLog,
    AttemptLogHeader,
    Message,
    Trajectory,
    Turn,
)
from concur.schemas.triplet import Triplet
from concur.schemas.verdict import (
    Admission,
    Comparison,
    Environment,
    Fault,
    Finding,
    Measurement,
    Outcome,
    Status,
    Verdict,
)

__all__ = [
    "Admission",
    "Argument",
    "Attempt",
    "AttemptLog",
    "AttemptLogHeader",
    "Attribute",
    "Baseline",
    "Clocks",
    "Comparison",
    "Contract",
    "DType",
    "DecidedSolution",
    "Distribution",
    "Environment",
    "Fault",
    "Finding",
    "Form",
    "Measurement",
    "Message",
    "Outcome",
    "Program",
    "Result",
    "Review",
    "Sample",
    "Solution",
    "SolutionHeader",
    "SourceFile",
    "Status",
    "Task",
    "TaskHeader",
    "Timing",
    "Trajectory",
    "Triplet",
    "Turn",
    "Verdict",
    "Workload",
]
