"""Compare several stored studies: the mean of their speed-ups, and their score against reference values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.errors import StudyFileError
from autotune.formatting import join_words
from autotune.records.limit import breaks
from autotune.results.summary import Summary
from autotune.statistics.geometric_mean import geometric_mean
from autotune.statistics.ratio_words import Interval
from autotune.statistics.signed_rank import least_pairs
from autotune.statistics.verdict import Verdict, ratio_interval

_OF_THE_DEFAULT: Interval = (1.0, 1.0, 1.0)
# The default and at least one other configuration.
_LEAST_TRIED = 2


@dataclass(frozen=True)
class StudyResult:
    """The result of one of several studies; `reference` is a value of its metric, in its unit."""

    summary: Summary
    reference: float | None = None

    @property
    def study(self) -> str:
        """The study's name."""
        return self.summary.name

    @property
    def confidence(self) -> float:
        """The confidence of its verdict; without a verdict, that of its study file."""
        verdict = self.summary.present_verdict
        return self.summary.study.verdict.confidence if verdict is None else verdict.confidence

    @property
    def obstacle(self) -> str:
        """Why its speed-up is not in the mean; empty if it is."""
        summary = self.summary
        if not summary.study.has_one_winner:
            return f"it looks for a {summary.study.looks_for} and has no single winner"
        if summary.nearest is not None:
            return "no configuration keeps the limits"
        if summary.on_limits.default_breaks:
            return f"the default {breaks(summary.on_limits.default_breaks)}"
        verdict = summary.present_verdict
        if verdict is not None:
            return "" if verdict.known else "winner and default could not be compared"
        return self._why_no_verdict

    @property
    def _why_no_verdict(self) -> str:
        """Why there is no verdict; empty if none is needed, because no trial looked better than the default."""
        summary = self.summary
        if summary.standings.baseline is None:
            return f"the default configuration {summary.standings.missing_baseline}"
        if summary.tried < _LEAST_TRIED:
            return "only the default was tried"
        return "" if self._keeps_default else "not confirmed yet"

    @property
    def _keeps_default(self) -> bool:
        """Whether to use the default: no trial looked better, or the winner turned out to be slower."""
        best, baseline = self.summary.best, self.summary.standings.baseline
        return best is not None and baseline is not None and best.number == baseline.number

    def speed_up(self, confidence: float) -> Interval | None:
        """Return how many times better the configuration to use is than the default; None if there is an obstacle.

        If it is the default itself, the speed-up is exactly 1, without an estimate.
        """
        if self.obstacle:
            return None
        verdict = self.summary.present_verdict
        if verdict is None or self._keeps_default:
            return _OF_THE_DEFAULT
        return replace(verdict, confidence=confidence).interval(self.summary.standings.metric)

    def score(self, confidence: float) -> Interval | None:
        """Return how many times better the configuration to use is than the reference; None if it is not known.

        The value comes from the fresh runs; if no trial looked better than the default, from its runs while tuning.
        """
        if self.reference is None or self.obstacle:
            return None
        values = self._values(self.summary.present_verdict, self.summary.standings.tuned_default)
        if len(values) < least_pairs(confidence):
            return None
        pairs = [(self.reference, value) for value in values]
        return ratio_interval(pairs, self.summary.standings.metric, confidence)

    def _values(self, verdict: Verdict | None, tuned: Sequence[float]) -> Sequence[float]:
        if verdict is None:
            return tuned
        return [pair[0 if self._keeps_default else 1] for pair in verdict.pairs]

    @property
    def sentence(self) -> str:
        """The verdict, or why there is none."""
        return self.summary.verdict_sentence() or self.obstacle

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """Return the JSON-able form."""
        summary = self.summary
        return {
            "study": self.study,
            "reference": self.reference,
            "replay": summary.definition.replay,
            "trials": summary.finished,
            "speed_up": _ends(self.speed_up(confidence)),
            "score": _ends(self.score(confidence)),
            "not_in_the_mean": self.obstacle or None,
            "verdict": self.sentence,
        }


