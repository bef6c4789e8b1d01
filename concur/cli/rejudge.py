"""`concur rejudge`."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from concur.cli.options import Command, echo_json, format_option, trust_option

if TYPE_CHECKING:
    from concur.rejudge import Rejudged


@click.command(
    cls=Command,
    examples="""
    concur rejudge builders/corpus
    concur rejudge builders/corpus --only row-topk --all
    concur rejudge my-sample/ --workers 4 --format json
    """,
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Judge what has a valid verdict too: for contributions, whatever came with them.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Tasks that are judged at once.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this task; may be repeated.")
@click.option(
    "--level",
    type=click.Choice(["full", "audit"]),
    default="full",
    show_default=True,
    help="audit also looks whether the kernels do the work, and times twice.",
)
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Time references also with TF32 and through torch.compile, once a task.",
)
@trust_option
@format_option
@click.pass_context
def rejudge(
    ctx: click.Context,
    paths: tuple[Path, ...],
    everything: bool,
    workers: int | None,
    only: tuple[str, ...],
    level: Literal["full", "audit"],
    baselines: bool,
    trust: bool,
    style: str,
) -> None:
    """Judge on this machine's GPU what has no valid verdict, and write the verdicts.

    PATHS are sample folders or folders of them. verdict.json, admission-cpu.json and
    admission-cuda.json are written there as soon as they are known, so an interrupted run continues
    where it stopped. An attempt of a trajectory that fails is what it was recorded for, and does
    not change the exit code; one that cannot be read does.

    Whether a verdict is valid is decided by hashes alone: they do not tell who wrote it. Judge what
    others sent with --all, which overwrites every verdict that came with it.
    """
    from concur.errors import RecordError
    from concur.rejudge import RejudgeOptions
    from concur.rejudge import rejudge as judge_again
    from concur.report import render_rejudged
    from concur.validators.options import JudgeOptions

    judge = JudgeOptions(level=level, trust=trust, further_baselines=baselines)
    options = RejudgeOptions(everything, workers or 0, only, judge)
    done: list[Rejudged] = []
    try:
        lines = judge_again(paths, options)
    except RecordError as error:
        raise click.UsageError(str(error)) from error
    for line in lines:
        done.append(line)
        if style == "human":
            click.echo(render_rejudged(line))
    _echo_sum(done, style)
    ctx.exit(_exit_code(done))


def _echo_sum(done: "list[Rejudged]", style: str) -> None:
    from concur.report import account, rejudged_plain, render_accounting

    counts = account(line.outcome for line in done)
    if style == "json":
        echo_json({"counts": counts.plain, "judged": [rejudged_plain(line) for line in done]})
    else:
        click.echo(render_accounting(counts, "record"))


def _exit_code(done: "list[Rejudged]") -> int:
    from concur.report import account

    undecided = account(line.outcome for line in done).undecided
    decisive = account(
        line.outcome
        for line in done
        if line.status == "unreadable" or not line.subject.startswith("trajectories/")
    )
    return 3 if undecided and not decisive.rejected else decisive.exit_code
