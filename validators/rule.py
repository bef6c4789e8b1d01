"""What a rule of the judge is made of."""

from dataclasses import dataclass

from concur.schemas.verdict import Fault, Status


@dataclass(frozen=True)
class Rule:
    """One thing that is looked at, under an id that verdicts name."""

    id: str
    """Such as `values.tolerance`; never used again for something else."""
    gate: str
    """Where it is looked at, a key of `concur.validators.rules.GATES`."""
    status: Status | None
    """How a run ends that breaks it, as a rule; None where it never ends one."""
    fault: Fault
    """Whose fault that is, as a rule."""
    demands: str
    """What has to hold, in a sentence."""
    why: str
    """Why it is demanded."""
    remedy: str
    """What to do about a finding."""

    def __str__(self) -> str:
        """Return the sentence that says what is demanded."""
        return self.demands
