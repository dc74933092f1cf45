"""A user's command that prints an energy counter, for example of a power supply, a batch system or a rack."""

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from .figures import ENERGY

_PATIENCE_S = 4.0
# Not a part of a date in digits, of a time, or of a number with thousands separators.
_NUMBER = re.compile(r"(?<![\w.,/-])(?<!\d:)\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\d|[.,:/-]\d)")


class CommandMeter:
    """Runs the command before and after a run; the growth of its counter, in joules, is the energy of the run."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._argv, self._environment = list(argv), dict(environment)
        self._before: float | None = None

    def begin(self, now_s: float) -> None:
        """Read the counter."""
        del now_s
        self._before = self._counter()

    def sample(self, now_s: float) -> None:
        """Do nothing, since the command may take long."""

    def end(self, now_s: float) -> dict[str, float]:
        """Read the counter again; return nothing if either reading failed or the counter has not grown."""
        del now_s
        before, after = self._before, self._counter()
        return {} if before is None or after is None or after <= before else {ENERGY: after - before}

    def _counter(self) -> float | None:
        """Return the first number that the command prints; when it times out, kill it and its children."""
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                self._argv,
                env=self._environment,
                stdin=quiet,
                stdout=subprocess.PIPE,
                stderr=quiet,
                start_new_session=True,
            )
        except OSError:
            return None
        with process:
            try:
                printed, _ = process.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return None
        found = _NUMBER.search(printed.decode("ascii", errors="replace"))
        return float(found[0]) if found and process.returncode == 0 else None
