"""Two clocks: the events that the child claims, and the judge's own between command and answer.

The claim is made in the process of foreign code, where it can be forged, and work that escapes the
events (another stream, a thread, a lazy result) is missing from it. The judge's clock sees all of
it: what is not done when the answer comes is missing from the results, which are read then. It also
sees the overhead of a call: messages, views of the memory, the flush of the cache, the copies to
the shadows.

How much overhead there is shows the baseline, which is called in the same way with the same tensors
between the candidate's calls: the median of `wall - us` over its calls. What the candidate's own
median of `wall - us` exceeds that by is called its excess. An honest excess has two sources: noise,
which `_DEVIATIONS` robust standard deviations of the baseline's own overhead bound (the baseline's,
because a candidate could widen its own at will), and the difference between two hosts (a launcher's
is leaner than a module's, so that its excess is negative as a rule), for which `SLACK_US` is given.

- An excess beyond that and `TRUSTED_SHARE` of the claim: the claim is not used. The reported times
  are the judge's, `wall` less the baseline's overhead, and the verdict says so (a warning, and
  `Timing.clock`). They can err by the difference of the hosts, and by no more in a forger's favour.
- An excess beyond `max(SLACK_US, half of the claim)` and the noise, where claim or excess are
  `_CERTAIN_US` or more: no honest program gets there. It is cheating (verification.md, E 69 to 75:
  wall more than 1.5 times the event span). Below, two launches' worth of host noise would do it.

What stays possible: a launcher whose events are forged gains what its host is leaner by than the
baseline's, and `SLACK_US`, as long as nobody measures that host with an empty launcher.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from concur.schemas.verdict import Fault, Finding, Status
from concur.validators.ended import Ended, finding
from concur.validators.statistics import Floats, mad

SLACK_US = 25.0
"""Microseconds of overhead that a candidate's host may have beyond the baseline's."""

TRUSTED_SHARE = 0.05
"""Share of its claim by which a candidate's excess may be larger still, for its times to count."""

_FORGED_SHARE = 0.5
_CERTAIN_US = 100.0
_DEVIATIONS = 4.0
_SIGMA = 1.4826
_LEAST_US = 0.1


@dataclass(frozen=True)
class Readings:
    """Times of the calls of one side, in microseconds and in the order of the calls."""

    us: Floats
    """Between the child's events."""
    wall: Floats
    """On the judge's clock."""

    @property
    def overhead(self) -> float:
        """The median of what the judge's clock shows beyond the events."""
        return float(np.median(self.wall - self.us))


@dataclass(frozen=True)
class Agreed:
    """The times that count."""

    us: Floats
    """Times of the candidate's calls."""
    clock: Literal["events", "wall"]
    """Where they come from."""
    findings: list[Finding]
    """A warning where the clocks disagree."""


def agree(mine: Readings, base: Readings, where: str) -> Agreed:
    """Return the candidate's times by the clock that can be trusted.

    Raises Ended (cheating) where the events claim much less than the judge's clock allows.
    """
    claimed = float(np.median(mine.us))
    excess = mine.overhead - base.overhead
    noise = _DEVIATIONS * _SIGMA * mad(base.wall - base.us)
    if excess <= SLACK_US + TRUSTED_SHARE * claimed + noise:
        return Agreed(mine.us, "events", [])
    evidence = (
        f"overhead of a call, median of wall less events: candidate {mine.overhead:.1f} us, "
        f"baseline {base.overhead:.1f} us; noise allowed for: {noise:.1f} us"
    )
    limit = max(SLACK_US, _FORGED_SHARE * claimed) + noise
    if excess > limit and max(claimed, excess) >= _CERTAIN_US:
        message = (
            f"the events claim {claimed:.1f} us a call, the judge's clock shows {excess:.1f} us "
            f"more than that and the overhead, and at most {limit:.1f} us can be explained"
        )
        found = finding("timing.clocks", message, where=where, evidence=evidence)
        raise Ended(Status.CHEATING, Fault.CANDIDATE, found)
    message = (
        f"the events claim {claimed:.1f} us a call, the judge's clock shows {excess:.1f} us more; "
        "the times are those of the judge's clock"
    )
    found = finding("timing.clocks", message, where=where, evidence=evidence, severity="warning")
    times = np.maximum(np.maximum(mine.wall - base.overhead, mine.us), _LEAST_US)
    return Agreed(times, "wall", [found])
