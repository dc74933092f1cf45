"""Pace errors: how far forecasts by pace are off, learnt from a study's runs that reported their steps.

A run is checked after a tenth of its steps, and whenever the number of steps has doubled. Its forecast changes from
check to check. Each change is known for every run that got as far, also for a run that was stopped later: the decision
to stop depends on the forecast, not on its future change. The error of a forecast is the sum of its future changes,
whose means and variances add up (an optimal forecast is a martingale, whose increments are uncorrelated: Doob,
Stochastic Processes, 1953, chapter VII). The degrees of freedom are Satterthwaite's ("An approximate distribution of
estimates of variance components", Biometrics Bulletin 2, 1946).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

from autotune.statistics.pace import Pace, Timeline, time_at

SHARES = (0.1, 0.2, 0.4)
"""The shares of its steps after which a run is checked."""

# A run that got as far as this share shows its end: it would be over before the next doubling.
_NEARLY = 0.8

# One imagined run whose forecast changed by 2 %, so that a few runs that happen to agree do not look exact.
_PRIOR = 0.02
# Trials that are needed to estimate the error of forecasts.
_LEAST = 3


@dataclass(frozen=True)
class TimedRun:
    """The reports of a run, at least one, and its end in seconds if it was complete."""

    timeline: Timeline
    end_s: float | None


Changes = tuple[float | None, ...]
"""The change of a forecast, as a logarithm, from each check to the next or to the end; None after a run was stopped."""


def looks(pace: Pace) -> tuple[int, ...]:
    """Return the steps at which a run is checked."""
    first, last = pace.timeline[0][0], pace.timeline[-1][0]
    return tuple(round(first + share * (last - first)) for share in SHARES)


def changes_of(pace: Pace, run: TimedRun) -> Changes:
    """Return the changes of a run's forecasts."""
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
    """Return, for each check, the factor by which a forecast must exceed a bound for the run to exceed it.

    Args:
        changes: The changes of forecasts of a study's runs.
        error_rate: The chance that a run beyond the factor would have kept the bound.

    Returns:
        None for a check from which on too few runs have been followed.
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
