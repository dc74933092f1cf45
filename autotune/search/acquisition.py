"""The model of a search, fitted to its trials, and the expected improvement of candidates under it."""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from autotune.search.base import Rows
from autotune.search.feasibility import chance_to_work
from autotune.search.guidance.earlier_values import EarlierValues
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.prior_mean import NO_PRIOR, PriorMean, PriorWeights
from autotune.search.limit_models import NO_LIMITS, LimitModels
from autotune.search.training_data import TrainingData
from autotune.statistics.gaussian_process import Array, GaussianProcess, best_and_newest, fit_censored
from spaces import Space

LEAST_VALUES = 2
"""The least number of values for a model without a prior mean."""

MOST_FITTED = 200
"""The most values for a process, which costs their number cubed: the best and the newest are nearly as good as all."""

# The least standard deviation of the logarithms of values around the prior mean. Two or three values that agree with it
# better prove little, since its weights were fitted to them.
_OFF = 0.3
# Below this the improvement is computed by its asymptotic series, since the exact difference is lost in rounding.
_TAIL = -5.0


@dataclass(frozen=True)
class Posterior:
    """The fitted model of a space.

    Attributes:
        space: The space.
        prior_weights: The mean function.
        surrogate: The process of the values minus the mean function.
        tried: The traits of the configurations that have run, (n, d).
        worked: 1 for those whose run worked, 0 for the others, (n,).
        best: The best mean so far, to be improved on.
        cores: The cores that runs hold, if their cost counts.
        limits: The models of the metrics that have limits.
    """

    space: Space
    prior_weights: PriorWeights
    surrogate: GaussianProcess
    tried: Array
    worked: Array
    best: float
    cores: HeldCores | None = None
    limits: LimitModels = NO_LIMITS

    def promise(self, rows: Rows) -> Array:
        """Return the logarithm of the expected improvement, (m,), weighted by `weight`, at value indexes (m, p)."""
        traits = self.space.traits_of(rows)
        mean, deviation = self.surrogate.predict(traits)
        improvement = log_expected_improvement(self.prior_weights.of(rows) + mean, deviation, self.best)
        promise: Array = improvement + self.weight(rows, traits)
        return promise

    def weight(self, rows: Rows, traits: Array) -> Array:
        """Return the terms to add to the logarithm of an improvement, (m,).

        They are the chance that a run works, the chance that the configuration keeps the limits, and its cost.
        """
        chance: Array = np.log(self.works(traits)) + self.limits.log_chance(traits)
        return chance if self.cores is None else chance - self.cores.cost_penalty(rows)

    def works(self, traits: Array) -> Array:
        """Return the chances, (m,), that runs at `traits`, (m, d), work."""
        return chance_to_work(traits, self.tried, self.worked)


@dataclass(frozen=True)
class ScoredCandidates:
    """Candidates with their weighted expected improvement.

    Attributes:
        model: The model that scored them.
        evidence: The data that the model is fitted to.
        candidates: Value indexes, (m, p).
        promise: The result of `Posterior.promise` for each of them, (m,).
    """

    model: Posterior
    evidence: TrainingData
    candidates: Rows
    promise: Array

    @property
    def order(self) -> NDArray[np.intp]:
        """The positions of the candidates, the most promising first."""
        return np.argsort(-self.promise, kind="stable")


def fit_model(  # noqa: PLR0913  by keyword
    space: Space,
    seen: Rows,
    evidence: TrainingData,
    prior: PriorMean = NO_PRIOR,
    *,
    believing: bool = True,
    cores: HeldCores | None = None,
    earlier: EarlierValues | None = None,
) -> Posterior | None:
    """Return the model fitted to the trials; None if they have too few values.

    Args:
        space: The space.
        seen: The configurations of the trials, value indexes (n, p).
        evidence: The observations of the trials.
        prior: The prior mean.
        believing: Whether to treat running trials as measured at the mean of the model (kriging believer).
        cores: The cores that runs hold. They count only with a prior mean: a search without one learns little from
            small runs.
        earlier: The values of an earlier study, which the process also knows.
    """
    valued = evidence.valued
    if valued.sum() < (LEAST_VALUES if prior is NO_PRIOR and earlier is None else 1):
        return None
    prior_weights = fit_prior_weights(evidence, prior, seen)
    leant = prior_weights.of(seen)
    values = evidence.beyond(leant).filled
    x = space.traits_of(seen)
    chosen = best_and_newest(evidence.filled, MOST_FITTED)
    spread = 0.0 if prior is NO_PRIOR else _OFF
    known = values[chosen], evidence.runs[chosen], evidence.censored[chosen]
    if earlier is None:
        surrogate = fit_censored(x[chosen], *known, spread)
    else:
        surrogate = earlier.fit(seen[chosen], *known, valued[chosen])
    best = _best(evidence, chosen, leant + surrogate.predict(x)[0])
    limits = LimitModels.fit(evidence.limited, x, evidence.runs, chosen)
    if believing and evidence.pending.any():
        surrogate, limits = surrogate.believing(x[evidence.pending]), limits.believing(x[evidence.pending])
    measured = ~evidence.pending
    worked = evidence.measured[measured].astype(float)
    cores = None if prior is NO_PRIOR else cores
    return Posterior(space, prior_weights, surrogate, x[measured], worked, best, cores, limits)


def log_expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return the logarithm of the expected improvement on `best`; all arrays (m,), for minimisation.

    Source: Jones, Schonlau & Welch (1998), eq. 15, as a logarithm, which distinguishes candidates even where the
    improvement is tiny (Ament et al., NeurIPS 2023).
    """
    z = (best - mean) / deviation
    near = np.maximum(z, _TAIL)
    density = np.exp(-0.5 * near * near) / sqrt(2 * pi)
    body = np.log(density + near * scipy.special.ndtr(near))
    far = np.minimum(z, _TAIL)
    tail = -0.5 * far * far - 0.5 * log(2 * pi) - 2.0 * np.log(-far)
    logarithm: Array = np.where(z > _TAIL, body, tail) + np.log(deviation)
    return logarithm


def _best(evidence: TrainingData, chosen: NDArray[np.int64], mean: Array) -> float:
    """Return the value to improve on: the best `mean`, (n,), of `chosen` trials with values that keep the limits.

    While no trial keeps the limits, it is the worst mean: nearly all candidates then count as an improvement, and their
    chance to keep the limits decides.
    """
    among = chosen[evidence.valued[chosen]]
    places = among if len(among) else np.flatnonzero(evidence.valued)
    feasible = places[evidence.feasible[places]]
    return float(mean[feasible].min() if len(feasible) else mean[places].max())


def fit_prior_weights(evidence: TrainingData, prior: PriorMean, rows: Rows) -> PriorWeights:
    """Return the weights of a prior mean, fitted to the values and bounds of trials at value indexes (n, p)."""
    known = evidence.measured
    return PriorWeights.fit(prior, rows[known], evidence.values[known], evidence.censored[known])
