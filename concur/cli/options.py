"""What several commands share: examples at the end of the help, --format, JSON output."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

format_option: Callable[[AnyFunction], AnyFunction] = click.option(
    "--format",
    "style",
    type=click.Choice(["human", "json"]),
    default="human",
    show_default=True,
    help="Text for people, or one JSON object.",
)


level_option: Callable[[AnyFunction], AnyFunction] = click.option(
    "--level",
    type=click.Choice(["quick", "full", "audit"]),
    default="full",
    show_default=True,
    help="quick can only reject; audit also looks whether the kernels do the work.",
)
trust_option: Callable[[AnyFunction], AnyFunction] = click.option(
    "--trust",
    is_flag=True,
    help="Run solutions even where this machine cannot keep them apart or off the network.",
)


class Command(click.Command):
    """A command whose help ends with examples, kept as they are written."""

    def __init__(self, *args: Any, examples: str, **kwargs: Any) -> None:
        """Take the examples, one a line."""
        super().__init__(*args, **kwargs)
        self.examples = tuple(line.strip() for line in examples.strip().split("\n"))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def echo_json(value: Any) -> None:
    """Print plain data as one JSON object on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
