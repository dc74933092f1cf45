"""Predictions: the configurations that a model proposes for a setting, and estimates of their values."""

from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

from autotune.formatting import quantity
from autotune.records.measurement import Setting
from spaces import Configuration
from spaces.expressions.quantities import FloatArray

CONFIDENCE = 0.9
"""The share of cases in which an interval contains the true value, given enough cases to calibrate it."""

WIDEST = 100.0
"""An interval whose ends are farther apart than this factor is useless to a user."""

# The ends of a narrower interval would look equal to its value with three digits.
_NARROW = 1.05


@dataclass(frozen=True)
class Interval:
    """A predicted value, and the ends of an interval with the true value in a share `confidence` of cases."""

    value: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    @property
    def says_something(self) -> bool:
        """Whether the ends are near enough to each other to be useful."""
        return self.is_within(WIDEST)

    def is_within(self, factor: float) -> bool:
        """Whether the ends are at most this factor apart."""
        return self.high <= factor * self.low

    def __str__(self) -> str:
        digits = 3 if self.high > _NARROW * self.low else 4
        return f"{self.value:.4g} ({self.low:.{digits}g} to {self.high:.{digits}g}, {self.confidence:.0%})"


@dataclass(frozen=True)
class Proposal:
    """A configuration to try, with its predicted value and speed-up over the default; None if unknown.

    With `measured_runs`, it was measured in the setting itself. If the default was measured there, too, the speed-up
    is that of a verdict (`by_verdict`), or else only the ratio of the two measurements.
    """

    configuration: Configuration
    value: Interval | None = None
    speed_up: Interval | None = None
    measured_runs: int = 0
    by_verdict: bool = False


@dataclass(frozen=True)
class Prediction:
    """The configurations that a model predicts to be best in a setting, and the default configuration.

    Attributes:
        setting: The setting.
        default: The default configuration.
        default_value: Its value, predicted or measured; None if unknown.
        proposals: The best configurations, the best first.
        promising: Whether the first proposal beats the default by more than the model's uncertainty, or by a verdict
            if both were measured.
        grounds: Sentences on what the model was fitted on.
        doubts: Sentences on how the setting lies outside the measurements.
        reasons: The options in which the first proposal differs from the default, the most important first, with how
            many times better it is than with that option as in the default.
        layout: How the first proposal divides the problem.
        default_runs: The number of runs of the default in the setting itself.
        widest: The factor between the ends of an interval beyond which a predicted value counts as not known.
    """

    setting: Setting
    default: Configuration
    default_value: Interval | None
    proposals: tuple[Proposal, ...]
    promising: bool = False
    grounds: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    reasons: tuple[tuple[str, float], ...] = ()
    default_runs: int = 0
    layout: tuple[str, ...] = ()
    widest: float = WIDEST

    def is_unconfirmed(self, proposal: Proposal) -> bool:
        """Whether a speed-up only compares two measurements, one of them the best of many, without a verdict."""
        return bool(proposal.measured_runs and self.default_runs) and not proposal.by_verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "setting": self.setting.to_dict(),
            "default": {
                "configuration": dict(self.default),
                "value": _interval(self.default_value),
                "measured_runs": self.default_runs,
            },
            "proposals": [
                {
                    "configuration": dict(proposal.configuration),
                    "value": _interval(proposal.value),
                    "speed_up": _interval(proposal.speed_up),
                    "measured_runs": proposal.measured_runs,
                    "by_verdict": proposal.by_verdict,
                }
                for proposal in self.proposals
            ],
            "promising": self.promising,
            "grounds": list(self.grounds),
            "doubts": list(self.doubts),
            "reasons": dict(self.reasons),
            "layout": list(self.layout),
        }


def without_vague_values(prediction: Prediction) -> Prediction:
    """Return a prediction without predicted values whose intervals are too wide; their order stays.

    If it rested on values that span orders of magnitude, it has no proposals: no configuration is then sure to beat the
    default.
    """
    values = [(prediction.default_value, prediction.default_runs)]
    values += [(proposal.value, proposal.measured_runs) for proposal in prediction.proposals]
    vague = [value for value, runs in values if value is not None and _is_vague(value, runs, prediction.widest)]
    if not vague:
        return prediction
    metric, widest = prediction.setting.metric, max(vague, key=lambda value: value.high / value.low)
    low, high = quantity(widest.low, metric), quantity(widest.high, metric)
    doubt = f"{metric.name} is not known here: anything from {low} to {high} is possible"
    first = prediction.proposals[0] if prediction.proposals else None
    says_nothing = first is not None and first.value is not None and not first.value.says_something
    if first is not None and says_nothing and (first.speed_up is None or first.speed_up.low <= 1.0):
        doubt += (
            ", and no configuration is sure to beat the default, so this is no prediction; measure a few "
            "configurations there, or `autotune storage import` measurements of a similar machine and workload"
        )
        prediction = replace(prediction, proposals=(), promising=False, reasons=(), layout=())
    elif first is not None:
        doubt += "; of configurations without a value, only the order is predicted"
    default = prediction.default_value
    if default is not None and _is_vague(default, prediction.default_runs, prediction.widest):
        default = None
    proposals = tuple(_without_vague_value(proposal, prediction.widest) for proposal in prediction.proposals)
    return replace(prediction, default_value=default, proposals=proposals, doubts=(doubt, *prediction.doubts))


def _is_vague(value: Interval, runs: int, widest: float) -> bool:
    """Return whether a value that was not measured in any `runs` has an interval too wide to be useful."""
    return not runs and not value.is_within(widest)


def _without_vague_value(proposal: Proposal, widest: float) -> Proposal:
    value, gain = proposal.value, proposal.speed_up
    return replace(
        proposal,
        value=None if value is not None and _is_vague(value, proposal.measured_runs, widest) else value,
        speed_up=gain if gain is not None and gain.says_something else None,
    )


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else asdict(interval)


def deviations_within(share: float) -> float:
    """Return the number of standard deviations around its mean that contain a `share` of a normal distribution."""
    return NormalDist().inv_cdf((1.0 + share) / 2.0)


@dataclass(frozen=True)
class Estimate:
    """Logarithms of values, (n,), and half-widths, (n,), of intervals that contain them in a `share` of cases.

    If too few machines, builds or workloads are known to promise 90 %, the width is the one that covers all of them.
    Values whose ends are more than a factor `widest` apart count as not known.
    """

    mean: FloatArray
    half: FloatArray
    share: float = CONFIDENCE
    widest: float = WIDEST

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations, (n,), of normal distributions with the `share` inside the intervals."""
        return self.half / deviations_within(self.share)
