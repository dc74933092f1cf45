"""Estimate the most that the next trials of a search would gain, with a given probability.

Functions are drawn from the model's posterior, jointly over the most promising candidates and some others, and the
search is simulated in each of them: it takes the candidate of greatest expected improvement, sees its drawn value,
updates the process, and takes the next one (a rollout: Lam, Willcox & Wolpert, "Bayesian optimization with a finite
budget", NeurIPS 2016). So the simulated search learns as the real one would. The candidates that look best now would
give too low an estimate, the best of all candidates too high a one. Calibration: docs/search.md, `benchmarks.stopping`.
"""

from dataclasses import dataclass
from math import expm1, log1p, sqrt

import numpy as np

from autotune.records.expected_gain import AHEAD, PROBABILITY, ExpectedGain
from autotune.search.acquisition import MOST_FITTED, ScoredCandidates, log_expected_improvement
from autotune.search.base import History, Rows
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.gaussian_process import Array, GaussianProcess, above_bound, best_and_newest

DOUBT = 1.2
"""The factor on the model's standard deviations for drawn functions, since the model is overconfident.

Fitted on one half of the measured spaces of `benchmarks.stopping`, checked on the other.
"""

# With fewer values the model is overconfident. Bounds of capped trials teach it little: this many count as a value
# (measured on the same spaces, where each trial 5 % slower than the best until then was capped).
_LEAST_VALUES = 15
_BOUNDS_A_VALUE = 6
_DRAWS = 200
# The candidates in a drawn function: the most promising ones, and random others.
_PROMISING = 200
_OTHERS = 100
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class CandidatePosterior:
    """The posterior of m candidates; lower values are better.

    Attributes:
        mean: The means, (m,).
        covariance: The covariance, (m, m).
        works: The chances that a run works, (m,).
        noise: The variance that the model cannot explain.
        own: The part of `noise` that belongs to configurations, not to runs: each differs from what its neighbours
            tell, and this difference can be gained only there.
        smooth: The best mean among the measured configurations.
        best: The best value among them, including their own differences.
    """

    mean: Array
    covariance: Array
    works: Array
    noise: float
    own: float
    smooth: float
    best: float

    def gains(self, trials: int, draws: int, rng: np.random.Generator, doubt: float = 1.0) -> Array:
        """Return by how much the next `trials` improve on the best, (draws,), each in a drawn function of its own.

        The functions deviate from the mean by `doubt` times the model's deviation. The simulated search uses the model
        without this factor.
        """
        count = len(self.mean)
        trials = min(trials, count)
        smooth = self.mean + doubt * rng.standard_normal((draws, count)) @ _root(self.covariance).T
        truth = smooth + doubt * sqrt(self.own) * rng.standard_normal((draws, count))
        each = np.arange(draws)
        mean = np.tile(self.mean, (draws, 1))
        variance = np.tile(np.diag(self.covariance), (draws, 1))
        learnt = np.zeros((draws, trials, count))
        chances = np.tile(np.log(self.works), (draws, 1))
        best, reached = np.full(draws, self.smooth), np.full(draws, self.best)
        for step in range(trials):
            deviation = np.sqrt(np.maximum(variance, _LEAST_VARIANCE))
            chosen = (log_expected_improvement(mean - best[:, None], deviation, 0.0) + chances).argmax(1)
            value = truth[each, chosen]
            known = learnt[:, :step]
            shared = self.covariance[chosen] - np.einsum("st,stm->sm", known[each, :, chosen], known)
            spread = np.sqrt(np.maximum(variance[each, chosen] + self.noise, _LEAST_VARIANCE))
            learnt[:, step] = shared / spread[:, None]
            mean += learnt[:, step] * ((value - mean[each, chosen]) / spread)[:, None]
            variance -= learnt[:, step] ** 2
            chances[each, chosen] = -np.inf
            best = np.minimum(best, smooth[each, chosen])
            reached = np.minimum(reached, value)
        gain: Array = self.best - reached
        return gain


