"""Training data: the observations of a study's trials as arrays that a model can be fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection

from autotune.records.limit import Limits
from autotune.search.limit_models import LimitedValues, limited_values
from autotune.search.training_scores import training_scores
from autotune.statistics.chebyshev import chebyshev
from autotune.storage.observation import Observation


@dataclass(frozen=True)
class TrainingData:
    """Observations as arrays, all (n,).

    Attributes:
        values: The values to minimise; +inf for a failed trial, NaN for a running one.
        runs: The number of runs of each trial.
        censored: Whether a value is the bound of a capped trial.
        limited: The values of the metrics that have a limit.
        ranked: Whether the values are scores of trainings.
    """

    values: NDArray[np.float64]
    runs: NDArray[np.float64]
    censored: NDArray[np.bool_]
    limited: tuple[LimitedValues, ...] = ()
    ranked: bool = False

    @property
    def measured(self) -> NDArray[np.bool_]:
        """The trials that have a value or a bound."""
        return np.isfinite(self.values)

    @property
    def valued(self) -> NDArray[np.bool_]:
        """The trials that have a value."""
        return self.measured & ~self.censored

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """The trials that have a value and keep the limits."""
        kept = self.valued
        for one in self.limited:
            kept &= one.kept
        return kept

    @property
    def filled(self) -> NDArray[np.float64]:
        """The values, with failed trials a standard deviation worse than the worst, so that a model avoids them."""
        known = self.values[self.measured]
        return np.where(np.isposinf(self.values), known.max() + known.std(), self.values)

    @property
    def pending(self) -> NDArray[np.bool_]:
        """The trials that are running."""
        return np.isnan(self.values)

    def beyond(self, expected: NDArray[np.float64]) -> "TrainingData":
        """Return the data with the `expected` values, (n,), subtracted."""
        return replace(self, values=self.values - expected)


def training_data_of(
    observations: Sequence[Observation], direction: StudyDirection, rng: np.random.Generator, limits: Limits = ()
) -> TrainingData:
    """Return observations as arrays.

    Times and rates are compared by ratio, so positive values enter as logarithms. Trainings enter by their rank
    (`training_scores`) as soon as one is paused. The metrics of a trade-off are combined into one, with weights that
    change from proposal to proposal (ParEGO: Knowles 2006).
    """
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    values = np.array([_value(observation) for observation in observations])
    measured = np.isfinite(values)
    ranked = _has_paused(observations)
    if ranked:
        known = [observation for observation, there in zip(observations, measured, strict=True) if there]
        values[measured] = training_scores(known, sign)
    else:
        if (values[measured] > 0).all():
            values[measured] = np.log(values[measured])
        values[measured] *= sign
    others = _others(observations)
    whole = measured & np.isfinite(others).all(axis=1)
    if others.size and whole.any():
        costs = np.column_stack([values[whole], *map(_as_ratios, others[whole].T)])
        values[whole] = chebyshev(costs, rng.dirichlet(np.ones(costs.shape[1])))
        # A trial that lacks a metric cannot be compared, so it counts as failed.
        values[measured & ~whole] = np.inf
    return TrainingData(
        values,
        np.array([float(observation.runs) for observation in observations]),
        np.array([observation.bound is not None for observation in observations]) & np.isfinite(values),
        limited_values(limits, observations),
        ranked,
    )


def are_ratios(observations: Sequence[Observation]) -> bool:
    """Return whether the observations enter a model as logarithms.

    They do if all are positive, and there is neither a trade-off nor a paused training.
    """
    known = [_value(observation) for observation in observations]
    are_positive = not any(value <= 0.0 for value in known)
    return are_positive and not any(one.others for one in observations) and not _has_paused(observations)


def _has_paused(observations: Sequence[Observation]) -> bool:
    return any(observation.partial for observation in observations)


def _others(observations: Sequence[Observation]) -> NDArray[np.float64]:
    """Return the costs of the other metrics of a trade-off, (n, metrics); NaN for a missing value."""
    width = max((len(observation.others) for observation in observations), default=0)
    costs = [observation.others or (None,) * width for observation in observations]
    return np.array(costs, dtype=np.float64).reshape(len(observations), width)


def _as_ratios(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return costs, (n,), as logarithms in the same order if all have the same sign (rates have negative costs)."""
    if (costs > 0.0).all() or (costs < 0.0).all():
        return np.sign(costs) * np.log(np.abs(costs))
    return costs


def _value(observation: Observation) -> float:
    if observation.pending:
        return np.nan
    known = observation.bound if observation.value is None else observation.value
    return np.inf if known is None else known
