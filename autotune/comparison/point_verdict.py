"""The verdict on a point of a trade-off's front: the point against the default, in every metric of the trade-off.

All metrics are read from the same interleaved pairs of fresh runs, and each has its own interval: of the ratio if all
its values are positive, else of the difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.comparison.limit_verdict import NO_LIMITS, LimitVerdict, limits_in_pairs
from autotune.comparison.pairs import Pairs, pairs_wanted
from autotune.comparison.round_table import RoundTable, Side
from autotune.formatting import join_words, quantity
from autotune.records.limit import breaks
from autotune.records.series import Series
from autotune.records.study import Run, TrialRecord
from autotune.statistics import signed_rank
from autotune.statistics.ratio_words import Interval, change_text
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import ratio_interval
from autotune.studyfile import VerdictSection
from objectives.base import Metric


@dataclass(frozen=True)
class MetricPairs:
    """The (default, point) pairs of one metric, in its unit; `unknown` is that of a verdict's ratio."""

    metric: Metric
    pairs: Pairs
    unknown: float = 0.0

    @property
    def has_ratio(self) -> bool:
        """Whether all values are positive, so that ratios exist."""
        return all(value > 0.0 for pair in self.pairs for value in pair)

    def interval(self, confidence: float) -> Interval:
        """Return the ratio, or the difference in the metric's unit, with its interval; larger means a better point."""
        if self.has_ratio:
            return ratio_interval(self.pairs, self.metric, confidence, self.unknown)
        gains = [self.metric.cost(default - point) for default, point in self.pairs]
        return signed_rank.interval(gains, confidence)

    def direction(self, confidence: float) -> int:
        """Return 1 if the point is better beyond the noise, -1 if it is worse, else 0."""
        _, low, high = self.interval(confidence)
        same = 1.0 if self.has_ratio else 0.0
        return (low > same) - (high < same)

    def words(self, confidence: float) -> str:
        """Return the comparison in words, such as `memory_bytes 1.204 times higher (1.188 to 1.220)`."""
        middle, low, high = self.interval(confidence)
        if self.has_ratio:
            return change_text((middle, low, high), self.metric)
        if low == high == 0.0:
            return f"{self.metric.name} the same in every pair"
        way = "lower" if (self.metric.direction == "minimize") == (middle >= 0.0) else "higher"
        doubt = "" if self.direction(confidence) else ", no significant difference"
        size, *ends = (middle, low, high) if middle >= 0.0 else (-middle, -high, -low)
        first, last = (quantity(end, self.metric) for end in ends)
        return f"{self.metric.name} {way} by {quantity(size, self.metric)} ({first} to {last}{doubt})"

    def pairs_needed(self, settings: VerdictSection) -> int:
        """Return the number of pairs that the precision asked for needs; differences have no relative precision."""
        return pairs_wanted(self.pairs, settings, self.metric) if self.has_ratio else settings.pairs


