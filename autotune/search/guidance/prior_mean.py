"""The prior mean: predictions for configurations from measurements in other settings (machines, workloads).

It is the mean function of the search's Gaussian process (Rasmussen & Williams 2006, section 2.7), not a set of made-up
observations: the process learns how the study's own values differ from the predictions. Its weights are fitted to these
values again before each proposal, so that predictions that are wrong here soon lose their effect.
"""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import scipy
from numpy.typing import NDArray

# The standard deviations of a weight's prior, and of the logarithm of a value if all weights are right.
_SPREAD = 0.3
_NOISE = 0.1
# Twenty times the best is bad enough: a worse value or a failure elsewhere gives no further information.
_WORST = float(np.log(20.0))
# The bounds that count depend on the weights, and the weights on the bounds; a few rounds settle both.
_ROUNDS = 10


class PriorMean(Protocol):
    """Predictions for the configurations of a space from m other settings."""

    def fields(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log costs, (n, m), of value indexes `rows`, (n, p), relative to the best of each of m settings.

        Zero is the best of that setting and log 2 half as good, whatever the direction of the metric; +inf is a failure
        there. The result is never NaN, and m never changes. It is called with thousands of valid rows for each
        proposal.
        """


class NoPrior:
    """The prior mean without any other setting."""

    def fields(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return an empty array, (n, 0)."""
        return np.empty((len(rows), 0))


NO_PRIOR = NoPrior()


@dataclass(frozen=True)
class PriorWeights:
    """A prior mean with its weights.

    Attributes:
        prior: The prior mean.
        weights: The weight of each of its fields, (m,), not negative.
    """

    prior: PriorMean
    weights: NDArray[np.float64]

    @property
    def total_weight(self) -> float:
        """The sum of the weights; it is 1 before any measurement."""
        return float(self.weights.sum())

    @classmethod
    def fit(
        cls,
        prior: PriorMean,
        rows: NDArray[np.int32],
        values: NDArray[np.float64],
        censored: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Fit the weights to the study's own `values`, (n,), logarithms to minimise, at value indexes `rows`, (n, p).

        Bayesian linear regression (Rasmussen & Williams 2006, section 2.1.1): with the prior N(w0, s^2 I), w0 = 1/m,
        s = 0.3, and noise of variance t^2, t = 0.1, the most probable weights are those that minimise

            |y - A w|^2 / t^2 + |w - w0|^2 / s^2,

        where the fields A, (n, m), and the values y are centred, since the process learns the best value here. Weights
        may not be negative: a setting in which good configurations are bad here would be followed backwards, and this
        does not extrapolate to configurations far from the tried ones. Clipping negative weights would not do: of two
        similar settings, one may be negative only because the weight of the other is too large.

        The `censored` values, (n,), are bounds. A bound counts as a value if the prior predicts less than it: most
        trials that a misleading prior proposes are capped, and nothing else would lower its weight.
        """
        fields = _cap(prior.fields(rows))
        count = fields.shape[1]
        if count == 0:
            return cls(prior, np.zeros(0))
        known = np.ones(len(rows), dtype=bool) if censored is None else ~censored
        weights = _regress(fields[known], values[known])
        counted = known
        for _ in range(_ROUNDS):
            predicted = fields @ weights
            below = predicted + (values - predicted)[counted].mean() < values
            if (counted == (known | below)).all():
                break
            counted = known | below
            weights = _regress(fields[counted], values[counted])
        return cls(prior, weights)

    def of(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the weighted sum of the fields, (n,), at value indexes `rows`, (n, p)."""
        added: NDArray[np.float64] = _cap(self.prior.fields(rows)) @ self.weights
        return added


def _regress(fields: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the most probable weights, (m,), of fields (n, m) by values (n,)."""
    count = fields.shape[1]
    likelihood = (fields - fields.mean(0)) / _NOISE, (values - values.mean()) / _NOISE
    prior = np.eye(count) / _SPREAD, np.full(count, 1.0 / count / _SPREAD)
    weights, _ = scipy.optimize.nnls(*(np.concatenate(pair) for pair in zip(likelihood, prior, strict=True)))
    found: NDArray[np.float64] = weights
    return found


def _cap(fields: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.minimum(fields, _WORST)
