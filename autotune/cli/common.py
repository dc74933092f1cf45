"""Helpers of several commands: consoles, a session's display, and how results are written."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from autotune.cli.options import DEFAULT_STORAGE
from autotune.durations import parse_duration_s
from autotune.errors import ExitCode, is_interrupt
from autotune.files import write_output
from autotune.formatting import plain
from autotune.locks import IfHeld
from autotune.storage import address

if TYPE_CHECKING:
    from rich.console import Console

    from autotune.display.console import Display


_NO_WIDTH = 1_000_000
_MOST_OVER = 2


def output() -> "Console":
    """Return the console for results; into a pipe or a file it neither cuts nor wraps lines."""
    from autotune.cli.plain_output import PlainConsole

    console = PlainConsole()
    if not console.is_terminal:
        console.width = _NO_WIDTH
    return console


def errors() -> "Console":
    """Return the console for errors and progress."""
    from autotune.cli.plain_output import PlainConsole

    return PlainConsole(stderr=True)


def echo(text: str, *, exact: bool = False) -> None:
    """Print a text for programs, files or pipes.

    Args:
        text: The text; it ends with a line feed if it should.
        exact: Print each character, such as those of a script, unless a terminal would obey them.
    """
    # Not typer.echo, which removes colours from what goes into a pipe.
    sys.stdout.write(text if exact and not sys.stdout.isatty() else plain(text))
    # A program that reads this gets it at once, and click ends the command quietly if nobody reads any more.
    sys.stdout.flush()


STOPPED = "stopped: finished runs are stored, runs in flight were ended; the same command resumes"

LEFT = (
    "stopped: finished runs are stored, and jobs stay in the queue; the same command resumes, "
    "`autotune cancel {name}` ends the jobs"
)


@contextmanager
def open_display(
    stopped: str = STOPPED, status: Path | None = None, *, quiet: bool = False, verbose: bool = False
) -> "Iterator[Display]":
    """Show a session at the terminal; on Ctrl-C print `stopped` and exit.

    Args:
        stopped: The line to print when the session is interrupted.
        status: A file for the progress as JSON; None for no such file.
        quiet: Show nothing before the result.
        verbose: Show the end of every run.

    Raises:
        typer.BadParameter: Both `quiet` and `verbose` are asked for.
    """
    if quiet and verbose:
        msg = "prints every run and --quiet none: give one of the two"
        raise typer.BadParameter(msg, param_hint="--verbose")
    from autotune.display.console import NoDisplay, display_for
    from autotune.display.status_file import StatusDisplay
    from autotune.execution.signals import stop_at_sigterm

    display: Display = NoDisplay() if quiet else display_for(errors(), verbose=verbose)
    if status is not None:
        display = StatusDisplay(display, status)
    # A batch system, `kill` and --take-over send SIGTERM; treat it like Ctrl-C.
    stop_at_sigterm()
    try:
        yield display
    except BaseException as error:
        if not is_interrupt(error):
            raise
        display.close()
        errors().print(stopped, soft_wrap=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    finally:
        display.close()


def if_held(wait: bool, take_over: bool) -> IfHeld:
    """Return what to do if another process holds the study, by `--wait` and `--take-over`.

    Raises:
        typer.BadParameter: Both options are given.
    """
    if wait and take_over:
        msg = "waits for the process that runs the study, --take-over stops it: give one of the two"
        raise typer.BadParameter(msg, param_hint="--wait")
    return IfHeld.WAIT if wait else IfHeld.TAKE_OVER if take_over else IfHeld.LEAVE


def print_json(value: object) -> None:
    """Print a value as one JSON document."""
    echo(f"{json.dumps(value, indent=2, default=str)}\n")


def write_script(text: str, target: Path | None, mode: int = 0o755) -> None:
    """Print a job script, or write it to a file.

    Args:
        text: The script.
        target: The file; None prints the script.
        mode: The file's permissions.

    Raises:
        typer.BadParameter: The file cannot be written.
    """
    if target is None:
        echo(text, exact=True)
        return
    try:
        write_output(target, text)
        target.chmod(mode)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror}"
        raise typer.BadParameter(msg, param_hint="--output") from error


def check_one_form(script: str | None, *, as_json: bool) -> None:
    """Refuse `--script` together with `--json`.

    Raises:
        typer.BadParameter: Both options are given.
    """
    if script is not None and as_json:
        msg = "prints a job script and --json a JSON document: give one of the two"
        raise typer.BadParameter(msg, param_hint="--script")


def check_has_script(script: str | None, target: Path | None, others: Mapping[str, object] | None = None) -> None:
    """Refuse options that only apply to a job script, unless `--script` is given.

    Args:
        script: The value of `--script`.
        target: The value of `--output`.
        others: Values of further options that need a job script, by option.

    Raises:
        typer.BadParameter: Such an option is given without `--script`.
    """
    for option, value in {"--output": target, **(others or {})}.items():
        if value is not None and script is None:
            msg = "needs a job script: add --script slurm (or pbs, lsf, ...)"
            raise typer.BadParameter(msg, param_hint=option)


def known_storages(storage: str, also: Sequence[str] = (), *, may_be_new: bool = False) -> list[str]:
    """Return the addresses of the storages to learn from.

    The default storage is left out if it does not exist yet. With `may_be_new`, so is any other, with a note.
    """
    urls = [address.storage_url(given) for given in (storage, *also)]
    path = address.sqlite_path(urls[0])
    if path is None or path.exists() or not (may_be_new or storage == DEFAULT_STORAGE):
        return urls
    if storage != DEFAULT_STORAGE:
        errors().print(f"no storage at {path} yet: predicting without it")
    return urls[1:]


def picture_path(path: Path) -> Path | None:
    """Return the default path of a picture; without Matplotlib print a line and return None."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is not None:
        return path
    output().print(f"no picture {path.name}: Matplotlib is not installed")
    return None


def names_over(over: str) -> list[str]:
    """Return the one or two parameters that `--over` names.

    Raises:
        typer.BadParameter: It names none, more than two, or the same twice.
    """
    names = [word.strip() for word in over.split(",") if word.strip()]
    if not 1 <= len(dict.fromkeys(names)) == len(names) <= _MOST_OVER:
        msg = f"{over!r}: give the name of one parameter, or of two with a comma between them"
        raise typer.BadParameter(msg, param_hint="--over")
    return names


def duration_s(text: str, option: str) -> float:
    """Return the seconds of a duration given to `option`: `90`, `90s`, `15m`, `1h30m`, `2d`.

    Raises:
        typer.BadParameter: The text is not a duration, or not positive.
    """
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
