"""A command of the user's that prints a counter of energy: of a power supply, a batch system, a rack."""

import re
import subprocess
from collections.abc import Mapping, Sequence

from .metered import ENERGY

_PATIENCE_S = 4.0
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


class Command:
    """Runs it before and after the run: what its counter, in joules, has grown by is the energy of the run."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self._argv, self._environment = list(argv), dict(environment)
        self._before: float | None = None

    def begin(self, now_s: float) -> None:
        """Ask for the counter."""
        del now_s
        self._before = self._counter()

    def sample(self, now_s: float) -> None:
        """Do nothing: it may take long."""

    def end(self, now_s: float) -> dict[str, float]:
        """Ask again; a counter that told nothing, or has become less, tells nothing of the run."""
        del now_s
        before, after = self._before, self._counter()
        return {} if before is None or after is None or after < before else {ENERGY: after - before}

    def _counter(self) -> float | None:
        """Return the first number that it prints."""
        try:
            done = subprocess.run(
                self._argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        found = _NUMBER.search(done.stdout.decode("ascii", errors="replace"))
        return float(found[0]) if found else None
