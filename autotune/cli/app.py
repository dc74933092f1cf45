"""The command `autotune`: its subcommands, and what becomes of errors."""

import sys

import typer

from autotune import __version__
from autotune.cli.cancel import cancel
from autotune.cli.check import check
from autotune.cli.common import errors
from autotune.cli.compare import ablate, confirm, scaling
from autotune.cli.doctor import doctor
from autotune.cli.export import export
from autotune.cli.importing import import_
from autotune.cli.init import WithCommand, init
from autotune.cli.machine import machine
from autotune.cli.model import model
from autotune.cli.pilot import pilot
from autotune.cli.predict import predict
from autotune.cli.query import best, list_studies, runs, show, trials
from autotune.cli.replay import replay
from autotune.cli.report import report
from autotune.cli.serve import serve, token
from autotune.cli.space import space
from autotune.cli.storage import storage
from autotune.cli.study import study
from autotune.errors import AutotuneError, ExitCode, is_interrupt
from launchers.entry_points import EntryPointError

app = typer.Typer(
    name="autotune",
    help="Finds the fastest valid configuration of a program on this machine, and says how sure it is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("study")(study)
app.command("pilot", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(pilot)
app.command("cancel")(cancel)
app.command("confirm")(confirm)
app.command("ablate")(ablate)
app.command("scaling")(scaling)
app.command("list")(list_studies)
app.command("show")(show)
app.command("best")(best)
app.command("trials")(trials)
app.command("runs")(runs)
app.command("report")(report)
app.command("export")(export)
app.command("predict")(predict)
app.command("model")(model)
app.command("import")(import_)
app.command("replay")(replay)
app.command("serve")(serve)
app.command("token")(token)
app.command("space")(space)
app.command("storage")(storage)
app.command("init", cls=WithCommand)(init)
app.command("check")(check)
app.command("machine")(machine)
app.command("doctor")(doctor)


def _version(given: bool) -> None:
    if given:
        typer.echo(f"autotune {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    del version


def main() -> None:
    """Run the command line; a user's mistake ends with a message and an exit code, not with a traceback."""
    try:
        app()
    except Exception as error:
        if is_interrupt(error):
            sys.exit(ExitCode.INTERRUPTED)
        if not isinstance(error, AutotuneError | EntryPointError | OSError):
            raise
        errors().print(f"autotune: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(_exit_code(error))


def _exit_code(error: AutotuneError | EntryPointError | OSError) -> ExitCode:
    if isinstance(error, AutotuneError):
        return error.exit_code
    return ExitCode.CANNOT_RUN_HERE if isinstance(error, EntryPointError) else ExitCode.STORAGE
