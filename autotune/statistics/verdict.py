"""The verdict: the winner against the baseline, in pairs of fresh runs, made in turns or side by side.

The runs that chose the winner are not used: the best of many noisy runs looks better than it is. Each pair is compared
by the logarithm of its ratio; `signed_rank` gives the estimate and its interval. An outlier does not move the estimate;
with fewer than twelve pairs it may widen the interval to its side.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, exp, hypot, log, sqrt
from statistics import NormalDist, fmean, median
from typing import Any, Literal, Self

from autotune.formatting import quantity
from autotune.records.series import Series
from autotune.records.stored import Stored
from autotune.statistics import signed_rank
from autotune.statistics.node_spread import NodeSpread
from autotune.statistics.ratio_words import Interval, ends, times
from objectives.base import Metric

FAILED_OFTEN = 3
"""A configuration with this number of failures is unreliable, and is not run again."""

# More pairs of runs than this are not worth a more precise ratio.
_TOO_MANY = 200
# The machine's speed counts as changed if it differs by this number of standard errors, and by `_WORTH_SAYING`.
_SURE = 3.0
_WORTH_SAYING = 1.1
_PRIOR_NOISE = 0.02
# Above this share, runs of a duet ended nearly together, which needs no mention.
_ALONE = 0.95


PairsMode = Literal["interleaved", "duet"]
"""How the two runs of a pair are made: in turns, or side by side."""


@dataclass(frozen=True)
class Verdict(Stored):
    """A comparison of the winner with the default configuration.

    Attributes:
        pairs: (baseline, winner) values of the target metric, in its unit.
        candidates: The trials among which the winner was chosen, the best of tuning first.
        changes: The number of parameters in which the winner differs from the default configuration.
        asked: The requested precision; None if the verdict was stored without one.
        of_gain: The share of the gain that is precise enough.
        inputs: The pairs of each input by its name, in a study with several inputs.
        nodes: The node of each pair, where nodes can be chosen.
        nodes_asked: The number of nodes that the verdict was asked to cover.
        mode: How pairs were made.
        mode_why: The reason for that mode, if another was possible or requested.
        mode_asked: The requested mode.
        abreast: In a duet, the share of the longer run's time in which both ran.
        unknown: The standard deviation of the ratio's logarithm that comes from what others took from the runs: its
            effect is known by an estimate only, and matters as far as they took more from one side.
    """

    winner: int
    candidates: tuple[int, ...]
    changes: int
    confidence: float
    asked: float | None
    pairs: tuple[tuple[float, float], ...] = ()
    failures: tuple[str, ...] = ()
    inputs: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    nodes_asked: int | None = None
    of_gain: float = 0.0
    mode: PairsMode = "interleaved"
    mode_asked: str = "interleaved"
    mode_why: str = ""
    abreast: float | None = None
    unknown: float = 0.0

    def with_settings_of(self, study: Mapping[str, Any]) -> Self:
        """Return the verdict with the confidence and precisions of `study`, the newest session's study file.

        The pairs are measurements, so they stay as they are.
        """
        asked = study.get("verdict", {})
        return replace(
            self,
            confidence=asked.get("confidence", self.confidence),
            asked=asked.get("precision", self.asked),
            of_gain=asked.get("of_gain", self.of_gain),
        )

    @property
    def series(self) -> Series:
        """The series of its runs."""
        return Series.duet(self.winner) if self.mode == "duet" else Series.verdict(self.winner)

    @property
    def known(self) -> bool:
        """Whether there are enough pairs for an interval."""
        return len(self.pairs) >= signed_rank.least_pairs(self.confidence)

    def interval(self, metric: Metric) -> Interval:
        """Return the speed-up of the winner over the baseline, and the ends of its confidence interval."""
        return ratio_interval(self.pairs, metric, self.confidence, self.unknown)

    def spread(self, metric: Metric) -> NodeSpread | None:
        """Return how the ratio differs between the nodes of the pairs; None if all were on one node."""
        return NodeSpread.of(self.pairs, self.nodes, metric) if self.nodes else None

    def value(self) -> float:
        """Return the winner's value: the mean over the nodes of its mean on each."""
        by_node: dict[str, list[float]] = defaultdict(list)
        for place, (_, value) in enumerate(self.pairs):
            by_node[self.nodes[place] if self.nodes else ""].append(value)
        return fmean(map(fmean, by_node.values()))

    @property
    def winner_failures(self) -> tuple[str, ...]:
        """The failures of the winner's fresh runs, each as a message."""
        return tuple(text for text in self.failures if text.startswith(f"trial {self.winner}: "))

    @property
    def unreliable(self) -> bool:
        """Whether the winner failed too often to be of use, however fast it is when it works."""
        return len(self.winner_failures) >= FAILED_OFTEN

    @property
    def given_up(self) -> bool:
        """Whether the winner or the default failed too often to be run again."""
        return self.unreliable or len(self.failures) - len(self.winner_failures) >= FAILED_OFTEN

    def significant(self, metric: Metric) -> bool:
        """Whether the winner is better than the baseline beyond the noise, and works."""
        return self.known and not self.unreliable and self.interval(metric)[1] > 1.0

    def slower(self, metric: Metric) -> bool:
        """Whether the winner is worse than the baseline beyond the noise, so that noise misled the tuning."""
        return self.known and self.interval(metric)[2] < 1.0

    def sentence(self, metric: Metric) -> str:
        """Return the verdict as one sentence."""
        if not self.known:
            why = "; ".join(self.failures) or "too few pairs of runs"
            return f"The winner could not be compared with the default configuration: {why}"
        if self.significant(metric):
            return self.comparison(metric)
        if self.unreliable:
            return f"The winner fails too often, so keep the default configuration: {self.failure_text()}"
        worse = "Worse than" if metric.is_quality else "Slower than"
        judgement = worse if self.slower(metric) else "No significant gain over"
        return f"{judgement} the default configuration, so keep that: {self.comparison(metric, 'it')}"

    def comparison(self, metric: Metric, default: str = "the default configuration") -> str:
        """Return the ratio and its interval as a sentence, without a judgement."""
        speed_up = self.interval(metric)
        interval = f"{self.confidence:.0%} interval {ends(speed_up, metric)}, {self.pairs_text()}"
        spread = self.spread(metric)
        if spread is not None:
            interval += f"; {spread.words()}, and its mean is {quantity(self.value(), metric)}"
        return f"{times(speed_up[0], metric, '.3f')} {default} ({interval})"

    def pairs_text(self) -> str:
        """Return the number of pairs and how they were made: `20 interleaved pairs of runs`."""
        text = f"{len(self.pairs)} interleaved pairs of runs"
        if self.mode == "duet":
            text = f"{len(self.pairs)} duets: pairs of runs side by side"
        if self.abreast is not None and self.abreast < _ALONE:
            text += f" for {self.abreast:.0%} of the longer run"
        # Pairs in turns are what everybody expects, unless the study asked for duets.
        says_why = self.mode_why and "duet" in {self.mode, self.mode_asked}
        return f"{text}; {self.mode_why}" if says_why else text

    def doubts(self, metric: Metric, study: str, tuned: Sequence[float] = ()) -> list[str]:
        """Return the reasons why the interval may mislead, and that it is wider than requested.

        Args:
            metric: The target metric.
            study: The name of the study, for the commands in the sentences.
            tuned: The baseline's values from tuning. If the fresh ones differ, the machine's speed has changed since
                the winner was chosen.
        """
        if self.known and len(set(self.pairs)) == 1:
            same = (
                "every pair gave exactly the same values: the program draws the same random numbers each time, so this "
                "says nothing of others; let it use AUTOTUNE_SEED"
            )
            return [same]
        failed = self.failure_text() if self.known and self.winner_failures and not self.unreliable else None
        pace_changed, wide = self._speed_change_text(metric, study, tuned), self._imprecise(metric, study)
        return [doubt for doubt in (failed, self._on_few_nodes(metric), pace_changed, wide) if doubt]

    def failure_text(self) -> str:
        """Return how often the winner failed, and its first failure."""
        failed = len(self.winner_failures)
        return f"the winner failed in {failed} of {failed + len(self.pairs)} fresh runs: {self.winner_failures[0]}"

    def _on_few_nodes(self, metric: Metric) -> str | None:
        """Return that the verdict does not hold on every node, or covers fewer nodes than requested."""
        spread = self.spread(metric)
        if self.known and self.nodes_asked is not None and len(set(self.nodes)) < self.nodes_asked:
            return f"it was asked for {self.nodes_asked} nodes, and speaks for {max(1, len(set(self.nodes)))}"
        if spread is not None and self.failures:
            return f"runs on some nodes failed: {self.failures[0]}"
        if spread is None or not spread.losing or not self.significant(metric):
            return None
        return f"on {', '.join(spread.losing)} the default was better"

    def _speed_change_text(self, metric: Metric, study: str, tuned: Sequence[float]) -> str | None:
        """Return that the machine's speed changed between tuning and verdict; not judged over several nodes."""
        if not self.known or not metric.is_pace or self.spread(metric) is not None:
            return None
        moved = metric.cost(shift([default for default, _ in self.pairs], tuned))
        if moved == 0.0:
            return None
        if self.mode == "duet" and self.mode_asked == "duet":
            return (
                f"alone, while tuning, the default was {pace(moved)} than in the duets: the two slow each other, or "
                "the machine is another one now; `verdict.mode = 'auto'` tells these apart"
            )
        return (
            f"the machine was {pace(moved)} while tuning, so another trial may be better: repeat the `autotune study` "
            f"command of {study} with --tune-again"
        )

    def _imprecise(self, metric: Metric, study: str) -> str | None:
        """Return that the interval is wider than requested, and how many pairs would make it narrow enough."""
        if not self.known or self.asked is None:
            return None
        # More pairs do not tell more about the effect of others.
        interval, of_pairs = self.interval(metric), ratio_interval(self.pairs, metric, self.confidence)
        enough = precise_enough(of_pairs, self.asked, self.of_gain)
        if precision(of_pairs) <= enough:
            return None
        needed = pairs_needed(of_pairs, len(self.pairs), enough)
        # For a large gain `enough` is a share of the gain, which stands nowhere in the study file.
        asked = f"{enough:.1%} to either side" if enough == self.asked else "what the study asks"
        wide = f"the interval is wide ({ends(interval, metric)}): {len(self.pairs)} pairs were made"
        if needed > _TOO_MANY:
            return f"{wide}, and more than {_TOO_MANY} would be needed to narrow it to {asked}"
        return f"{wide}, about {needed} would narrow it to {asked}: autotune confirm {study} --max-pairs {needed}"


