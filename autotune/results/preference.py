"""Preference: the point of a front that a user's weights of the metrics choose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from autotune.comparison.findings import changes
from autotune.errors import AutotuneError
from autotune.formatting import configuration_text, quantity
from autotune.results.pareto import ParetoFront, ParetoPoint, points_of
from autotune.statistics.chebyshev import chebyshev
from autotune.statistics.standings import Standings
from autotune.studyfile import StudyFile
from objectives.base import Metric
from spaces.parameters.errors import did_you_mean


@dataclass(frozen=True)
class Preference:
    """The point of a front that weights choose.

    Attributes:
        metrics: The metrics of the front.
        weights: Their weights in the same order; they add up to 1.
        point: The chosen point.
    """

    metrics: tuple[Metric, ...]
    weights: tuple[float, ...]
    point: ParetoPoint

    @classmethod
    def of(cls, front: ParetoFront, weights: tuple[float, ...]) -> "Preference":
        """Choose the point with the least augmented Chebyshev sum, with metrics scaled from 0 to 1 over the front.

        Of equal points, choose the best with equal weights.
        """
        costs = np.array([front.costs(point) for point in front.points])
        order = np.lexsort((chebyshev(costs, np.ones(len(weights))), chebyshev(costs, np.array(weights))))
        return cls(front.metrics, weights, front.points[order[0]])

    @classmethod
    def of_study(cls, front: ParetoFront, study: StudyFile) -> "Preference | None":
        """Choose the point for the weights of a study file; return None without weights or points."""
        weights = {} if study.tradeoff is None else study.tradeoff.weights
        if not front.points or not any(weights.values()):
            return None
        return cls.of(front, shares(weights, [metric.name for metric in front.metrics]))

    def sentence(self) -> str:
        """Return a sentence with the point, its weights and its values."""
        values = f"{self._values(self.point)} (medians of tuning)"
        return f"trial {self.point.trial} of the front, for {self.weights_text}: {values}"

    def text(self, standings: Standings) -> str:
        """Return the point and the default in words."""
        configuration, default = standings.trials[self.point.trial].configuration, standings.baseline
        lines = [
            f"weights: {self._weights}",
            f"configuration: {configuration_text(configuration)}",
            f"trial {self.point.trial}: {self._values(self.point)}",
        ]
        for point in points_of([] if default is None else [default], self.metrics):
            if default is not None and default.number != self.point.trial:
                lines.append(f"default: {configuration_text(default.configuration)}  {self._values(point)}")
                lines.append(f"changed: {', '.join(changes(configuration, default.configuration))}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, float]:
        """Return the weights by the metrics' names."""
        return {metric.name: weight for metric, weight in zip(self.metrics, self.weights, strict=True)}

    @property
    def weights_text(self) -> str:
        """The weights in words."""
        return f"the weights {self._weights}"

    @property
    def _weights(self) -> str:
        return ", ".join(f"{name} {weight:.3g}" for name, weight in self.to_dict().items())

    def _values(self, point: ParetoPoint) -> str:
        pairs = zip(self.metrics, point.values, strict=True)
        return ", ".join(f"{metric.name} {quantity(value, metric)}" for metric, value in pairs)


def parse_weights(text: str, front: ParetoFront) -> tuple[float, ...]:
    """Return the weights in METRIC=WEIGHT,..., scaled to add up to 1; a metric that is not named has weight 0.

    Raises:
        AutotuneError: A metric is unknown or given twice, a weight is not a number from 0 up, or all weights are 0.
    """
    known, weights = [metric.name for metric in front.metrics], dict[str, float]()
    for part in text.split(","):
        name, equals, number = (word.strip() for word in part.partition("="))
        if not equals:
            msg = f"--weights takes METRIC=WEIGHT,..., got {part!r}: write --weights {front.equal_weights}"
            raise AutotuneError(msg)
        if name not in known:
            msg = f"{name!r} is not a metric of this trade-off{did_you_mean(name, known)}; it has {', '.join(known)}"
            raise AutotuneError(msg)
        if name in weights:
            msg = f"--weights states {name} twice; state it once"
            raise AutotuneError(msg)
        weights[name] = _number(name, number)
    if not any(weights.values()):
        msg = f"all weights are 0 in --weights {text}: give at least one metric a weight above 0"
        raise AutotuneError(msg)
    return shares(weights, known)


def shares(weights: Mapping[str, float], names: Sequence[str]) -> tuple[float, ...]:
    """Return the weights in the order of `names`, scaled to add up to 1; a missing weight is 0."""
    most = max(weights.values())
    parts = [weights.get(name, 0.0) / most for name in names]
    return tuple(part / sum(parts) for part in parts)


def _number(name: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not isfinite(weight) or weight < 0.0:
        msg = (
            f"the weight of {name} must be a number of at least 0, got {text!r}; the direction of a metric comes from "
            "its declaration"
        )
        raise AutotuneError(msg)
    return weight
