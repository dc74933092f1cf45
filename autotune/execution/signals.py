"""Being asked from outside: SIGUSR1 pauses a session, SIGTERM ends it as Ctrl-C does."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from autotune.errors import PausedError

# Cleaning up takes seconds: a second signal must not interrupt that.
_QUIET_S = 30.0


class Pause:
    """Whether a session was asked to start no further run."""

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    def ask(self) -> None:
        """Ask; may be called from a signal handler. A session that still waits for its turn ends at once.

        Raises:
            PausedError: it does.
        """
        self.asked = True
        if self._waiting:
            raise self.over()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for something inside this context, while nothing runs.

        Raises:
            PausedError: a pause is asked for, before or meanwhile.
        """
        self._waiting = True
        try:
            if self.asked:
                raise self.over()
            yield
        finally:
            self._waiting = False

    def over(self, *, jobs_stay: bool = False) -> PausedError:
        """Return the error to raise when nothing runs any more; `jobs_stay`: but the jobs in a queue."""
        left = "the jobs stay in the queue" if jobs_stay else "no run is in flight"
        return PausedError(f"paused: every finished run is stored, {left}; the same command goes on")


@contextmanager
def pausable() -> Iterator[Pause]:
    """Provide a pause that SIGUSR1 asks for."""
    pause = Pause()

    def ask(_number: int, _frame: FrameType | None) -> None:
        pause.ask()

    before = signal.signal(signal.SIGUSR1, ask)
    try:
        yield pause
    finally:
        signal.signal(signal.SIGUSR1, before)


def stop_at_sigterm(clock: Callable[[], float] = time.monotonic) -> None:
    """Make SIGTERM the same as Ctrl-C, once: asked again soon, it is on the way."""
    quiet_until = clock()

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal quiet_until
        if clock() >= quiet_until:
            quiet_until = clock() + _QUIET_S
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
