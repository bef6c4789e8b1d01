"""`concur build`."""

import os
from pathlib import Path
from typing import Any

import click

from concur.cli.options import Command, echo_json, format_option


@click.command(
    cls=Command,
    examples="""
    concur build --out data/
    concur build --out data/ --source my-samples/ --source more.jsonl --workers 8
    concur build --out data/ --recheck --format json
    """,
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the data set; what is in it is replaced once the new one is whole.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Samples to build from; may be given several times.  [default: our own corpus]",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that admit tasks.  [default: one a processor]",
)
@click.option(
    "--recheck", is_flag=True, help="Admit every task on the CPU again; needs the extra judge."
)
@click.option(
    "--trust-recorded",
    is_flag=True,
    help="Believe verdict files outside our own corpus too; only for those that you made yourself.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Read at most this many samples.")
@format_option
def build(
    out: Path,
    sources: tuple[Path, ...],
    workers: int | None,
    recheck: bool,
    trust_recorded: bool,
    limit: int | None,
    style: str,
) -> None:
    """Build a data set: Parquet shards by config and split, a manifest, a card.

    Carries recorded GPU verdicts over where they still match task, solution and rules. Running it
    again after it was stopped continues. Exits with 0 when a data set was built, and with 1 when
    none could be: no row, or more than a tenth of the verdicts stale. What stood in the folder
    before stays then.
    """
    from concur.pipeline import BuildOptions
    from concur.pipeline import build as build_data_set

    def progress(line: str) -> None:
        click.echo(line, err=True)

    options = BuildOptions(
        out=out,
        sources=sources,
        workers=workers or len(os.sched_getaffinity(0)),
        recheck=recheck,
        trust_recorded=trust_recorded,
        limit=limit,
    )
    report = build_data_set(options, progress=progress)
    if style == "json":
        echo_json(report.to_plain())
    else:
        _print(report)


def _print(report: Any) -> None:
    from concur.report import render_build
    from concur.summary import verdict_devices

    click.echo(render_build(report, verdict_devices(report.out)))
