"""Pace errors: how far forecasts by pace are off, learnt from the runs of a study that told their steps.

A run is looked at after a tenth of its steps, and whenever the steps have doubled since. From one look to the next its
forecast changes; what it changes by is known of every run that went as far as that, also of those that were stopped
later: whether a run goes on depends on what was forecast, and not on how that will change. A forecast is off by the sum
of the changes to come, whose means and variances add up (a forecast that is as good as it can be is a martingale, and
its increments are uncorrelated: Doob, Stochastic Processes, 1953, chapter VII). The degrees of freedom are those of
Satterthwaite ("An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

from autotune.statistics.pace import Pace, Timeline, time_at

SHARES = (0.1, 0.2, 0.4)
"""The shares of its steps after which a run is looked at."""

# A run that went as far as that shows where it ends: at the next doubling it would be over.
_NEARLY = 0.8

# As for the noise of runs, one more run is thought to have changed by 2 %, so that a few that are alike are not exact.
_PRIOR = 0.02
# So few trials do not tell how far forecasts are off.
_LEAST = 3


@dataclass(frozen=True)
class Told:
    """What a run told, at least one step, and when it ended if it went to its end."""

    timeline: Timeline
    end_s: float | None


Changes = tuple[float | None, ...]
"""What a forecast changed by from each look to the next, or to the end: of logarithms; None after a run was stopped."""


def looks(pace: Pace) -> tuple[int, ...]:
    """Return the steps at which a run is looked at."""
    first, last = pace.timeline[0][0], pace.timeline[-1][0]
    return tuple(round(first + share * (last - first)) for share in SHARES)


def changes_of(pace: Pace, run: Told) -> Changes:
    """Return what the forecasts of a run changed by."""
    end_s, (first, last) = run.end_s, (pace.timeline[0][0], pace.timeline[-1][0])
    if end_s is None and run.timeline[-1][0] >= first + _NEARLY * (last - first):
        end_s = pace.end_s(run.timeline)
    known = [*(_foretold(pace, run.timeline, step) for step in looks(pace)), end_s]
    return tuple(log(after / before) if before and after else None for before, after in pairwise(known))


def _foretold(pace: Pace, timeline: Timeline, step: int) -> float | None:
    at_s = time_at(timeline, step)
    if at_s is None:
        return None
    return pace.end_s([*(point for point in timeline if point[0] < step), (step, at_s)])


def factors(changes: Sequence[Changes], error_rate: float) -> tuple[float | None, ...]:
    """Return by what factor a forecast of each look has to be beyond a bound, so that the run is, but for `error_rate`.

    None for a look where it is not known how forecasts change from there on.
    """
    from scipy.special import stdtrit  # noqa: PLC0415  slow to import, and most studies need none of it

    mean, variance, doubt = 0.0, 0.0, 0.0
    found: list[float | None] = []
    for place in reversed(range(len(SHARES))):
        known = [one[place] for one in changes]
        values = [value for value in known if value is not None]
        if len(values) < _LEAST:
            break
        center = sum(values) / len(values)
        degrees = len(values) - 1
        own = (_PRIOR**2 + sum((value - center) ** 2 for value in values)) / degrees * (1.0 + 1.0 / len(values))
        mean, variance, doubt = mean + center, variance + own, doubt + own**2 / degrees
        allowed = float(stdtrit(variance**2 / doubt, 1.0 - error_rate)) * sqrt(variance)
        found.append(exp(allowed - mean))
    return tuple(reversed([*found, *[None] * (len(SHARES) - len(found))]))