def ratio_interval(
    pairs: Sequence[tuple[float, float]], metric: Metric, confidence: float, unknown: float = 0.0
) -> Interval:
    """Return how many times better the second of each pair is than the first, and the interval.

    Args:
        pairs: The values.
        metric: Their metric.
        confidence: The confidence of the interval.
        unknown: The standard deviation of an error that all pairs share, of the logarithm.

    Raises:
        ValueError: there are too few pairs for this confidence.
    """
    sign = -1.0 if metric.direction == "maximize" else 1.0
    middle, low, high = signed_rank.interval([sign * log(first / second) for first, second in pairs], confidence)
    shared = unknown * NormalDist().inv_cdf(0.5 + confidence / 2.0) if unknown else 0.0
    return exp(middle), exp(middle - hypot(middle - low, shared)), exp(middle + hypot(high - middle, shared))


def known_interval(
    pairs: Sequence[tuple[float, float]], metric: Metric, confidence: float, unknown: float = 0.0
) -> Interval | None:
    """Return `ratio_interval`; None with too few pairs."""
    enough = len(pairs) >= signed_rank.least_pairs(confidence)
    return ratio_interval(pairs, metric, confidence, unknown) if enough else None


def middle_ratio(pairs: Sequence[tuple[float, float]], metric: Metric) -> float:
    """Return how many times better the second of each pair is, by the median of any number of pairs."""
    return exp(median(metric.cost(log(first / second)) for first, second in pairs))


