"""A suite as it stands: the one figure of its studies, and which of them have no part in it, and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.formatting import listed
from autotune.records.limit import breaks
from autotune.records.study import REPLAY_NOTICE
from autotune.results.summary import Summary
from autotune.statistics.geometric_mean import geometric_mean
from autotune.statistics.ratio_words import Interval
from autotune.statistics.signed_rank import least_pairs
from autotune.statistics.verdict import Verdict, ratio_interval
from autotune.studyfile import VerdictSection

_OF_THE_DEFAULT: Interval = (1.0, 1.0, 1.0)
# The default, and what could have been better.
_LEAST_TRIED = 2


@dataclass(frozen=True)
class SuiteMember:
    """A study of a suite, by its name in storage; `summary` is None where nothing is stored of it.

    The `reference` is a value of its metric, in its unit. `why` says why the study could not be tuned this time, in one
    line; it is empty where that worked.
    """

    study: str
    weight: float = 1.0
    reference: float | None = None
    summary: Summary | None = None
    why: str = ""

    @property
    def confidence(self) -> float:
        """The confidence of its verdict, or of the one that it would have."""
        if self.summary is None:
            return VerdictSection().confidence
        verdict = self.summary.present_verdict
        return self.summary.study.verdict.confidence if verdict is None else verdict.confidence

    @property
    def obstacle(self) -> str:
        """Why its speed-up is not in the mean; empty if it is."""
        summary = self.summary
        if summary is None:
            return self.why or "not tuned"
        if summary.nearest is not None:
            return "no configuration keeps the limits"
        if summary.on_limits.default_breaks:
            return f"the default {breaks(summary.on_limits.default_breaks)}"
        verdict = summary.present_verdict
        if verdict is not None:
            return "" if verdict.known else "winner and default could not be compared"
        return self._why_no_verdict(summary)

    def _why_no_verdict(self, summary: Summary) -> str:
        """Say why there is no verdict; empty where it needs none, since nothing looked better than the default."""
        if self.why:
            return self.why
        if summary.standings.baseline is None:
            return "the default configuration failed"
        if summary.tried < _LEAST_TRIED:
            return "nothing but the default was tried"
        return "" if self._keeps_default else "not confirmed yet"

    @property
    def _keeps_default(self) -> bool:
        """Whether the default is what to use: nothing looked better, or the winner turned out to be slower."""
        best = None if self.summary is None else self.summary.best
        baseline = None if self.summary is None else self.summary.standings.baseline
        return best is not None and baseline is not None and best.number == baseline.number

    def speed_up(self, confidence: float) -> Interval | None:
        """Return how many times better than the default is what to use; None where the mean does without it.

        The default itself is 1 times as good, and that is no estimate.
        """
        if self.summary is None or self.obstacle:
            return None
        verdict = self.summary.present_verdict
        if verdict is None or self._keeps_default:
            return _OF_THE_DEFAULT
        return ratio_interval(verdict.pairs, self.summary.standings.metric, confidence)

    def score(self, confidence: float) -> Interval | None:
        """Return how many times better than the reference is what to use; None where that is not known.

        It is that of fresh runs; where the default was best from the start, that of its runs while tuning.
        """
        if self.summary is None or self.reference is None or self.obstacle:
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
        """Say its verdict, or why it has none."""
        told = None if self.summary is None else self.summary.verdict_sentence()
        if self.why and not self.obstacle:
            return f"{self.why}; before that: {told}"
        return self.why or told or self.obstacle

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """Return the JSON-able form."""
        summary = self.summary
        return {
            "study": self.study,
            "weight": self.weight,
            "reference": self.reference,
            "replay": summary is not None and summary.definition.replay,
            "trials": 0 if summary is None else summary.finished,
            "speed_up": _ends(self.speed_up(confidence)),
            "score": _ends(self.score(confidence)),
            "not_in_the_mean": self.obstacle or None,
            "failure": self.why or None,
            "verdict": self.sentence,
        }


@dataclass(frozen=True)
class Suite:
    """Several studies that have one figure together."""

    name: str
    members: tuple[SuiteMember, ...]

    @property
    def confidence(self) -> float:
        """The confidence of the figure: the lowest of the verdicts in the mean, to which the others come down."""
        there = [member for member in self.members if not member.obstacle] or self.members
        return min(member.confidence for member in there)

    @property
    def figure(self) -> Interval | None:
        """The geometric mean of the members' speed-ups; None if no member has one."""
        return self._mean(lambda member: member.speed_up(self.confidence))

    @property
    def score(self) -> Interval | None:
        """The geometric mean of what the members are worth beside their references; None if that is known of none."""
        return self._mean(lambda member: member.score(self.confidence))

    def _mean(self, of: Callable[[SuiteMember], Interval | None]) -> Interval | None:
        found = [(ratio, member.weight) for member in self.members if (ratio := of(member)) is not None]
        return geometric_mean([ratio for ratio, _ in found], [weight for _, weight in found]) if found else None

    def sentence(self) -> str:
        """Say the figure, of how many studies it is, and which have no part in it."""
        absent = [member for member in self.members if member.obstacle]
        why = "".join(f"; {member.study} is not in the mean: {member.obstacle}" for member in absent)
        figure = self.figure
        if figure is None:
            return f"No study of the suite has a figure{why}"
        ratio, low, high = figure
        count = len(self.members) - len(absent)
        of = f"{count} of {len(self.members)} studies" if absent else f"{count} {'study' if count == 1 else 'studies'}"
        kind = "weighted geometric mean" if len({member.weight for member in self.members}) > 1 else "geometric mean"
        pace = "good" if any(_is_quality(member) for member in self.members) else "fast"
        interval = f"{self.confidence:.0%} interval {low:.3f} to {high:.3f}, {kind} of {of}"
        doubt = "" if low > 1.0 or high < 1.0 else "No gain: " if low == high else "No significant gain: "
        return f"{doubt}{ratio:.3f} times as {pace} as the default configurations ({interval}){why}"

    def score_sentence(self) -> str | None:
        """Say the score beside the references; None where no member has one."""
        wanted = [member for member in self.members if member.reference is not None]
        if not wanted:
            return None
        absent = [member.study for member in wanted if member.score(self.confidence) is None]
        why = f"; without {listed(absent)}: not known, or too few runs" if absent else ""
        score = self.score
        if score is None:
            return f"No score against the references{why}"
        ratio, low, high = score
        interval = f"{self.confidence:.0%} interval {low:.4g} to {high:.4g}, {len(wanted) - len(absent)} of "
        return f"{ratio:.4g} times the references ({interval}{len(self.members)} studies){why}"

    def text(self) -> str:
        """Describe the suite; a replay is never passed off as runs."""
        replayed = [member.study for member in self.members if member.summary and member.summary.definition.replay]
        score = self.score_sentence()
        lines = [f"{listed(replayed)}: {REPLAY_NOTICE}"] if replayed else []
        lines += [f"suite {self.name}: {self.sentence()}"]
        lines += [] if score is None else [f"score: {score}"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "suite": self.name,
            "confidence": self.confidence,
            "speed_up": _ends(self.figure),
            "score": _ends(self.score),
            "sentence": self.sentence(),
            "members": [member.to_dict(self.confidence) for member in self.members],
        }


def _is_quality(member: SuiteMember) -> bool:
    return member.summary is not None and not member.obstacle and member.summary.standings.metric.is_quality


def _ends(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else dict(zip(("ratio", "low", "high"), interval, strict=True))
