"""A verdict in words; it stands among the records, since rows of trajectories hold it too."""

from concur.schemas.feedback import render

__all__ = ["render"]
