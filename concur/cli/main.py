"""The group of commands, and how errors leave the program: one line, an exit code, no traceback."""

from typing import Any

import click

from concur import __version__
from concur.cli.build import build
from concur.cli.doctor import doctor
from concur.cli.init_sample import init_sample
from concur.cli.rejudge import rejudge
from concur.cli.validate import validate
from concur.errors import ConcurError, JudgeError, MissingDependency


class Refused(click.ClickException):
    """An error that says no; the user sees one line on stderr."""

    exit_code = 1


class Unable(click.ClickException):
    """An error of the machine or its installation; the user sees one line on stderr."""

    exit_code = 3


class CommandLine(click.Group):
    """A group that turns what concur raises into an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except (JudgeError, MissingDependency) as error:
            raise Unable(_one_line(error)) from error
        except ConcurError as error:
            raise Refused(_one_line(error)) from error
        except BrokenPipeError:
            raise  # click ends quietly when nobody reads on
        except OSError as error:
            raise Unable(_one_line(error)) from error
        except KeyboardInterrupt:
            click.echo("interrupted; run the same command again to continue", err=True)
            ctx.exit(130)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@click.group(
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 accepted, 1 something rejected, 2 usage, 3 undecided or infrastructure.",
)
@click.version_option(__version__, prog_name="concur")
def main() -> None:
    """Verified training data for models that write CUDA kernels."""


for _command in (validate, build, rejudge, init_sample, doctor):
    main.add_command(_command)
