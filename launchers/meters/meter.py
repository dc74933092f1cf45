"""The seam of meters: what is read before, during and after a run."""

from typing import Protocol


class Meter(Protocol):
    """Reads something that a machine counts. Times are seconds of one clock.

    A meter that finds nothing to read raises an OSError when it is made. What it cannot read later it leaves out.
    """

    def begin(self, now_s: float) -> None:
        """Take note of the counters, right before the run."""

    def sample(self, now_s: float) -> None:
        """Look at them during the run."""

    def end(self, now_s: float) -> dict[str, float]:
        """Look at them right after the run; return what they say of it, by the names of `metered.UNITS`."""
