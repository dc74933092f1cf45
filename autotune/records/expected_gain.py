"""The stored result of a forecast, apart from its model, so that reading a study needs no model."""

from dataclasses import dataclass

AHEAD = 20
"""The number of trials that a forecast looks ahead."""

PROBABILITY = 0.9


@dataclass(frozen=True)
class ExpectedGain:
    """A forecast: with `probability`, the next `trials` gain at most `gain` (0.01: 1.01 times as good)."""

    trials: int
    gain: float
    probability: float = PROBABILITY
