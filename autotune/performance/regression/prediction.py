"""Prediction: the configurations that a model proposes for a setting where they have not run."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from autotune.records.measurement import Setting
from spaces import Configuration

CONFIDENCE = 0.9
"""The share of cases in which an interval holds the true value, where there are enough cases to calibrate it."""

# An interval whose ends are farther apart than this factor says nothing that a user did not know.
_WIDEST = 100.0


@dataclass(frozen=True)
class Interval:
    """A predicted value, and the ends of an interval that holds the true one in a share `confidence` of cases."""

    value: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    @property
    def says_something(self) -> bool:
        """Whether its ends are near enough to each other to be of use."""
        return self.high <= _WIDEST * self.low

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.3g} to {self.high:.3g}, {self.confidence:.0%})"


@dataclass(frozen=True)
class Proposal:
    """A configuration to try, with its predicted value and speed-up over the default; None where unknown.

    It was measured in the setting itself if it has `measured_runs`. Where the default was, too, its speed-up is what
    a verdict says (`by_verdict`); or it only looks so.
    """

    configuration: Configuration
    value: Interval | None = None
    speed_up: Interval | None = None
    measured_runs: int = 0
    by_verdict: bool = False


@dataclass(frozen=True)
class Prediction:
    """The best configurations of a setting as a model sees them, the best first, beside the default configuration.

    It is `promising` if the first proposal beats the default by more than the model's uncertainty; where both were
    measured, if a verdict says so. `grounds` say what the model was fitted on, `doubts` in which respect the setting
    lies outside of that, `reasons` what makes the first proposal better than the default: features with the factors of
    speed that they are worth, the largest first; `layout` how the first proposal divides the problem.
    The default was measured in the setting itself if it has `default_runs`.
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
    """Return a prediction without the values that span orders of magnitude.

    Where these were all that it rested on, nothing is proposed: no configuration is then sure to beat the default.
    """
    values = [prediction.default_value, *(proposal.value for proposal in prediction.proposals)]
    vague = [value for value in values if value is not None and not value.says_something]
    if not vague:
        return prediction
    metric, widest = prediction.setting.metric, max(vague, key=lambda value: value.high / value.low)
    unit = f" {metric.unit}" if metric.unit else ""
    doubt = f"{metric.name} is not known here: anything from {widest.low:.3g} to {widest.high:.3g}{unit} is possible"
    proposals = tuple(
        replace(proposal, value=_useful(proposal.value), speed_up=_useful(proposal.speed_up))
        for proposal in prediction.proposals
    )
    first = proposals[0] if proposals else None
    if first is None or first.value is not None or (first.speed_up is not None and first.speed_up.low > 1.0):
        kept = proposals
    else:
        kept = ()
        doubt += (
            ", and no configuration is sure to beat the default, so this is no prediction; measure a few "
            "configurations there, or `autotune storage import` measurements of a similar machine and workload"
        )
    return replace(
        prediction,
        default_value=_useful(prediction.default_value),
        proposals=kept,
        promising=prediction.promising and bool(kept),
        doubts=(doubt, *prediction.doubts),
        reasons=prediction.reasons if kept else (),
        layout=prediction.layout if kept else (),
    )


def _useful(interval: Interval | None) -> Interval | None:
    return interval if interval is not None and interval.says_something else None


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else asdict(interval)