def shift(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the logarithm of the ratio of the values `after` to those before; 0 if that may be noise."""
    if not before or not after:
        return 0.0
    groups = [[log(value) for value in values] for values in (before, after)]
    centers = [median(values) for values in groups]
    squares = sum((value - center) ** 2 for values, center in zip(groups, centers, strict=True) for value in values)
    degrees = len(before) + len(after) - 2
    noise = sqrt((_PRIOR_NOISE**2 + squares) / (1 + degrees))
    difference = centers[1] - centers[0]
    beyond = max(_SURE * noise * sqrt(1 / len(before) + 1 / len(after)), log(_WORTH_SAYING))
    return difference if abs(difference) > beyond else 0.0


def pace(moved: float) -> str:
    """Return how much slower or faster a machine was; `moved` is the logarithm of the ratio of its times."""
    return f"{exp(abs(moved)):.3g} times {'slower' if moved > 0.0 else 'faster'}"


def precision(interval: Interval) -> float:
    """Return the relative distance of an interval's ends from its middle."""
    return sqrt(interval[2] / interval[1]) - 1.0


def precise_enough(interval: Interval, asked: float, of_gain: float) -> float:
    """Return the precision that suffices: `asked`, or the share `of_gain` of the gain, whichever is larger.

    Gain and precision are compared as logarithms of ratios: a quarter of 1.6 times is 12 % to either side.
    """
    return max(asked, exp(of_gain * abs(log(interval[0]))) - 1.0)


def pairs_needed(first: Interval, pairs: int, asked: float) -> int:
    """Return the number of pairs expected to reach the requested precision, given the interval of the first `pairs`."""
    return max(pairs, ceil(pairs * (precision(first) / asked) ** 2))
