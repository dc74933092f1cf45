"""What several commands share: consoles, a session's display, and how results are written."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from autotune.cli.options import DEFAULT_STORAGE
from autotune.durations import parse_duration_s
from autotune.errors import ExitCode, is_interrupt
from autotune.locks import IfHeld
from autotune.storage import address

if TYPE_CHECKING:
    from rich.console import Console

    from autotune.display.console import Display


_NO_WIDTH = 1_000_000


def output() -> "Console":
    """Return the console for results. A pipe or a file has no width: nothing is cut or wrapped there."""
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _NO_WIDTH
    return console


def errors() -> "Console":
    """Return the console for errors and progress."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True, highlight=False, emoji=False)


STOPPED = "stopped: every finished run is stored, the runs in flight were ended; the same command goes on from here"

LEFT = (
    "stopped: every finished run is stored, and the jobs stay in the queue: the same command goes on with them, "
    "`autotune cancel {name}` ends them"
)


@contextmanager
def open_display(stopped: str = STOPPED, status: Path | None = None, *, quiet: bool = False) -> "Iterator[Display]":
    """Show a session to the person at the terminal; Ctrl-C ends it with a word on what becomes of it.

    A `quiet` one shows nothing on the way to its result.

    How it stands is written to the `status` file, if one is given.
    """
    from autotune.display.console import NoDisplay, display_for
    from autotune.display.status_file import StatusDisplay
    from autotune.execution.signals import stop_at_sigterm

    display: Display = NoDisplay() if quiet else display_for(errors())
    if status is not None:
        display = StatusDisplay(display, status)
    # SIGTERM comes from a batch system, from `kill` or from --take-over. It means the same as Ctrl-C.
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
    """Return what `--wait` and `--take-over` ask for.

    Raises:
        typer.BadParameter: both are given.
    """
    if wait and take_over:
        msg = "waits for the process that holds the study, --take-over asks it to stop: give one of the two"
        raise typer.BadParameter(msg, param_hint="--wait")
    return IfHeld.WAIT if wait else IfHeld.TAKE_OVER if take_over else IfHeld.LEAVE


def print_json(value: object) -> None:
    """Print a value as JSON, one document."""
    typer.echo(json.dumps(value, indent=2, default=str))


def write_script(text: str, target: Path | None, mode: int = 0o755) -> None:
    """Print a job script, or write it to a file that can be run, by whom `mode` says.

    Raises:
        typer.BadParameter: the file cannot be written.
    """
    if target is None:
        typer.echo(text, nl=False)
        return
    try:
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror}"
        raise typer.BadParameter(msg, param_hint="--output") from error


def check_one_form(script: str | None, *, as_json: bool) -> None:
    """Refuse to print a job script and JSON at once.

    Raises:
        typer.BadParameter: both are asked for.
    """
    if script is not None and as_json:
        msg = "prints a job script and --json a JSON document: give one of the two"
        raise typer.BadParameter(msg, param_hint="--script")


def check_has_script(script: str | None, target: Path | None, others: Mapping[str, object] | None = None) -> None:
    """Refuse a file for a job script that nobody asked for, and `others`, options that are for one alone.

    Raises:
        typer.BadParameter: one is given without a script.
    """
    for option, value in {"--output": target, **(others or {})}.items():
        if value is not None and script is None:
            msg = "it is for a job script: say which with --script slurm (or pbs, lsf, ...)"
            raise typer.BadParameter(msg, param_hint=option)


def known_storages(storage: str, also: Sequence[str] = (), *, may_be_new: bool = False) -> list[str]:
    """Return the addresses of storages to learn from; where nothing was stored yet, the default one is none.

    So is another one if it `may_be_new`: then a note says that nothing is there.
    """
    urls = [address.storage_url(given) for given in (storage, *also)]
    path = address.sqlite_path(urls[0])
    if path is None or path.exists() or not (may_be_new or storage == DEFAULT_STORAGE):
        return urls
    if storage != DEFAULT_STORAGE:
        errors().print(f"there is no storage at {path} yet: predicted without it", markup=False)
    return urls[1:]


def duration_s(text: str, option: str) -> float:
    """Read the duration that an `option` was given: `90`, `90s`, `15m`, `1h30m`, `2d`.

    Raises:
        typer.BadParameter: it is none, or not positive.
    """
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
