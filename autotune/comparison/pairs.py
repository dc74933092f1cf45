"""How many pairs of fresh runs of a trial and the default a verdict needs."""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import fmean

from autotune.records.series import SeriesKind
from autotune.records.study import Run
from autotune.statistics.verdict import pairs_needed, precise_enough, precision, ratio_interval
from autotune.studyfile import VerdictSection
from objectives.base import Metric

Pairs = tuple[tuple[float, float], ...]
"""The (default, trial) values, in the metric's unit."""


# Nobody minds a verdict of a minute, whatever the tuning took.
_FREE_CORE_S = 60.0
_PAIRED = frozenset({SeriesKind.VERDICT, SeriesKind.DUET})


def pairs_affordable(runs: Sequence[Run], pairs: int, settings: VerdictSection) -> float:
    """Return how many pairs the verdict's share of the tuning's core-seconds pays for, given the runs with `pairs`."""
    tuning = sum(run.core_s for run in runs if run.series.is_tuning)
    paired = [run.core_s for run in runs if run.series.kind in _PAIRED]
    if settings.of_tuning is None or not tuning or not sum(paired):
        return inf
    choosing = sum(run.core_s for run in runs if run.series.kind is SeriesKind.SELECT)
    left_s = max(settings.of_tuning * tuning, _FREE_CORE_S) - choosing - sum(paired)
    return pairs + left_s // (2.0 * fmean(paired))


def pairs_wanted(
    pairs: Sequence[tuple[float, float]], settings: VerdictSection, metric: Metric, affordable: float = inf
) -> int:
    """Return the number of pairs that the precision asked for needs, judged by the pairs so far.

    There are at most three looks. The first is after `settings.pairs` pairs. Each look places the next one where its
    interval predicts that the precision is reached (Stein, Annals of Mathematical Statistics 16, 1945), but no later
    than `latest_looks`. All looks have the same level, as in Pocock (Biometrika 64, 1977): the intervals stay as they
    are, and repeated looking costs chance of a false gain (Lan & DeMets, Biometrika 70, 1983). The cost is known, since
    signed ranks at successive looks have the same joint distribution for any noise: after looks at 8, 13 and 20 pairs,
    4.9 % of the winners that gain nothing look better at 95 %. The real share is smaller, because a look stops for
    precision and not for a gain: see `benchmarks/verdicts/trust.py`. More than `settings.pairs` are made only as far as
    they are `affordable`, which depends on costs and not on the gain.
    """
    wanted = settings.pairs
    for latest in latest_looks(settings)[1:]:
        if len(pairs) < wanted:
            break
        interval = ratio_interval(pairs[:wanted], metric, settings.confidence)
        enough = precise_enough(interval, settings.precision, settings.of_gain)
        if precision(interval) <= enough:
            break
        wanted = min(latest, max(wanted + 1, pairs_needed(interval, wanted, enough)))
    return wanted if wanted <= affordable else max(settings.pairs, int(affordable))


def latest_looks(settings: VerdictSection) -> tuple[int, int, int]:
    """Return the largest number of pairs at each look; successive numbers have the same ratio."""
    return settings.pairs, round(sqrt(settings.pairs * settings.max_pairs)), settings.max_pairs
