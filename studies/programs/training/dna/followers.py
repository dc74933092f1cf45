"""The processes of the other ranks, which the first rank starts and which end with it."""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import NoReturn

from orphans import end_with_parent
from processes import describe_exit, stay_on_this_machine

from .settings import Settings

FAILED = 1

Run = Callable[[Settings, int, Path], int]
"""Trains as one rank, connected to the others through a file, and returns the exit code."""


class Followers:
    """The ranks from 1 on; the caller must `end` them, in a process that does nothing else.

    A failed rank has printed its error. Its exit code also ends the first rank, which would otherwise wait for its
    gradients, between GPUs for minutes.
    """

    def __init__(self, settings: Settings, run: Run) -> None:
        stay_on_this_machine()
        self._folder = tempfile.TemporaryDirectory(prefix="dna-")
        self.meeting = Path(self._folder.name) / "meeting"
        context = multiprocessing.get_context("spawn")
        self._processes = [
            context.Process(target=_follow, args=(settings, run, rank, self.meeting), name=f"dna rank {rank}")
            for rank in range(1, settings.ranks)
        ]
        for process in self._processes:
            process.start()
        self._ending = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def end(self, exit_code: int) -> NoReturn:
        """Kill the other ranks, and end this process at once: gloo's threads must not outlive the interpreter."""
        self._end(lambda: exit_code)

    def _end(self, exit_code: Callable[[], int]) -> NoReturn:
        with self._ending:  # the first caller decides the exit code
            code = exit_code()
            for process in self._processes:
                process.kill()
            for process in self._processes:
                process.join()
            self._folder.cleanup()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _watch(self) -> None:
        wait([process.sentinel for process in self._processes])
        self._end(self._failure)

    def _failure(self) -> int:
        """Return the exit code of the failed rank; print what it could not print itself."""
        ended = wait([process.sentinel for process in self._processes])
        rank, process = next(one for one in enumerate(self._processes, 1) if one[1].sentinel in ended)
        process.join()
        code = process.exitcode
        assert code is not None
        if code >= 0:
            return code
        print(f"rank {rank} (process {process.pid}) has {describe_exit(code)}", file=sys.stderr)
        return FAILED


def _follow(settings: Settings, run: Run, rank: int, meeting: Path) -> None:
    """Run one of the other ranks. Only the first one acts on signals, which may reach all processes of a job."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(meeting.parent)
    code = run(settings, rank, meeting)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
