"""Prediction: the configurations that a model proposes for a setting where they have not run."""

from dataclasses import asdict, dataclass
from typing import Any

from autotune.records.measurement import Setting
from spaces import Configuration

CONFIDENCE = 0.9
"""The share of cases in which an interval holds the true value, where there are enough cases to calibrate it."""


@dataclass(frozen=True)
class Interval:
    """A predicted value, and the ends of an interval that holds the true one in a share `confidence` of cases."""

    value: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.3g} to {self.high:.3g}, {self.confidence:.0%})"


@dataclass(frozen=True)
class Proposal:
    """A configuration to try, with its predicted value and speed-up over the default; None where unknown."""

    configuration: Configuration
    value: Interval | None = None
    speed_up: Interval | None = None


@dataclass(frozen=True)
class Prediction:
    """The best configurations of a setting as a model sees them, the best first, beside the default configuration.

    It is `promising` if the first proposal beats the default by more than the model's uncertainty. `grounds` say what
    the model was fitted on, `doubts` in which respect the setting lies outside of that, `reasons` what makes the
    first proposal better than the default: features with the factors of speed that they are worth, the largest first.
    """

    setting: Setting
    default: Configuration
    default_value: Interval | None
    proposals: tuple[Proposal, ...]
    promising: bool = False
    grounds: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    reasons: tuple[tuple[str, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "setting": self.setting.to_dict(),
            "default": {"configuration": dict(self.default), "value": _interval(self.default_value)},
            "proposals": [
                {
                    "configuration": dict(proposal.configuration),
                    "value": _interval(proposal.value),
                    "speed_up": _interval(proposal.speed_up),
                }
                for proposal in self.proposals
            ],
            "promising": self.promising,
            "grounds": list(self.grounds),
            "doubts": list(self.doubts),
            "reasons": dict(self.reasons),
        }


def _interval(interval: Interval | None) -> dict[str, float] | None:
    return None if interval is None else asdict(interval)
