"""The end of the time that a study has: no run starts that would not end before it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from autotune.errors import UnfinishedError
from autotune.machines.boot import steady_clock

# What is needed after the last run: jobs get some seconds to end, and storage may be slow. More of a long time, since
# schedulers' clocks and their patience differ; less of a very short one, which would hold no run at all.
_MARGIN_S = 60.0
_MARGIN_SHARE = 0.02
_MARGIN_SHARE_AT_MOST = 0.1


class Deadline:
    """When a study must have stopped: at `ends_at`, in seconds since 1970, less `margin_s`.

    A batch system gives a job so much time, whatever becomes of the wall clock of its node meanwhile.
    """

    def __init__(self, ends_at: float, clock: Callable[[], float] | None = None) -> None:
        """Begin now, as `clock` tells it: by default one that shows what the wall clock shows now."""
        clock = clock or steady_clock()
        self.ends_at = ends_at
        self._clock = clock
        left_s = max(0.0, ends_at - clock())
        self.margin_s = max(_MARGIN_SHARE * left_s, min(_MARGIN_S, _MARGIN_SHARE_AT_MOST * left_s))

    @property
    def left_s(self) -> float:
        """How long runs may still go on, in seconds."""
        return self.ends_at - self.margin_s - self._clock()

    def allows(self, expected_s: float | None) -> bool:
        """Whether a run expected to take `expected_s` may start. None: unknown, allowed while time is left."""
        return self.left_s > (expected_s or 0.0)

    def over(self) -> UnfinishedError:
        """Return the error to raise when no further run may start."""
        end = datetime.fromtimestamp(self.ends_at).astimezone().strftime("%Y-%m-%d %H:%M %Z")
        return UnfinishedError(f"the time given ends at {end}, too soon for another run; the same command goes on")


def expected_s(limit_s: float | None, slowest_s: float | None) -> float | None:
    """Return how long a run may take: until it is stopped, or as long as the slowest before it; None: nobody knows."""
    known = [seconds for seconds in (limit_s, slowest_s) if seconds is not None]
    return min(known, default=None)


def parse_end(text: str, now: datetime) -> datetime:
    """Read `17:30` (the next one), `2026-11-22T17:30`, with or without a time zone; `now` has one.

    Raises:
        ValueError: it is none, or past.
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