def expected_gain_of(
    sampler: ValidSetSampler, history: History, noise: float = 0.0, doubt: float = DOUBT
) -> ExpectedGain | None:
    """Return the expected gain of the next trials; None if there are few values, or if they are not all positive.

    It is also None if a training was paused, since scores of trainings are no ratios.

    Args:
        sampler: The sampler of the search.
        history: The known trials.
        noise: The relative standard deviation of runs of one configuration, which is not counted as a gain.
        doubt: The factor on the model's standard deviations.

    Raises:
        SpaceExhaustedError: all configurations have been proposed.
    """
    values = [observation.value for observation in history.observations if observation.value is not None]
    bounds = [observation.bound for observation in history.observations if observation.bound is not None]
    known = len(values) + len(bounds) / _BOUNDS_A_VALUE
    if sampler.startup_trials is None or known < _LEAST_VALUES or min(*values, *bounds) <= 0.0:
        return None
    # Use other random numbers than the next proposal does.
    rng = np.random.default_rng([sampler.seed, len(history.rows), AHEAD])
    scored = sampler.score_candidates(history, rng)
    if scored is None or scored.evidence.ranked:
        return None
    process = _process(history.rows, scored)
    if process is None:
        return None
    trials = min(AHEAD, len(scored.candidates))
    gains = _candidate_posterior(scored, process, log1p(noise), rng).gains(trials, _DRAWS, rng, doubt)
    return ExpectedGain(trials, expm1(float(np.quantile(gains, PROBABILITY))))


@dataclass(frozen=True)
class _Process:
    """The process of the values minus the mean function.

    Attributes:
        surrogate: The process.
        leant: The mean function at its points, (n,).
    """

    surrogate: GaussianProcess
    leant: Array


def _process(rows: Rows, scored: ScoredCandidates) -> _Process | None:
    """Return a process with the model's kernel that accounts for the uncertain values of capped trials.

    For proposals it is enough to take the mean above the bound as the value of a capped trial. Here a process that
    takes it for measured would expect nothing but that value around it.

    Args:
        rows: All trials, value indexes (n, p).
        scored: The model and its data.

    Returns:
        The process; None if nearly all of the trials have bounds only.
    """
    evidence, model = scored.evidence, scored.model
    chosen = best_and_newest(evidence.filled, MOST_FITTED)
    if evidence.valued[chosen].sum() < 2:
        return None
    leant = model.prior_weights.of(rows)
    values = evidence.beyond(leant).filled
    x = model.space.traits_of(rows)
    censored, known = (chosen[evidence.censored[chosen] == capped] for capped in (True, False))
    kernel = model.surrogate.kernel
    process = GaussianProcess.of(kernel, x[known], values[known], evidence.runs[known])
    if not len(censored):
        return _Process(process, leant[known])
    mean, deviation = process.predict(x[censored])
    above, spread = above_bound(mean, deviation, values[censored])
    noise = process.noise
    process = process.knowing(x[censored], above, noise / (noise + spread**2))
    return _Process(process, leant[np.concatenate([known, censored])])


def _candidate_posterior(
    scored: ScoredCandidates, process: _Process, noise: float, rng: np.random.Generator
) -> CandidatePosterior:
    model, surrogate = scored.model, process.surrogate
    order = scored.order
    chosen = scored.candidates[np.concatenate([order[:_PROMISING], rng.permutation(order[_PROMISING:])[:_OTHERS]])]
    traits = model.space.traits_of(chosen)
    unexplained = surrogate.noise
    own = max(0.0, unexplained - noise**2)
    mean = model.prior_weights.of(chosen) + surrogate.predict(traits)[0]
    left, _ = surrogate.predict(surrogate.x)
    there = process.leant + left
    # The share of a value's difference from its neighbours that is not due to noise.
    kept = own / (own + noise**2 / surrogate.runs) if own > 0.0 else np.zeros(len(there))
    best = (there + kept * (surrogate.y - left)).min()
    covariance = surrogate.covariance(traits)
    return CandidatePosterior(mean, covariance, model.works(traits), unexplained, own, float(there.min()), float(best))


def _root(covariance: Array) -> Array:
    """Return a square root, (m, m), of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