@dataclass(frozen=True)
class PointVerdict:
    """The comparison of a trial with the default in several metrics.

    Attributes:
        trial: The number of the trial.
        confidence: The confidence of the intervals.
        pairs: The number of pairs of fresh runs; a metric may be missing in some of them.
        metrics: The pairs of each metric.
        failures: The messages of failed runs.
        unreliable: Whether a side failed too often to be run again.
        on_limits: The verdict on limits.
    """

    trial: int
    confidence: float
    pairs: int
    metrics: tuple[MetricPairs, ...]
    failures: tuple[str, ...] = ()
    unreliable: bool = False
    on_limits: LimitVerdict = NO_LIMITS

    @property
    def known(self) -> bool:
        """Whether every metric has enough pairs for an interval."""
        least = signed_rank.least_pairs(self.confidence)
        return all(len(compared.pairs) >= least for compared in self.metrics)

    def missing(self, settings: VerdictSection) -> int:
        """Return how many more pairs the precision asked for needs, for the metric that needs most."""
        if self.unreliable:
            return 0
        return max(0, max(compared.pairs_needed(settings) for compared in self.metrics) - self.pairs)

    def sentence(self) -> str:
        """Return the verdict in one sentence."""
        if not self.known:
            why = "; ".join(self.failures) or "too few pairs of runs"
            return f"trial {self.trial} could not be compared with the default configuration: {why}"
        figures = "; ".join(compared.words(self.confidence) for compared in self.metrics)
        about = f"{self.confidence:.0%} intervals, {self.pairs} interleaved pairs of runs"
        return f"trial {self.trial} {self._judgement()}: {figures} ({about}){self._limits()}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form: a ratio above 1 or a difference above 0 means that the point is better."""
        described = {"trial": self.trial, "confidence": self.confidence, "pairs": self.pairs}
        metrics = {compared.metric.name: _as_json(compared, self.confidence) for compared in self.metrics}
        limits = {"limits": self.on_limits.to_dict()} if self.on_limits.limits else {}
        return {**described, "sentence": self.sentence(), "metrics": metrics if self.known else {}, **limits}

    def _judgement(self) -> str:
        ways = {compared.metric.name: compared.direction(self.confidence) for compared in self.metrics}
        better, worse = ([name for name, way in ways.items() if way == wanted] for wanted in (1, -1))
        if better:
            return f"is better than the default in {join_words(better)}" + (
                f", worse in {join_words(worse)}" * bool(worse)
            )
        if worse:
            return f"is worse than the default in {join_words(worse)} and better in nothing, so keep that"
        return "does not differ from the default beyond the noise, so keep that"

    def _limits(self) -> str:
        if not self.on_limits.limits:
            return ""
        broken = self.on_limits.default_breaks
        apart = f"; the default {breaks(broken)}, so the two are not comparable" if broken else ""
        return f"{apart}; {self.on_limits.limits_text(f'trial {self.trial}')}"


def point_verdict(
    runs: Sequence[Run], standings: Standings, metrics: Sequence[Metric], point: TrialRecord, confidence: float
) -> PointVerdict | None:
    """Return the verdict on a point from the fresh runs so far; None if there is no default or the point is it."""
    default = standings.baseline
    if default is None or default.number == point.number:
        return None
    series, sides = Series.verdict(point.number), (Side.of(default, "default"), Side.of(point, f"trial {point.number}"))
    table = RoundTable.of(sides, (run for run in runs if run.series == series), metrics[0])
    tables = [replace(table, metric=one) for one in metrics]
    compared = tuple(MetricPairs(one.metric, tuple(one.pairs(0, 1)), one.unknown(0, 1)) for one in tables)
    failures = tuple(table.named_failures((1, 0)))
    unreliable = not (table.is_reliable(0) and table.is_reliable(1))
    limits = limits_in_pairs(runs, standings, series, point.number)
    pairs = max(len(of_metric.pairs) for of_metric in compared)
    return PointVerdict(point.number, confidence, pairs, compared, failures, unreliable, limits)


def confirmed_points(
    runs: Sequence[Run], standings: Standings, metrics: Sequence[Metric], points: Iterable[int], confidence: float
) -> tuple[PointVerdict, ...]:
    """Return the verdicts on those `points`, given as trial numbers, that were compared with the default."""
    compared = {str(run.series) for run in runs}
    wanted = (standings.trials[number] for number in points if str(Series.verdict(number)) in compared)
    verdicts = (point_verdict(runs, standings, metrics, trial, confidence) for trial in wanted)
    return tuple(verdict for verdict in verdicts if verdict is not None)


def _as_json(compared: MetricPairs, confidence: float) -> dict[str, Any]:
    middle, low, high = compared.interval(confidence)
    kind = "ratio" if compared.has_ratio else "difference"
    way = compared.direction(confidence)
    return {"kind": kind, "value": middle, "low": low, "high": high, "better": way > 0, "worse": way < 0}
