"""`concur validate`."""

from pathlib import Path
from typing import Literal

import click

from concur.cli.options import Command, echo_json, format_option, level_option, trust_option


@click.command(
    cls=Command,
    examples="""
    concur validate my-sample/
    concur validate samples.jsonl --gpu never --format json
    concur validate builders/corpus --gpu require
    """,
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--gpu",
    type=click.Choice(["auto", "require", "never"]),
    default="auto",
    show_default=True,
    help="Judge CUDA where there is a GPU; only with one; or not at all.",
)
@level_option
@trust_option
@format_option
@click.pass_context
def validate(
    ctx: click.Context,
    paths: tuple[Path, ...],
    gpu: Literal["auto", "require", "never"],
    level: Literal["quick", "full", "audit"],
    trust: bool,
    style: str,
) -> None:
    """Say whether samples would be accepted, and what is wrong where.

    PATHS are sample folders, JSON files (.json, .jsonl), or folders of either. Solutions in C++ are
    judged on the CPU, those in CUDA on a GPU. Verdict files that come with a sample are ignored.
    Solutions run isolated; the README says what that does not protect against.
    """
    from concur.report import account, render_accounting, render_sample, sample_plain
    from concur.validate import ValidateOptions
    from concur.validate import validate as validate_samples

    reports = []
    for report in validate_samples(paths, ValidateOptions(gpu, level, trust)):
        reports.append(report)
        if style == "human":
            click.echo(render_sample(report))
    if not reports:
        raise click.UsageError("no sample was found; a sample is a folder with task.json, or JSON")
    counts = account(r.outcome for r in reports)
    awaiting = sum(r.awaiting_gpu for r in reports)
    if style == "json":
        samples = [sample_plain(r) for r in reports]
        echo_json(
            {"counts": {**counts.plain, "gpu_verdicts_pending": awaiting}, "samples": samples}
        )
    else:
        click.echo(render_accounting(counts))
        if awaiting:
            click.echo(f"GPU verdict pending: {awaiting}")
    ctx.exit(counts.exit_code)
