"""What can go wrong with a child, as exceptions."""


class ChildFailed(Exception):
    """Base of everything that can go wrong with a child."""


class ChildUnstarted(ChildFailed):
    """The child did not start. Nothing foreign was in it yet: the machine is to blame."""


class ChildTimeout(ChildFailed):
    """No answer in time; the child was killed. The text says after how many seconds."""


class ChildDied(ChildFailed):
    """The child ended; the text says by which signal or exit code."""

    def __init__(self, text: str, *, killed: bool = False) -> None:
        """Take the text, and whether the kernel killed it for want of memory."""
        super().__init__(text)
        self.killed = killed


class ChildGreedy(ChildFailed):
    """The child took more than it may of memory or threads, and was killed. `rule` is the rule."""

    def __init__(self, rule: str, text: str) -> None:
        """Take the id of the rule and the text."""
        super().__init__(text)
        self.rule = rule


class ChildForged(ChildFailed):
    """A line came back that the child's own program did not write."""


class ChildError(ChildFailed):
    """The child answered with an error; `kind` is its kind, the text the traceback."""

    def __init__(self, kind: str, text: str) -> None:
        """Take the kind and the text."""
        super().__init__(text)
        self.kind = kind
