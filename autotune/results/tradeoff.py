"""The state of a trade-off: its front, the point that weights choose, and the points compared in fresh runs."""

from dataclasses import dataclass
from typing import Any

from autotune.comparison.point_verdict import PointVerdict
from autotune.results.pareto import ParetoFront
from autotune.results.preference import Preference
from autotune.statistics.standings import Standings
from autotune.studyfile import VerdictSection


@dataclass(frozen=True)
class Tradeoff:
    """The state of a trade-off.

    Attributes:
        study: The name of the study.
        front: The front.
        standings: The trials of the study.
        preference: The point that weights chose; None without weights.
        confirmed: The verdicts on points that were compared with the default.
    """

    study: str
    front: ParetoFront
    standings: Standings
    preference: Preference | None = None
    confirmed: tuple[PointVerdict, ...] = ()

    @property
    def verdict(self) -> PointVerdict | None:
        """The verdict on the preferred point; None without a verdict or a preferred point."""
        preferred = self.preference.point.trial if self.preference is not None else None
        return next((verdict for verdict in self.confirmed if verdict.trial == preferred), None)

    def is_judged(self, settings: VerdictSection) -> bool:
        """Whether the preferred point needs no more pairs; also true without a preferred point."""
        if self.verdict is not None:
            return not self.verdict.missing(settings)
        return self.preference is None or self.sentence() is not None

    def sentence(self) -> str | None:
        """Return the verdict on the preferred point in one sentence; None without a verdict."""
        preference, baseline = self.preference, self.standings.baseline
        if preference is None:
            return None
        if baseline is None:
            return "The default configuration failed: there is nothing to compare a point of the front with."
        if preference.point.trial == baseline.number:
            return f"For {preference.weights_text} the default is the point of the front: there is nothing to change."
        verdict = self.verdict
        return None if verdict is None else f"For {preference.weights_text}, {verdict.sentence()}"

    def text(self) -> str:
        """Return the preferred point, or without one the front, and the verdicts in words."""
        shown = self.front if self.preference is None else self.preference
        return "\n".join([shown.text(self.standings), *self._verdict_lines()])

    def _verdict_lines(self) -> list[str]:
        if self.preference is not None:
            weights = ",".join(f"{name}={weight:.3g}" for name, weight in self.preference.to_dict().items())
            return [f"verdict: {self.sentence() or f'not confirmed yet; {self._confirms(weights)} confirms it'}"]
        if self.confirmed:
            return [f"confirmed: {verdict.sentence()}" for verdict in self.confirmed]
        if not self.front.points:
            return []
        return [f"verdict: none, since no weights say which point matters; {self._confirms(self.front.equal_weights)}"]

    def _confirms(self, weights: str) -> str:
        return f"`autotune confirm {self.study} --weights {weights}`"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "weights": None if self.preference is None else self.preference.to_dict(),
            "trial": None if self.preference is None else self.preference.point.trial,
            "sentence": self.sentence(),
            "confirmed": [verdict.to_dict() for verdict in self.confirmed],
        }
