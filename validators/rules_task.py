"""Rules of tasks: what the texts of a sample show, and whether a task can be judged on."""

from concur.schemas.verdict import Fault, Status
from concur.validators.rule import Rule


def _check(name: str, demands: str, why: str, remedy: str) -> Rule:
    return Rule(f"check.{name}", "check", None, Fault.NONE, demands, why, remedy)


def _task(rule: str, demands: str, why: str, remedy: str) -> Rule:
    return Rule(rule, "admission", Status.INVALID_TASK, Fault.TASK, demands, why, remedy)


RULES: tuple[Rule, ...] = (
    _check(
        "sizes",
        "Workloads take no more memory than a judge can be asked for.",
        "Sizes are multiplied before anything is allocated; a slip would stop the machine.",
        "Use smaller axes.",
    ),
    _check(
        "python",
        "Python sources parse.",
        "Everything else reads the syntax tree.",
        "Correct the line that is named.",
    ),
    _check(
        "reference",
        "reference.py defines `class Model` with a forward.",
        "It says what the task computes, and it is timed as the baseline.",
        "Define it with the declared inputs in order.",
    ),
    _check(
        "oracle",
        "oracle.py defines `oracle` and takes further keywords.",
        "It is called with every argument and attribute by name.",
        "Add `**_` to its parameters.",
    ),
    _check(
        "random",
        "Reference and oracle draw no random numbers.",
        "Expected values have to be the same whenever they are computed.",
        "Make randomness an input.",
    ),
    _check(
        "symbols",
        "Declared symbols occur in the mathematics.",
        "A symbol that is never used explains nothing.",
        "Use it there, or remove it.",
    ),
    _check(
        "operations",
        "Declared operations occur in the sources.",
        "Rows are found by their operations.",
        "Declare what the reference does.",
    ),
    _check(
        "license",
        "Licences are SPDX ids that are known here.",
        "What may be published is decided by licence.",
        "Use an SPDX id such as Apache-2.0, or `unknown`.",
    ),
    _check(
        "reasoning",
        "Reasoning says why this mapping was chosen.",
        "A few words teach nothing.",
        "Say what bounds the kernel and what was rejected.",
    ),
    _check(
        "leak",
        "Texts hold no paths of a machine, addresses or tokens.",
        "They would be published with the row.",
        "Remove them.",
    ),
    _task(
        "task.reference",
        "The reference runs and returns what the task declares.",
        "Everything is compared with it.",
        "Correct reference.py or the declared results.",
    ),
    _task(
        "task.oracle",
        "The oracle runs in float64 and returns what the task declares.",
        "Its results decide what is right.",
        "Correct oracle.py or the declared results.",
    ),
    _task(
        "admission.repeatable",
        "The same inputs give the same oracle results.",
        "Otherwise a verdict cannot be repeated.",
        "Remove randomness from oracle and reference.",
    ),
    _task(
        "admission.finite",
        "Oracle results are finite.",
        "Elements that are not finite cannot be compared within a tolerance.",
        "Draw inputs from a range where the operation is defined.",
    ),
    _task(
        "admission.constant",
        "Oracle results are not constant.",
        "A constant needs no kernel.",
        "Draw inputs that make results differ.",
    ),
    _task(
        "admission.copy",
        "Oracle results are not a copy of an input.",
        "A solution that returns its input would pass.",
        "Draw inputs on which the operation does something.",
    ),
    _task(
        "admission.seeds",
        "Fresh inputs give other results.",
        "Remembered results would pass.",
        "Make results depend on the inputs.",
    ),
    _task(
        "admission.influence",
        "Every input and parameter changes some result.",
        "An argument without influence can be ignored unnoticed.",
        "Draw it so that it matters, or remove it.",
    ),
    _task(
        "admission.trivial",
        "Results of zeros, constants and copied inputs are refused.",
        "Small results can lie within a tolerance of nothing at all.",
        "Draw inputs that give results of a clear size.",
    ),
    _task(
        "admission.agreement",
        "Program and oracle agree in float64 on every workload.",
        "Odd sizes show slips that the typical size hides.",
        "Find out which of the two is wrong.",
    ),
    _task(
        "admission.native",
        "The reference runs in the declared types, within the tolerance.",
        "A tolerance that the reference misses would reject honest work.",
        "Use milder inputs, or declare the precision that is allowed.",
    ),
    _task(
        "admission.time",
        "One call takes long enough to be timed.",
        "A launch alone takes microseconds; below that, ratios compare launches.",
        "Use larger axes in at least one workload.",
    ),
)
"""Checks first, then admission."""
