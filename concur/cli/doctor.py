"""`concur doctor`."""

from dataclasses import asdict
from pathlib import Path

import click

from concur.cli.options import Command, echo_json, format_option


@click.command(
    cls=Command,
    examples="""
    concur doctor
    concur doctor --format json
    """,
)
@format_option
@click.pass_context
def doctor(ctx: click.Context, style: str) -> None:
    """Say what this machine has of what concur can use, and what to do about the rest.

    Exits with 3 only when concur cannot work at all; what is missing otherwise only limits it.
    """
    from concur.doctor import examine

    examined = list(examine(Path.cwd()))
    if style == "json":
        echo_json({"examined": [asdict(e) for e in examined]})
    else:
        width = max(len(e.subject) for e in examined)
        for e in examined:
            click.echo(f"{'ok' if e.present else 'missing':<9}{e.subject:<{width}}  {e.detail}")
            if not e.present:
                click.echo(f"{'':<9}{'':<{width}}  -> {e.remedy}")
    ctx.exit(3 if any(e.required and not e.present for e in examined) else 0)
