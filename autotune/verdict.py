"""The verdict: the winner against the baseline, in interleaved pairs of fresh runs.

The runs that chose the winner are not used: the best of many noisy runs looks better than it is. Each pair is compared
by the logarithm of its ratio, which cancels a slow drift of the machine; the interval is Student's t on those (the
paired design of Box, Hunter & Hunter, Statistics for Experimenters, 2005, ch. 3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import Any, Self

import numpy as np
from scipy.special import stdtrit

from objectives.base import Metric


@dataclass(frozen=True)
class Verdict:
    """A comparison: `pairs` are (baseline, winner) values of the target metric, in its unit."""

    winner: int
    confidence: float
    pairs: tuple[tuple[float, float], ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether there are enough pairs for an interval."""
        return len(self.pairs) >= 2

    def interval(self, metric: Metric) -> tuple[float, float, float]:
        """Return the speed-up of the winner over the baseline, and the ends of its confidence interval."""
        sign = -1.0 if metric.direction == "maximize" else 1.0
        return ratio_interval([sign * log(base / best) for base, best in self.pairs], self.confidence)

    def significant(self, metric: Metric) -> bool:
        """Whether the winner is better than the baseline beyond the noise."""
        return self.known and self.interval(metric)[1] > 1.0

    def sentence(self, metric: Metric) -> str:
        """Say it in one sentence."""
        if not self.known:
            return "The winner could not be compared with the baseline: " + "; ".join(self.failures)
        speed_up, low, high = self.interval(metric)
        percent = f"{self.confidence:.0%} interval {low:.3f} to {high:.3f}, {len(self.pairs)} interleaved pairs of runs"
        if self.significant(metric):
            return f"{speed_up:.3f} times as fast as the default configuration ({percent})"
        return f"No significant gain over the default configuration: {speed_up:.3f} times as fast ({percent})"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form that is stored."""
        return {
            "winner": self.winner,
            "confidence": self.confidence,
            "pairs": [list(pair) for pair in self.pairs],
            "failures": list(self.failures),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Read the stored form."""
        pairs = tuple((float(base), float(best)) for base, best in stored["pairs"])
        return cls(stored["winner"], stored["confidence"], pairs, tuple(stored["failures"]))


def ratio_interval(log_ratios: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Return the geometric mean of ratios and the ends of its two-sided Student's t interval.

    Raises:
        ValueError: fewer than two ratios have no interval.
    """
    if len(log_ratios) < 2:
        msg = f"an interval needs two ratios or more, got {len(log_ratios)}"
        raise ValueError(msg)
    mean = fmean(log_ratios)
    quantile = float(stdtrit(len(log_ratios) - 1, 0.5 + confidence / 2))
    half = quantile * stdev(log_ratios) / sqrt(len(log_ratios))
    return exp(mean), exp(mean - half), exp(mean + half)


def order_of_pair(seed: int, pair: int) -> tuple[bool, bool]:
    """Return which side runs first in a pair, True for the baseline: random, so that no trend favours a side."""
    first = bool(np.random.default_rng([seed, pair]).integers(2))
    return first, not first
