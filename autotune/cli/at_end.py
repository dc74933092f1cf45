"""`--on-end COMMAND`: a command that runs when a session has ended, however it ended."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import typer

from autotune.cli.common import errors
from autotune.errors import AutotuneError, ExitCode, is_interrupt


@dataclass
class SessionEnd:
    """How a session ended: `verdict` is in words, empty without one."""

    verdict: str = ""


@contextmanager
def at_end(command: str | None, study: str) -> Iterator[SessionEnd]:
    """Run a command when the context ends: without a shell, with the result in environment variables.

    Its failure is told, and changes nothing else.

    Raises:
        typer.BadParameter: it is no command, or not there; before anything runs.
    """
    words = _words(command)
    end = SessionEnd()
    try:
        yield end
    except BaseException as error:
        _run(words, study, _exit_code(error), end.verdict)
        raise
    _run(words, study, ExitCode.OK, end.verdict)


def _words(command: str | None) -> list[str]:
    if command is None:
        return []
    try:
        words = shlex.split(command)
    except ValueError as error:
        msg = f"{command!r} is no command: {error}"
        raise typer.BadParameter(msg, param_hint="--on-end") from None
    if not words or shutil.which(words[0]) is None:
        msg = f"{words[0] if words else command!r} is not there, or cannot be run"
        raise typer.BadParameter(msg, param_hint="--on-end")
    return words


def _exit_code(error: BaseException) -> int:
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, AutotuneError):
        return error.exit_code
    if is_interrupt(error):
        return ExitCode.INTERRUPTED
    return ExitCode.STORAGE if isinstance(error, OSError) else 1


def _run(words: Sequence[str], study: str, exit_code: int, verdict: str) -> None:
    if not words:
        return
    result = {"AUTOTUNE_STUDY": study, "AUTOTUNE_EXIT_CODE": str(int(exit_code)), "AUTOTUNE_VERDICT": verdict}
    try:
        # Standard output is for the result of the command itself.
        ended = subprocess.run(
            words, env={**os.environ, **result}, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
        )
    except OSError as error:
        errors().print(f"--on-end: {words[0]}: {error.strerror}", markup=False)
        return
    if ended.returncode:
        errors().print(f"--on-end: {words[0]} ended with exit code {ended.returncode}", markup=False)
