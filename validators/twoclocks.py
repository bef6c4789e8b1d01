"""Two clocks: the events that the child claims, and the judge's own between command and answer.

The claim is made in the process of foreign code, where it can be forged, and work that escapes the
events (another stream, a thread, a lazy result) is missing from it. The judge's clock sees all of
it: what is not done when the answer comes is missing from the results, which are read then. It also
sees the overhead of a call: messages, views of the memory, the flush of the cache, the copies to
the shadows.

How much overhead there is shows a call that does nothing, made in the same way with the same
tensors between the candidate's calls: for a launcher an empty launcher in a host of its own, for a
module the baseline, whose host is the same. What the candidate's own median of `wall - us` exceeds
the median there by is called its excess. An honest excess is noise, which `_DEVIATIONS` robust
standard deviations of that overhead bound (not of the candidate's, who could widen it at will), and
what two processes differ by, for which `SLACK_US` is given.

- An excess beyond that and `TRUSTED_SHARE` of the claim: the claim is not used. The reported times
  are the judge's, `wall` less the baseline's overhead, and the verdict says so (a warning, and
  `Timing.clock`). They can err by the difference of the hosts, and by no more in a forger's favour.
- An excess beyond `max(SLACK_US, half of the claim)` and the noise, where claim or excess are
  `_CERTAIN_US` or more: no honest program gets there. It is cheating. Below, two launches' worth of
  host noise would do it.

What stays possible: forged events that take `SLACK_US` and the noise off the time, and no more.
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
_CERTAIN_US = 40.0
_NOTICED = 1.1
_DISTURBED = 4.0
_DISTURBED_US = 500.0
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


def agree(mine: Readings, host: Readings, where: str) -> Agreed:
    """Return the candidate's times by the clock that can be trusted.

    Raises Ended (cheating) where the events claim much less than the judge's clock allows.
    """
    claimed = float(np.median(mine.us))
    excess = mine.overhead - host.overhead
    noise = _DEVIATIONS * _SIGMA * mad(host.wall - host.us)
    if excess <= SLACK_US + TRUSTED_SHARE * claimed + noise:
        return Agreed(mine.us, "events", [])
    evidence = (
        f"overhead of a call, median of wall less events: candidate {mine.overhead:.1f} us, "
        f"host {host.overhead:.1f} us; noise allowed for: {noise:.1f} us"
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
    times = np.maximum(np.maximum(mine.wall - host.overhead, mine.us), _LEAST_US)
    return Agreed(times, "wall", [found])


def undisturbed(base: Readings, alone: list[float], where: str) -> tuple[Floats, list[Finding]]:
    """Return the baseline's times that count, and a warning where they are not those beside it.

    `alone` are its microseconds while the solution's process is stopped. Where it is slower beside
    the solution, its times are scaled down to those, so that a solution gains nothing by it.
    Raises Ended (cheating) where it is so much slower that only work outside of calls explains it.
    """
    # The last calls beside it, since the device may have become faster or slower before.
    beside, without = float(np.median(base.us[-len(alone) :])), float(np.median(alone))
    if beside <= _NOTICED * without:
        return base.us, []
    message = f"the baseline takes {beside:.1f} us beside the solution, {without:.1f} us alone"
    if beside > _DISTURBED * without and beside - without > _DISTURBED_US:
        found = finding("timing.disturbed", message, where=where)
        raise Ended(Status.CHEATING, Fault.CANDIDATE, found)
    found = finding("timing.disturbed", message, where=where, severity="warning")
    return base.us * (without / beside), [found]
