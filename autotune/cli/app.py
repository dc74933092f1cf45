"""The command `autotune`: its subcommands, and how it reports errors."""

import logging
import sys

import typer

from autotune import __version__
from autotune.cli.group import CommandGroup
from autotune.errors import AutotuneError, ExitCode, is_interrupt
from launchers.extensions.entry_points import EntryPointError

app = typer.Typer(
    name="autotune",
    cls=CommandGroup,
    help="Finds the fastest valid configuration of a program on this machine, and says how sure it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
    """Run the command line; report a user's mistake by a message and an exit code, without a traceback."""
    if logging.lastResort is not None:
        logging.lastResort.addFilter(_make_plain)
    try:
        app()
    except Exception as error:
        if is_interrupt(error):
            sys.exit(ExitCode.INTERRUPTED)
        if isinstance(error, ImportError) and (missing := _missing_package(error)) is not None:
            error = missing
        if not isinstance(error, AutotuneError | EntryPointError | OSError):
            raise
        from autotune.formatting import plain

        # Not by rich, whose import takes longer than to find most mistakes.
        sys.stderr.write(plain(f"autotune: {error}\n"))
        sys.exit(_exit_code(error))


def _make_plain(record: logging.LogRecord) -> bool:
    """Remove invisible characters from a warning, which may quote a storage or a file of others."""
    from autotune.formatting import plain

    record.msg, record.args = plain(record.getMessage()), ()
    return True


def _missing_package(error: ImportError) -> AutotuneError | None:
    """Return the error for a package that this installation lacks; None if autotune does not name the package."""
    from autotune.cli.packages import missing_packages

    # Optuna raises an error of its own for a package that it lacks.
    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    return missing_packages([(cause.name or "").partition(".")[0]])


def _exit_code(error: AutotuneError | EntryPointError | OSError) -> ExitCode:
    """Return the exit code of an error; a broken extension (`EntryPointError`) is not a mistake in the study."""
    if isinstance(error, AutotuneError):
        return error.exit_code
    return ExitCode.STORAGE if isinstance(error, OSError) else ExitCode.CANNOT_RUN_HERE
