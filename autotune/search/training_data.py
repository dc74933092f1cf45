"""Evidence: what is known of the trials of a study, as numbers that a sampler can learn from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection

from autotune.storage.observation import Observation


@dataclass(frozen=True)
class TrainingData:
    """Observations as arrays, all (n,): values to minimise, +inf for a failed trial, NaN for a pending one."""

    values: NDArray[np.float64]
    runs: NDArray[np.float64]
    censored: NDArray[np.bool_]

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which trials have a value or a bound."""
        return np.isfinite(self.values)

    @property
    def valued(self) -> NDArray[np.bool_]:
        """Which trials have a value."""
        return self.measured & ~self.censored

    @property
    def filled(self) -> NDArray[np.float64]:
        """The values, a failed trial's a standard deviation worse than the worst: else a model is curious about it."""
        known = self.values[self.measured]
        return np.where(np.isposinf(self.values), known.max() + known.std(), self.values)

    @property
    def pending(self) -> NDArray[np.bool_]:
        """Which trials are running."""
        return np.isnan(self.values)

    def beyond(self, expected: NDArray[np.float64]) -> "TrainingData":
        """Return the evidence of how much greater the values are than was `expected`, (n,)."""
        return replace(self, values=self.values - expected)


def evidence_of(
    observations: Sequence[Observation], direction: StudyDirection, rng: np.random.Generator
) -> TrainingData:
    """Return observations as arrays.

    Times and rates are compared by ratio, so positive values enter the model by their logarithm. Of a trade-off both
    metrics enter, with weights that change from proposal to proposal.
    """
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    values = np.array([_value(observation) for observation in observations])
    measured = np.isfinite(values)
    if (values[measured] > 0).all():
        values[measured] = np.log(values[measured])
    values[measured] *= sign
    second = np.array([np.nan if observation.second is None else observation.second for observation in observations])
    both = measured & np.isfinite(second)
    if both.any():
        values[both] = _weighted(values[both], second[both], float(rng.uniform()))
        # A trial with only one of the two values cannot be weighed: like a failed one, it is no candidate.
        values[measured & ~both] = np.inf
    return TrainingData(
        values,
        np.array([float(observation.runs) for observation in observations]),
        np.array([observation.bound is not None for observation in observations]) & np.isfinite(values),
    )


def are_ratios(observations: Sequence[Observation]) -> bool:
    """Whether these enter a model by their logarithms: all are positive, and there is no second metric."""
    known = [_value(observation) for observation in observations]
    return not any(value <= 0.0 for value in known) and all(one.second is None for one in observations)


def _weighted(first: NDArray[np.float64], second: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Return one value for two, all (n,): the augmented Chebyshev sum of ParEGO (Knowles 2006)."""
    scaled = [(values - values.min()) / (float(np.ptp(values)) or 1.0) for values in (first, second)]
    parts = weight * scaled[0], (1.0 - weight) * scaled[1]
    combined: NDArray[np.float64] = np.maximum(*parts) + 0.05 * (parts[0] + parts[1])
    return combined


def _value(observation: Observation) -> float:
    if observation.pending:
        return np.nan
    known = observation.bound if observation.value is None else observation.value
    return np.inf if known is None else known
