"""Belief: what a search makes of the evidence: a Gaussian process, its mean function, and where runs work."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.search.base import Rows
from autotune.search.feasibility import chance_to_work
from autotune.search.gaussian_process import Array, GaussianProcess, fit_censored, log_expected_improvement
from autotune.search.prior_mean import UNGUIDED, PriorMean, PriorWeights
from autotune.search.training_data import TrainingData
from spaces import Space

LEAST_VALUES = 2
"""A model is made of two values or more."""

# A process over n points costs n^3; the best and the newest this many tell nearly as much as all.
_REMEMBERED = 300


@dataclass(frozen=True)
class Posterior:
    """What is believed of a space: the mean function, and the process of what it leaves unsaid; the best mean so far.

    Where runs work is known from what was `tried`, traits (n, d), and `worked`, (n,).
    """

    space: Space
    leaning: PriorWeights
    surrogate: GaussianProcess
    tried: Array
    worked: Array
    best: float

    def promise(self, rows: Rows) -> Array:
        """Return the logarithm of the improvement expected at value indexes, (m, p)."""
        traits = self.space.traits_of(rows)
        mean, deviation = self.surrogate.predict(traits)
        improvement = log_expected_improvement(self.leaning.of(rows) + mean, deviation, self.best)
        promise: Array = improvement + np.log(self.works(traits))
        return promise

    def works(self, traits: Array) -> Array:
        """Return the chances, (m,), that runs at `traits`, (m, d), work."""
        return chance_to_work(traits, self.tried, self.worked)


@dataclass(frozen=True)
class Weighed:
    """What a model, by the `evidence`, expects of candidates: value indexes, (m, p), and their promise, (m,)."""

    model: Posterior
    evidence: TrainingData
    candidates: Rows
    promise: Array

    @property
    def order(self) -> NDArray[np.intp]:
        """The places of the candidates, the most promising first."""
        return np.argsort(-self.promise, kind="stable")


def model_of(
    space: Space, seen: Rows, evidence: TrainingData, guide: PriorMean = UNGUIDED, *, believing: bool = True
) -> Posterior | None:
    """Return what `evidence` of the configurations `seen`, (n, p), implies; None while it implies nothing.

    `believing`: running trials are taken to be worth what the model expects of them.
    """
    valued = evidence.valued
    if valued.sum() < LEAST_VALUES:
        return None
    leaning = PriorWeights.fitted(guide, seen[valued], evidence.values[valued])
    leant = leaning.of(seen)
    values = evidence.beyond(leant).filled
    x = space.traits_of(seen)
    chosen = remembered(evidence.filled)
    surrogate = fit_censored(x[chosen], values[chosen], evidence.runs[chosen], evidence.censored[chosen])
    among = chosen[valued[chosen]]
    places = among if len(among) else valued
    best = float((leant[places] + surrogate.predict(x[places])[0]).min())
    if believing and evidence.pending.any():
        surrogate = surrogate.believing(x[evidence.pending])
    measured = ~evidence.pending
    return Posterior(space, leaning, surrogate, x[measured], evidence.measured[measured].astype(float), best)


def remembered(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indexes of the `values`, (n,), that make a process: all known ones, or the best and the newest."""
    known = np.flatnonzero(~np.isnan(values))
    if len(known) <= _REMEMBERED:
        return known
    half = _REMEMBERED // 2
    best = known[np.argsort(values[known], kind="stable")[:half]]
    return np.union1d(best, known[-half:])
