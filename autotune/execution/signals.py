"""Signals: SIGUSR1 pauses a session, SIGTERM ends it as Ctrl-C does."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType

from autotune.errors import PausedError

# Cleaning up takes seconds, and a second signal within this time must not interrupt it.
_QUIET_S = 30.0
_AGAIN_S = 0.05


class Pause:
    """The request that a session start no further run."""

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    def ask(self) -> None:
        """Request the pause, possibly from a signal handler.

        Raises:
            PausedError: The session is only waiting, so it ends at once.
        """
        self.asked = True
        if self._waiting:
            raise self.over()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a pause end the session at once while this context lasts, because nothing runs.

        Raises:
            PausedError: A pause was requested before or during the context.
        """
        self._waiting = True
        try:
            if self.asked:
                raise self.over()
            yield
        finally:
            self._waiting = False

    def over(self, *, jobs_stay: bool = False) -> PausedError:
        """Return the error to raise when all runs have ended; with `jobs_stay`, jobs remain in the queue."""
        left = "the jobs stay in the queue" if jobs_stay else "no run is in flight"
        return PausedError(f"paused: every finished run is stored, {left}; the same command resumes")


@contextmanager
def pausable() -> Iterator[Pause]:
    """Provide a pause that SIGUSR1 requests."""
    pause = Pause()

    def ask(_number: int, _frame: FrameType | None) -> None:
        pause.ask()

    before = signal.signal(signal.SIGUSR1, ask)
    try:
        yield pause
    finally:
        signal.signal(signal.SIGUSR1, before)


class _Stop:
    """The handler of SIGTERM: it raises KeyboardInterrupt, and ignores further signals while the session cleans up."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._quiet_until = clock()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self._clock() >= self._quiet_until:
            self._quiet_until = self._clock() + _QUIET_S
            raise KeyboardInterrupt

    def forget(self) -> None:
        """Act on the next signal as on the first."""
        self._quiet_until = self._clock()


def stop_at_sigterm(clock: Callable[[], float] = time.monotonic) -> None:
    """Make SIGTERM the same as Ctrl-C; ignore further signals while the session cleans up."""
    signal.signal(signal.SIGTERM, _Stop(clock))
    _repeat_lost_signals()


@cache
def _repeat_lost_signals() -> None:
    """Send a signal again if Python dropped what its handler raised, as it does while it frees an object."""
    before = sys.unraisablehook

    def notice(lost: "sys.UnraisableHookArgs") -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            number = signal.SIGTERM
        elif isinstance(lost.exc_value, PausedError):
            number = signal.SIGUSR1
        else:
            before(lost)
            return
        # Not from here: what is raised now would be dropped, too.
        timer = threading.Timer(_AGAIN_S, _send_again, (number,))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = notice


def _send_again(number: signal.Signals) -> None:
    handler = signal.getsignal(number)
    if isinstance(handler, _Stop):
        handler.forget()
    if callable(handler):
        os.kill(os.getpid(), number)
