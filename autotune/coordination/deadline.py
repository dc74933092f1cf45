"""The deadline of a study: no run starts that would end after it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from autotune.errors import UnfinishedError
from autotune.machines.boot import steady_clock

# The time that is kept free after the last run: jobs get some seconds to end, and storage may be slow. Of a long
# allocation it is more, because schedulers differ in their clocks and in their patience. Of a very short one it is
# less, because otherwise no run would fit.
_MARGIN_S = 60.0
_MARGIN_SHARE = 0.02
_MARGIN_SHARE_AT_MOST = 0.1


class Deadline:
    """The time at which a study must have stopped.

    A monotonic clock measures it, because a batch system grants a job's time whatever happens to the node's wall clock.

    Attributes:
        ends_at: End of the time given, in seconds since the epoch.
        margin_s: Seconds before that end at which runs must have ended.
    """

    def __init__(self, ends_at: float, clock: Callable[[], float] | None = None) -> None:
        """Start `clock`; by default a monotonic one that agrees with the wall clock now."""
        clock = clock or steady_clock()
        self.ends_at = ends_at
        self._clock = clock
        left_s = max(0.0, ends_at - clock())
        self.margin_s = max(_MARGIN_SHARE * left_s, min(_MARGIN_S, _MARGIN_SHARE_AT_MOST * left_s))

    @property
    def left_s(self) -> float:
        """Seconds that runs may still take."""
        return self.ends_at - self.margin_s - self._clock()

    def allows(self, expected_s: float | None) -> bool:
        """Whether a run expected to take `expected_s` may start; None: unknown, it may while any time is left."""
        return self.left_s > (expected_s or 0.0)

    def over(self) -> UnfinishedError:
        """Return the error to raise when no further run may start."""
        end = datetime.fromtimestamp(self.ends_at).astimezone().strftime("%Y-%m-%d %H:%M %Z")
        return UnfinishedError(f"the time given ends at {end}, too soon for another run; the same command resumes")


def expected_s(limit_s: float | None, slowest_s: float | None) -> float | None:
    """Return how many seconds a run may take, by its limit and the slowest run so far; None if both are unknown."""
    known = [seconds for seconds in (limit_s, slowest_s) if seconds is not None]
    return min(known, default=None)


def parse_end(text: str, now: datetime) -> datetime:
    """Parse `17:30` (the next one) or `2026-11-22T17:30`, with or without a time zone; `now` has a time zone.

    Raises:
        ValueError: The text is not a time, or the time is past.
    """
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}", text):
            hour, minute = map(int, text.split(":"))
            end = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
            end += timedelta(days=1) if end <= now else timedelta()
        else:
            read = datetime.fromisoformat(text)
            end = read if read.tzinfo else read.replace(tzinfo=now.tzinfo)
    except ValueError:
        msg = f"{text!r} is not a time; write 17:30 or 2026-11-22T17:30"
        raise ValueError(msg) from None
    if end <= now:
        msg = f"{text} is past, now is {now:%Y-%m-%dT%H:%M}"
        raise ValueError(msg)
    return end
