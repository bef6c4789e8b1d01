"""The version of the judge's rules, which decides whether a verdict still counts."""

RULES_VERSION = 2
"""Raised by hand when a verdict could change; every recorded verdict is stale then."""
