"""Belief: what a search makes of the evidence: a Gaussian process, its mean function, and where runs work."""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from autotune.search.base import Rows
from autotune.search.feasibility import chance_to_work
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.prior_mean import UNGUIDED, PriorMean, PriorWeights
from autotune.search.limit_beliefs import NO_LIMITS, LimitBeliefs
from autotune.search.training_data import TrainingData
from autotune.statistics.gaussian_process import Array, GaussianProcess, fit_censored
from spaces import Space

LEAST_VALUES = 2
"""A model is made of two values or more, unless a guide says where they come from."""

# By so much, as a logarithm, values are off what a guide leads one to expect. Two or three that are not say little: its
# weights were fitted to them.
_OFF = 0.3
# A process over n points costs n^3; the best and the newest this many tell nearly as much as all.
_REMEMBERED = 300
# From there on an asymptotic series of the improvement is used: the difference of its terms is lost in rounding.
_TAIL = -5.0


@dataclass(frozen=True)
class Posterior:
    """What is believed of a space: the mean function, and the process of what it leaves unsaid; the best mean so far.

    Where runs work is known from what was `tried`, traits (n, d), and `worked`, (n,); `cores` are what runs hold, where
    that matters; `limits` tell where limits are kept.
    """

    space: Space
    leaning: PriorWeights
    surrogate: GaussianProcess
    tried: Array
    worked: Array
    best: float
    cores: HeldCores | None = None
    limits: LimitBeliefs = NO_LIMITS

    def promise(self, rows: Rows) -> Array:
        """Return the logarithm of the improvement expected at value indexes, (m, p), for what it costs."""
        traits = self.space.traits_of(rows)
        mean, deviation = self.surrogate.predict(traits)
        improvement = log_expected_improvement(self.leaning.of(rows) + mean, deviation, self.best)
        promise: Array = improvement + self.weight(rows, traits)
        return promise

    def weight(self, rows: Rows, traits: Array) -> Array:
        """Return what to add, (m,), to the logarithm of an improvement.

        That is the chance of a run to work, that of a configuration to keep the limits, and the cost.
        """
        chance: Array = np.log(self.works(traits)) + self.limits.log_chance(traits)
        return chance if self.cores is None else chance - self.cores.dearness(rows)

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


def model_of(  # noqa: PLR0913  by keyword
    space: Space,
    seen: Rows,
    evidence: TrainingData,
    guide: PriorMean = UNGUIDED,
    *,
    believing: bool = True,
    cores: HeldCores | None = None,
) -> Posterior | None:
    """Return what `evidence` of the configurations `seen`, (n, p), implies; None while it implies nothing.

    `believing`: running trials are taken to be worth what the model expects of them. `cores` are what runs hold: they
    count where a guide tells what is good, since a search that has to find that out learns little from small runs.
    """
    valued = evidence.valued
    if valued.sum() < (LEAST_VALUES if guide is UNGUIDED else 1):
        return None
    leaning = leaning_of(evidence, guide, seen)
    leant = leaning.of(seen)
    values = evidence.beyond(leant).filled
    x = space.traits_of(seen)
    chosen = remembered(evidence.filled)
    spread = 0.0 if guide is UNGUIDED else _OFF
    surrogate = fit_censored(x[chosen], values[chosen], evidence.runs[chosen], evidence.censored[chosen], spread)
    best = _best(evidence, chosen, leant + surrogate.predict(x)[0])
    limits = LimitBeliefs.fitted(evidence.limited, x, evidence.runs, chosen)
    if believing and evidence.pending.any():
        surrogate, limits = surrogate.believing(x[evidence.pending]), limits.believing(x[evidence.pending])
    measured = ~evidence.pending
    worked = evidence.measured[measured].astype(float)
    cores = None if guide is UNGUIDED else cores
    return Posterior(space, leaning, surrogate, x[measured], worked, best, cores, limits)


def log_expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return the logarithm of how much each point is expected to lie below `best`; all (m,), for minimisation.

    Jones, Schonlau & Welch (1998), eq. 15, as a logarithm, which still tells where it is tiny (Ament et al., NeurIPS
    2023).
    """
    z = (best - mean) / deviation
    near = np.maximum(z, _TAIL)
    density = np.exp(-0.5 * near * near) / sqrt(2 * pi)
    body = np.log(density + near * ndtr(near))
    far = np.minimum(z, _TAIL)
    tail = -0.5 * far * far - 0.5 * log(2 * pi) - 2.0 * np.log(-far)
    logarithm: Array = np.where(z > _TAIL, body, tail) + np.log(deviation)
    return logarithm


def _best(evidence: TrainingData, chosen: NDArray[np.int64], mean: Array) -> float:
    """Return what is to be improved on: the best mean, (n,), of the `chosen` trials that have values.

    Those that break a limit are no better than any that keeps them: while there is none of these, whatever is expected
    to be better than the worst is an improvement, and the chance to keep the limits decides.
    """
    among = chosen[evidence.valued[chosen]]
    places = among if len(among) else np.flatnonzero(evidence.valued)
    feasible = places[evidence.feasible[places]]
    return float(mean[feasible].min() if len(feasible) else mean[places].max())


def leaning_of(evidence: TrainingData, guide: PriorMean, rows: Rows) -> PriorWeights:
    """Return how far a guide is followed after the values and bounds of `evidence` at value indexes, (n, p)."""
    known = evidence.measured
    return PriorWeights.fitted(guide, rows[known], evidence.values[known], evidence.censored[known])


def remembered(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indexes of the `values`, (n,), that make a process: all known ones, or the best and the newest."""
    known = np.flatnonzero(~np.isnan(values))
    if len(known) <= _REMEMBERED:
        return known
    half = _REMEMBERED // 2
    best = known[np.argsort(values[known], kind="stable")[:half]]
    return np.union1d(best, known[-half:])
