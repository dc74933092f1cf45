"""Signals: SIGUSR1 pauses a session, SIGTERM ends it as Ctrl-C does."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from autotune.errors import PausedError

# Cleaning up takes seconds, and a second signal within this time must not interrupt it.
_QUIET_S = 30.0


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


def stop_at_sigterm(clock: Callable[[], float] = time.monotonic) -> None:
    """Make SIGTERM the same as Ctrl-C; ignore further signals while the session cleans up."""
    quiet_until = clock()

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal quiet_until
        if clock() >= quiet_until:
            quiet_until = clock() + _QUIET_S
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
