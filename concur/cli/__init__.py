"""The command line: one subcommand a public function, results on stdout, everything else on stderr.

Exit codes: 0 accepted, 1 something rejected, 2 usage, 3 undecided or infrastructure, 130
interrupted.
"""

from concur.cli.main import main

__all__ = ["main"]
