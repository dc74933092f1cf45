"""Rates: how often somebody may ask."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

_CALLERS = 4096


@dataclass
class Bucket:
    """A token bucket: `burst` requests at once, and `rate_per_s` from then on."""

    rate_per_s: float
    burst: float
    left: float
    seen_at: float

    def take(self, now: float) -> float:
        """Take one; return 0, or how many seconds it is to the next."""
        self.left = min(self.burst, self.left + (now - self.seen_at) * self.rate_per_s)
        self.seen_at = now
        if self.left >= 1.0:
            self.left -= 1.0
            return 0.0
        return (1.0 - self.left) / self.rate_per_s


@dataclass
class Buckets:
    """A bucket for each caller; those not heard of for longest are forgotten."""

    rate_per_s: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[str, Bucket] = field(default_factory=OrderedDict)

    def take(self, caller: str) -> float:
        """Take one for a caller; return 0, or how many seconds it is to the next."""
        now = self.clock()
        bucket = self._known.setdefault(caller, Bucket(self.rate_per_s, self.burst, self.burst, now))
        self._known.move_to_end(caller)
        while len(self._known) > _CALLERS:
            self._known.popitem(last=False)
        return bucket.take(now)


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header that says when to come again."""
    return {"Retry-After": str(max(1, round(seconds)))}
