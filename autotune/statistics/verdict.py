"""The verdict: the winner against the baseline, in interleaved pairs of fresh runs.

The runs that chose the winner are not used: the best of many noisy runs looks better than it is. Each pair is compared
by the logarithm of its ratio; the estimate and its interval are those of `signedrank`. An outlier does not move the
estimate; with fewer than twelve pairs it may widen the interval to its side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, log, sqrt

from autotune.records.stored import Stored
from autotune.statistics import signed_rank
from autotune.statistics.ratio_words import Interval, ends, times
from objectives.base import Metric

# More pairs of runs than this are not worth a more precise ratio.
_TOO_MANY = 200


@dataclass(frozen=True)
class Verdict(Stored):
    """A comparison: `pairs` are (baseline, winner) values of the target metric, in its unit.

    `candidates` are the trials among which the winner was chosen, the best of tuning first; `changes` is in how many
    parameters the winner differs from the default configuration; `asked` is the requested precision, None in
    a verdict that was stored without one. `inputs` are the pairs of each input of a mix, by its name.
    """

    winner: int
    candidates: tuple[int, ...]
    changes: int
    confidence: float
    asked: float | None
    pairs: tuple[tuple[float, float], ...] = ()
    failures: tuple[str, ...] = ()
    inputs: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether there are enough pairs for an interval."""
        return len(self.pairs) >= signed_rank.least_pairs(self.confidence)

    def interval(self, metric: Metric) -> Interval:
        """Return the speed-up of the winner over the baseline, and the ends of its confidence interval."""
        return ratio_interval(self.pairs, metric, self.confidence)

    def significant(self, metric: Metric) -> bool:
        """Whether the winner is better than the baseline beyond the noise."""
        return self.known and self.interval(metric)[1] > 1.0

    def slower(self, metric: Metric) -> bool:
        """Whether the winner is worse than the baseline beyond the noise: the noise misled the tuning."""
        return self.known and self.interval(metric)[2] < 1.0

    def sentence(self, metric: Metric) -> str:
        """Return the verdict as one sentence."""
        if not self.known:
            why = "; ".join(self.failures) or "too few pairs of runs"
            return f"The winner could not be compared with the default configuration: {why}"
        speed_up = self.interval(metric)
        interval = (
            f"{self.confidence:.0%} interval {ends(speed_up, metric)}, {len(self.pairs)} interleaved pairs of runs"
        )
        ratio = times(speed_up[0], metric, ".3f")
        if self.significant(metric):
            return f"{ratio} the default configuration ({interval})"
        worse = "Worse than" if metric.is_quality else "Slower than"
        judgement = worse if self.slower(metric) else "No significant gain over"
        return f"{judgement} the default configuration, so keep that: {ratio} it ({interval})"

    def doubt(self, metric: Metric) -> str | None:
        """Say why the interval may mislead, or is wider than was asked for; None if neither."""
        if self.known and len(set(self.pairs)) == 1:
            return (
                "every pair gave exactly the same values: the program draws the same random numbers each time, so this "
                "says nothing of others; let it use AUTOTUNE_SEED"
            )
        if not self.known or self.asked is None or precision(self.interval(metric)) <= self.asked:
            return None
        reached = precision(self.interval(metric))
        needed = ceil(len(self.pairs) * (reached / self.asked) ** 2)
        noisy = "trainings differ too much" if metric.is_quality else "this machine is too noisy"
        gave = f"{noisy} to say it to {self.asked:.1%}: {len(self.pairs)} pairs gave {reached:.1%}"
        if needed > _TOO_MANY:
            return f"{gave}, more than {_TOO_MANY} would be needed"
        return f"{gave}, about {needed} would be needed (autotune confirm --max-pairs {needed})"


def ratio_interval(pairs: Sequence[tuple[float, float]], metric: Metric, confidence: float) -> Interval:
    """Return how many times better the second of each pair is than the first, and the interval.

    Raises:
        ValueError: there are too few pairs for this confidence.
    """
    sign = -1.0 if metric.direction == "maximize" else 1.0
    middle, low, high = signed_rank.interval([sign * log(first / second) for first, second in pairs], confidence)
    return exp(middle), exp(low), exp(high)


def precision(interval: Interval) -> float:
    """Return how far, relatively, the ends of an interval are from its middle."""
    return sqrt(interval[2] / interval[1]) - 1.0


def pairs_needed(first: Interval, pairs: int, asked: float) -> int:
    """Return how many pairs are expected to reach the asked precision, given the interval of the first `pairs`.

    The number is decided once, as in Stein's two-stage procedure (1945): to look after every pair, and stop at a lucky
    moment, would make the interval too narrow.
    """
    return max(pairs, ceil(pairs * (precision(first) / asked) ** 2))
