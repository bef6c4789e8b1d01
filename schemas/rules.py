"""The version of the judge's rules, which decides whether a verdict still counts."""

RULES_VERSION = 2
"""Raised by hand when a verdict could change."""

OLDEST_RULES = 1
"""Oldest version whose verdicts and admissions still count; older ones are stale. It follows
`RULES_VERSION` once everything recorded has been judged again; each row says what judged it."""
