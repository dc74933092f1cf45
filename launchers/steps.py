"""Runs the commands that prepare a job, then becomes the job's own command.

It is started by path where the job runs (`python -I -S steps.py STEPS COMMAND...`, STEPS being a list of command lines
in JSON), so it imports the standard library only. Because it becomes the job's command, the signals, exit code and
usage of the job are those of that command. If a step fails, the job ends as the step did.

Standard output of the steps goes to standard error, since the job's output is that of its own command. The time that
the steps took is written to the job's folder.
"""

# The job's folder is the current folder, and pathlib takes longer to import than this program to start.
# ruff: noqa: PTH118, PTH123

import json
import os
import signal
import sys
import time
from contextlib import suppress
from os import PathLike
from typing import Any

STEPS_FILE = ".autotune-steps.json"

IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores: restore their default action, which programs expect."""


def with_steps(command: list[str], steps: tuple[tuple[str, ...], ...], python: list[str]) -> list[str]:
    """Return a command line that runs `steps` before `command`; `python` starts an interpreter."""
    return [*python, __file__, json.dumps(steps), *command] if steps else command


def read_steps(folder: PathLike[str]) -> tuple[float, str]:
    """Return how many seconds the steps in a job's folder took, and the program of the step that failed.

    The time is 0 if there is no readable record; the program is empty if no step failed.

    Raises:
        OSError: The record cannot be read.
    """
    with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
        with open(os.path.join(folder, STEPS_FILE), encoding="utf-8") as file:
            answer = json.load(file)
        return float(answer["elapsed_s"]), str(answer["failed"] or "")
    return 0.0, ""


def main(arguments: list[str]) -> int:
    """Run the steps, then become the command; return only if one of them cannot be run or fails."""
    began = time.monotonic()
    steps, command = json.loads(arguments[0]), arguments[1:]
    for step in steps:
        exit_code = _run(step)
        if exit_code != 0:
            _write({"elapsed_s": time.monotonic() - began, "failed": step[0]})
            return end_as(exit_code)
    _write({"elapsed_s": time.monotonic() - began, "failed": None})
    for number in IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606  that is what this is for
    except OSError as error:
        _say(f"{command[0]}: {error.strerror}, after all preparing steps succeeded")
        return 127


def _run(argv: list[str]) -> int:
    """Run a command to its end; return its exit code, negative for a signal."""
    try:
        to_stderr = [(os.POSIX_SPAWN_DUP2, 2, 1)]
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=to_stderr, setsigdef=IGNORED_BY_PYTHON)
    except OSError as error:
        _say(f"{argv[0]}: {error.strerror}")
        return 127
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def end_as(exit_code: int) -> int:
    """Return an exit code; a negative one ends this process by that signal instead."""
    if exit_code < 0:
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-exit_code, signal.SIG_DFL)
        os.kill(os.getpid(), -exit_code)
    return exit_code


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _write(values: dict[str, Any]) -> None:
    # Ignore a full disk here; the command itself will report it.
    with suppress(OSError), open(STEPS_FILE, "w", encoding="utf-8") as file:
        json.dump(values, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