@dataclass(frozen=True)
class SeveralStudies:
    """Studies with the geometric mean of their speed-ups."""

    results: tuple[StudyResult, ...]

    @classmethod
    def of(cls, summaries: Sequence[Summary], references: Mapping[str, Mapping[str, float]]) -> "SeveralStudies":
        """Return the studies; `references` has values by the names of study and metric.

        Raises:
            StudyFileError: A study has references, but none of the metric that it optimises.
        """
        return cls(tuple(StudyResult(one, _reference(one, references.get(one.name, {}))) for one in summaries))

    @property
    def confidence(self) -> float:
        """The confidence of all intervals: the lowest of the verdicts in the mean."""
        there = [one for one in self.results if not one.obstacle] or self.results
        return min(one.confidence for one in there)

    @property
    def speed_up(self) -> Interval | None:
        """The geometric mean of the speed-ups; None if no study has one."""
        return self._mean(lambda one: one.speed_up(self.confidence))

    @property
    def score(self) -> Interval | None:
        """The geometric mean of the ratios to the references; None if no study has one."""
        return self._mean(lambda one: one.score(self.confidence))

    def _mean(self, of: Callable[[StudyResult], Interval | None]) -> Interval | None:
        found = [ratio for one in self.results if (ratio := of(one)) is not None]
        return geometric_mean(found) if found else None

    def sentence(self) -> str:
        """Return the mean in words, with the number of its studies and those that are left out."""
        absent = [one for one in self.results if one.obstacle]
        why = "".join(f"; {one.study} is not in the mean: {one.obstacle}" for one in absent)
        mean = self.speed_up
        if mean is None:
            return f"No study has a speed-up{why}"
        ratio, low, high = mean
        count = len(self.results) - len(absent)
        of = f"{count} of {len(self.results)} studies" if absent else f"{count} {'study' if count == 1 else 'studies'}"
        pace = "good" if any(_is_quality(one) for one in self.results) else "fast"
        interval = f"{self.confidence:.0%} interval {low:.3f} to {high:.3f}, geometric mean of {of}"
        doubt = "" if low > 1.0 or high < 1.0 else "No gain: " if low == high else "No significant gain: "
        return f"{doubt}{ratio:.3f} times as {pace} as the default configurations ({interval}){why}"

    def score_sentence(self) -> str | None:
        """Return the score against the references in words; None if no study has a reference."""
        wanted = [one for one in self.results if one.reference is not None]
        if not wanted:
            return None
        absent = [one.study for one in wanted if one.score(self.confidence) is None]
        why = f"; without {join_words(absent)}: not known, or too few runs" if absent else ""
        score = self.score
        if score is None:
            return f"No score against the references{why}"
        ratio, low, high = score
        interval = f"{self.confidence:.0%} interval {low:.4g} to {high:.4g}, {len(wanted) - len(absent)} of "
        return f"{ratio:.4g} times the references ({interval}{len(self.results)} studies){why}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "confidence": self.confidence,
            "speed_up": _ends(self.speed_up),
            "score": _ends(self.score),
            "sentence": self.sentence(),
            "studies": [one.to_dict(self.confidence) for one in self.results],
        }


def _reference(summary: Summary, values: Mapping[str, float]) -> float | None:
    metric = summary.standings.metric.name
    if values and metric not in values:
        msg = (
            f"study {summary.name!r} optimises {metric}, but its references are values of {join_words(list(values))}: "
            f"tune it again with --set target={next(iter(values))} and another --name or --storage, or remove the "
            "reference"
        )
        raise StudyFileError(msg)
    return values.get(metric)


def _is_quality(result: StudyResult) -> bool:
    return not result.obstacle and result.summary.standings.metric.is_quality


def _ends(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else dict(zip(("ratio", "low", "high"), interval, strict=True))
