"""Prediction: what a model says of configurations where they have not run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from autotune.performance.measured import Setting
from spaces import Configuration

CONFIDENCE = 0.9
"""The share of cases in which an interval is to hold what it is about."""


@dataclass(frozen=True)
class Interval:
    """A predicted value, and the ends of an interval that holds the true one with `CONFIDENCE`."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Proposal:
    """A configuration to try, with its predicted value and speed-up over the default; None where nobody can say."""

    configuration: Configuration
    value: Interval | None = None
    speed_up: Interval | None = None


@dataclass(frozen=True)
class Prediction:
    """The best configurations of a setting as a model sees them, the best first, beside the default configuration.

    `grounds` say what the model was fitted on, `doubts` in which respect the setting lies outside of that.
    """

    setting: Setting
    default: Configuration
    default_value: Interval | None
    proposals: tuple[Proposal, ...]
    grounds: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def promising(self) -> bool:
        """Whether the first proposal beats the default by more than the model's uncertainty."""
        first = self.proposals[0].speed_up if self.proposals else None
        return first is not None and first.low > 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        found: Mapping[str, Any] = asdict(self)
        return {
            **found,
            "setting": self.setting.to_dict(),
            "default": dict(self.default),
            "proposals": [
                {**asdict(proposal), "configuration": dict(proposal.configuration)} for proposal in self.proposals
            ],
            "confidence": CONFIDENCE,
            "promising": self.promising,
        }
