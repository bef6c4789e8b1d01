"""`concur init-sample`."""

from pathlib import Path

import click

from concur.cli.options import Command
from concur.errors import RecordError


@click.command(
    "init-sample",
    cls=Command,
    examples="""
    concur init-sample my-sample && concur validate my-sample
    """,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def init_sample(folder: Path) -> None:
    """Write a small complete sample into a new folder DIR, to be edited.

    It holds a task stated in all three forms, an oracle, a solution in CUDA and one in C++, and
    passes `concur validate` as it is. The folder's name becomes the task's name.
    """
    from concur.starter import write_starter

    try:
        written = write_starter(folder)
    except RecordError as error:
        raise click.UsageError(str(error)) from error
    for path in written:
        click.echo(path)
    click.echo(f"Now edit it, then run: concur validate {folder}", err=True)
