"""Pairs of fresh runs, of a trial and of the default: how many are wanted, and how often a side may fail."""

from collections.abc import Sequence

from autotune.statistics.verdict import pairs_needed, ratio_interval
from autotune.studyfile import VerdictSection
from objectives.base import Metric

FAILED_OFTEN = 3
"""A configuration with this many failures is not run again: it is unreliable."""

Pairs = tuple[tuple[float, float], ...]
"""The values of the default and of the trial, in the metric's unit."""


def pairs_wanted(pairs: Sequence[tuple[float, float]], settings: VerdictSection, metric: Metric) -> int:
    """Return the number of pairs needed for the precision that is set, estimated from the first pairs."""
    if len(pairs) < settings.pairs:
        return settings.pairs
    first = ratio_interval(pairs[: settings.pairs], metric, settings.confidence)
    return min(settings.max_pairs, pairs_needed(first, settings.pairs, settings.precision))
