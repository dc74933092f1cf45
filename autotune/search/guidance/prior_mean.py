"""Guide: what measurements in other settings (other machines, other workloads) say of configurations.

It enters the search as the mean function of its Gaussian process (Rasmussen & Williams 2006, section 2.7), never as
made-up observations: the process learns how the study's own values differ from what the guide leads one to expect. How
far it is followed is fitted to those values again before each proposal, so that what is wrong here soon says nothing.
"""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

# The prior of a weight, and what the logarithm of a value is off by where all weights are right.
_SPREAD = 0.3
_NOISE = 0.1
# Twenty times the best is bad enough: how bad it is elsewhere tells nothing more, nor how it failed there.
_WORST = float(np.log(20.0))
# Which bounds count depends on the weights, which depend on the bounds: that is settled after a few rounds.
_ROUNDS = 10


class PriorMean(Protocol):
    """What m other settings say of a space's configurations."""

    def fields(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log costs, (n, m), of value indexes `rows`, (n, p), relative to the best of each of m settings.

        Zero is that setting's best and log 2 half as good, whichever way the metric goes; +inf is what fails there;
        never NaN, nor another m. It is asked about thousands of rows, valid ones of the space, before each proposal.
        """


class NoPrior:
    """Nothing is known of other settings."""

    def fields(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return no field at all, (n, 0)."""
        return np.empty((len(rows), 0))


UNGUIDED = NoPrior()


@dataclass(frozen=True)
class PriorWeights:
    """How far a guide is followed: `weights`, (m,), none of them negative, of its fields."""

    guide: PriorMean
    weights: NDArray[np.float64]

    @property
    def say(self) -> float:
        """What the fields weigh together: 1 is their say before anything was measured."""
        return float(self.weights.sum())

    @classmethod
    def fitted(
        cls,
        guide: PriorMean,
        rows: NDArray[np.int32],
        values: NDArray[np.float64],
        censored: NDArray[np.bool_] | None = None,
    ) -> Self:
        """Fit to the study's own `values`, (n,), logarithms that are minimised, of value indexes `rows`, (n, p).

        Bayesian linear regression (Rasmussen & Williams 2006, section 2.1.1): with the prior N(w0, s^2 I), w0 = 1/m,
        s = 0.3, and noise of variance t^2, t = 0.1, the most probable weights are those that minimise

            |y - A w|^2 / t^2 + |w - w0|^2 / s^2,

        where the fields A, (n, m), and the values y are centred: what the best costs here is for the process to learn.
        None may be negative: a setting where what is good is bad here would be followed backwards, and what that says
        of configurations far from all that was tried is a leap. That is no matter of clipping: where two settings are
        alike, one of them can be negative only because the other is too great.

        The `censored` values, (n,), are bounds. One counts as a value where the guide expects less than it: most trials
        that a misleading guide proposes are capped, and nothing else would tell against it.
        """
        fields = _capped(guide.fields(rows))
        count = fields.shape[1]
        if count == 0:
            return cls(guide, np.zeros(0))
        known = np.ones(len(rows), dtype=bool) if censored is None else ~censored
        weights = _regressed(fields[known], values[known])
        counted = known
        for _ in range(_ROUNDS):
            said = fields @ weights
            below = said + (values - said)[counted].mean() < values
            if (counted == (known | below)).all():
                break
            counted = known | below
            weights = _regressed(fields[counted], values[counted])
        return cls(guide, weights)

    def of(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return what the guide adds to the logarithms of values, (n,), at `rows`, (n, p)."""
        added: NDArray[np.float64] = _capped(self.guide.fields(rows)) @ self.weights
        return added


def _regressed(fields: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the most probable weights, (m,), of fields (n, m) by values (n,)."""
    count = fields.shape[1]
    likelihood = (fields - fields.mean(0)) / _NOISE, (values - values.mean()) / _NOISE
    prior = np.eye(count) / _SPREAD, np.full(count, 1.0 / count / _SPREAD)
    weights, _ = nnls(*(np.concatenate(pair) for pair in zip(likelihood, prior, strict=True)))
    found: NDArray[np.float64] = weights
    return found


def _capped(fields: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.minimum(fields, _WORST)
