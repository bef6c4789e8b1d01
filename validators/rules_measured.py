"""Rules of time, own work and audits, and of the judge itself."""

from concur.schemas.verdict import Fault, Status
from concur.validators.rule import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        *("values.timed", "timing", Status.WRONG_VALUES, Fault.CANDIDATE),
        "Results of timed calls are right too.",
        "Code that notices that it is timed could leave the work out.",
        "Do the same in every call.",
    ),
    Rule(
        *("timing.failed", "timing", Status.RUNTIME_ERROR, Fault.CANDIDATE),
        "Timing ends without an error.",
        "Many calls in a row show races and leaks that single ones do not.",
        "Free what a call allocates; wait for nothing that another call owns.",
    ),
    Rule(
        *("timing.clocks", "timing", Status.CHEATING, Fault.CANDIDATE),
        "Device events and the judge's clock tell the same time.",
        "Work on another stream, and clocks that were tampered with, make them differ.",
        "Do all work in the stream that is passed.",
    ),
    Rule(
        *("timing.floor", "timing", Status.CHEATING, Fault.CANDIDATE),
        "No call is faster than the device can read its inputs and write its results.",
        "What is faster than that was not done within the call.",
        "Look for work that is left out, cached, or done elsewhere.",
    ),
    Rule(
        *("timing.disturbed", "timing", Status.CHEATING, Fault.CANDIDATE),
        "The baseline is as fast beside the solution as without it.",
        "A solution that keeps the device busy between its calls makes the baseline look slow.",
        "Do nothing outside of calls.",
    ),
    Rule(
        *("timing.throttled", "timing", None, Fault.NONE),
        "The device kept its clock rate during timing.",
        "Times at a falling clock rate compare nothing.",
        "Judge again when the device is cool and idle.",
    ),
    Rule(
        *("timing.unstable", "timing", None, Fault.NONE),
        "Times of equal calls are alike.",
        "A ratio of scattered times has no meaning.",
        "Judge again on an idle device.",
    ),
    Rule(
        *("work.library", "own-work", Status.LIBRARY_WORK, Fault.CANDIDATE),
        "The device time is not spent in kernels of libraries.",
        "A kernel is what the data set is about. A small share passes with a warning.",
        "Write kernels for what the evidence lists.",
    ),
    Rule(
        *("work.vendor-library", "own-work", Status.LIBRARY_WORK, Fault.CANDIDATE),
        "A launcher has no vendor library in its memory.",
        "Nothing in a launcher's process needs one, so that only the solution can have brought it.",
        "Remove the call; write a kernel.",
    ),
    Rule(
        *("work.hidden", "own-work", Status.CHEATING, Fault.CANDIDATE),
        "Library work is not disguised as own work.",
        "A kernel for show, or one with a library's name, is made to deceive whoever looks.",
        "Do the work in own kernels, under names of their own.",
    ),
    Rule(
        *("work.unknown", "own-work", Status.UNDECIDED, Fault.INFRASTRUCTURE),
        "The device time could be attributed to kernels.",
        "Without a profile nothing is known about whose kernels worked.",
        "Judge again where the profiler is allowed to see kernels.",
    ),
    Rule(
        *("work.ghost", "ghost", Status.CHEATING, Fault.CANDIDATE),
        "With its own kernels emptied, the solution gives wrong results.",
        "If it is still right, something else does the work.",
        "Let the own kernels compute the results.",
    ),
    Rule(
        *("quick.only", "judge", Status.UNDECIDED, Fault.NONE),
        "A pass needs the level full or audit.",
        "The quick level leaves out gates that wrong solutions are known to need.",
        "Judge again at the level full.",
    ),
    Rule(
        *("device.unhealthy", "judge", Status.UNDECIDED, Fault.INFRASTRUCTURE),
        "The device still computes after a failed candidate.",
        "A broken device would blame the next candidate.",
        "Reset the device, then judge again.",
    ),
    Rule(
        *("judge.failed", "judge", Status.UNDECIDED, Fault.JUDGE),
        "The judge itself works.",
        "An error of the judge is never held against a solution.",
        "Report it with the evidence.",
    ),
)
"""In the order of the gates."""
