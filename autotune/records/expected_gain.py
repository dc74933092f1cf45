"""What is stored of a look ahead, apart from the model: reading a study needs no model."""

from dataclasses import dataclass

AHEAD = 20
"""A forecast looks this number of trials ahead."""

PROBABILITY = 0.9


@dataclass(frozen=True)
class ExpectedGain:
    """The next `trials` gain at most `gain`, relatively (0.01: 1.01 times as good), with that `probability`."""

    trials: int
    gain: float
    probability: float = PROBABILITY
