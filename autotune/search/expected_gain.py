"""Expected gain: what the next trials of a search would gain at most, with which probability.

Functions are drawn from the model's posterior, jointly over the most promising candidates and some others, and the
search is played on in each of them: the candidate of the greatest expected improvement, its drawn value, what the
process makes of that, the next one (a rollout: Lam, Willcox & Wolpert, "Bayesian optimization with a finite budget",
NeurIPS 2016). So the search learns while it goes, as it would: the candidates that look best now would gain too little,
the best of all of them too much. How well that is calibrated: docs/search.md, `benchmarks.stopping`.
"""

from dataclasses import dataclass
from math import expm1, log1p, sqrt

import numpy as np

from autotune.records.expected_gain import AHEAD, PROBABILITY, ExpectedGain
from autotune.search.acquisition import Weighed, log_expected_improvement, remembered
from autotune.search.base import History, Rows
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.gaussian_process import Array, GaussianProcess, above_bound

DOUBT = 1.2
"""The model is too sure of itself: functions are drawn with its standard deviations times that.

Fitted on one half of the measured spaces of `benchmarks.stopping`, checked on the other.
"""

# With fewer values than that the model is sure of what it cannot know. Bounds of capped trials teach it little: so many
# count as a value (measured on the same spaces, with all capped that were 5 % slower than the best until then).
_LEAST_VALUES = 15
_BOUNDS_A_VALUE = 6
_DRAWS = 200
# What may be chosen in a drawn function: the most promising candidates, and others by chance.
_PROMISING = 200
_OTHERS = 100
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Beliefs:
    """What is believed of m candidates: `mean` (m,), `covariance` (m, m), `works` (m,) the chance that a run does.

    `noise` is the variance that the model cannot explain. `own` of it is not of runs but of configurations: what is
    better in one than its neighbours tell, and to be gained there alone. `smooth` is the best mean of what is measured,
    `best` the best with what is its own; lower is better.
    """

    mean: Array
    covariance: Array
    works: Array
    noise: float
    own: float
    smooth: float
    best: float

    def gains(self, trials: int, draws: int, rng: np.random.Generator, doubt: float = 1.0) -> Array:
        """Return by how much the next `trials` undercut the best, (draws,), each in a function of its own.

        The functions differ from the mean `doubt` times as much as is believed; the search still believes its model.
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
    """Return what the next trials of a search gain; None while there are few values, or where they are no ratios.

    `noise` is the relative standard deviation of runs of one configuration: no gain is expected of that.

    Raises:
        SpaceExhaustedError: no configuration is left.
    """
    values = [observation.value for observation in history.observations if observation.value is not None]
    bounds = [observation.bound for observation in history.observations if observation.bound is not None]
    known = len(values) + len(bounds) / _BOUNDS_A_VALUE
    if sampler.blind is None or known < _LEAST_VALUES or min(*values, *bounds) <= 0.0:
        return None
    # Not the stream of the next proposal.
    rng = np.random.default_rng([sampler.seed, len(history.rows), AHEAD])
    weighed = sampler.weighed(history, rng)
    if weighed is None:
        return None
    process = _process(history.rows, weighed)
    if process is None:
        return None
    trials = min(AHEAD, len(weighed.candidates))
    gains = _beliefs(weighed, process, log1p(noise), rng).gains(trials, _DRAWS, rng, doubt)
    return ExpectedGain(trials, expm1(float(np.quantile(gains, PROBABILITY))))


@dataclass(frozen=True)
class _Process:
    """The process of what the mean function leaves unsaid; `leant`, (n,), is what that function says of its points."""

    surrogate: GaussianProcess
    leant: Array


def _process(rows: Rows, weighed: Weighed) -> _Process | None:
    """Return the process with the model's kernel, which knows how uncertain the values of capped trials are.

    None if among the trials that a process remembers there are hardly any values, only bounds.

    `rows`, (n, p), are the value indexes of all trials. To propose, the mean above the bound is good enough a value;
    a process that takes it for measured sees a plain where it knows of nothing but walls.
    """
    evidence, model = weighed.evidence, weighed.model
    chosen = remembered(evidence.filled)
    if evidence.valued[chosen].sum() < 2:
        return None
    leant = model.leaning.of(rows)
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


def _beliefs(weighed: Weighed, process: _Process, noise: float, rng: np.random.Generator) -> Beliefs:
    model, surrogate = weighed.model, process.surrogate
    order = weighed.order
    chosen = weighed.candidates[np.concatenate([order[:_PROMISING], rng.permutation(order[_PROMISING:])[:_OTHERS]])]
    traits = model.space.traits_of(chosen)
    unexplained = surrogate.noise
    own = max(0.0, unexplained - noise**2)
    mean = model.leaning.of(chosen) + surrogate.predict(traits)[0]
    left, _ = surrogate.predict(surrogate.x)
    there = process.leant + left
    # Of what a value is better than its neighbours tell, that part is no luck.
    kept = own / (own + noise**2 / surrogate.runs) if own > 0.0 else np.zeros(len(there))
    best = (there + kept * (surrogate.y - left)).min()
    covariance = surrogate.covariance(traits)
    return Beliefs(mean, covariance, model.works(traits), unexplained, own, float(there.min()), float(best))


def _root(covariance: Array) -> Array:
    """Return a square root, (m, m), of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
