"""Every error that concur raises on purpose, so that callers can catch one base class.

An error message names what is wrong, where, and what to do about it; the command line prints it
without a traceback. Outcomes of judging are not errors: they are verdicts.
"""


class ConcurError(Exception):
    """Base class. `str(error)` is one line that a user can act on."""


class RecordError(ConcurError, ValueError):
    """A record or file does not say what its schema demands.

    Also a ValueError, so that pydantic counts it among a record's problems.
    """


class MissingDependency(ConcurError):
    """An optional extra is needed; the message holds the command that installs it."""


class BuildError(ConcurError):
    """A build cannot produce a data set that may be used (no rows, too many stale verdicts)."""


class IntegrityError(ConcurError):
    """Files do not match their manifest."""


class JudgeError(ConcurError):
    """The judge or its machine failed; says nothing about the candidate (outcome: undecided)."""
