"""Belief: the times of all candidates, as far as a few runs and a model tell.

Logarithms of times are a scaling law plus a Gaussian process: what nodes and cores add to the law, what configurations
near each other share, and what each has of its own. Which law, and how far times stray from it and from run to run, is
averaged over, each possibility with its likelihood (Rasmussen & Williams, Gaussian Processes for Machine Learning,
2006, chapter 5; Amdahl, AFIPS 1967, for the law).
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from scipy.stats import norm

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Places
from autotune.performance.rightsizing.candidates import Candidates

# Of a law in units of the work of one core: the share that no core takes off, and what each core adds.
_SERIAL = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03)
_ADDED = (0.0, 0.00001, 0.00007)
# Standard deviations of logarithms, with the logarithms of how likely each is beforehand.
_SHARED = ((0.05, 0.0), (0.15, 0.0), (0.4, -0.5))
_OWN = ((0.02, 0.0), (0.06, 0.0), (0.15, 0.0))
_NOISE = ((0.02, 0.0), (0.05, -0.3), (0.12, -2.0))
_SEVERAL_NODES, _EACH_NODE = 0.15, 0.15
# Nothing is known of the time itself before something ran.
_ANY_TIME = 10.0
# A law that takes only work and cores into account is less likely than a model of the program.
_LAW_BESIDE_MODEL = -2.0
# Nine tenths of a normal distribution lie within this number of standard deviations.
_DEVIATIONS = 1.6449
_LEAST_VARIANCE = 1e-8


@dataclass(frozen=True)
class Times:
    """Logarithms of times as a mixture of m normal distributions: means and variances (m, n), weights (m,).

    The variances are those of the median of many runs; `noise`, (m,), is what one run adds.
    """

    means: FloatArray
    variances: FloatArray
    noise: FloatArray
    weights: FloatArray

    def chance(self, limits: FloatArray) -> FloatArray:
        """Return the probabilities, (n,), that one run of each takes no longer than limits, (n,), of logarithms."""
        apart = (limits - self.means) / np.sqrt(self.variances + self.noise[:, None])
        return np.asarray(self.weights @ norm.cdf(apart))

    @property
    def middle(self) -> FloatArray:
        """The times, (n,), that are expected."""
        return np.asarray(np.exp(self.weights @ self.means))

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends, (n,) each, of intervals that hold the time of one run in nine cases of ten."""
        mean = self.weights @ self.means
        spread = self.weights @ (self.variances + self.noise[:, None] + (self.means - mean) ** 2)
        half = _DEVIATIONS * np.sqrt(spread)
        return np.exp(mean - half), np.exp(mean + half)

    def gain(self, limits: FloatArray, weights: FloatArray, best: float) -> FloatArray:
        """Return how much less than `best` each may cost, (n,), on average: its time times `weights`, (n,).

        Only times within the limits count: expected improvement under a constraint.
        """
        deviations = np.sqrt(self.variances)
        ends = np.minimum(limits, np.log(best / weights))
        z = (ends - self.means) / deviations
        below = weights * np.exp(self.means + self.variances / 2.0) * norm.cdf(z - deviations)
        return np.maximum(self.weights @ (best * norm.cdf(z) - below), 0.0)


@dataclass(frozen=True)
class Laws:
    """Logarithms of times, (s, n), up to a factor whose logarithm has a standard deviation `unsure`.

    `likely` is the logarithm of how likely each is beforehand.
    """

    means: FloatArray
    unsure: float
    likely: float


@dataclass(frozen=True)
class Spread:
    """How far times stray from a law, as standard deviations of logarithms, and how likely that is beforehand.

    `shared` is what candidates near each other share, `own` what each has of its own, `noise` what each run has.
    """

    shared: float
    own: float
    noise: float
    likely: float


_SPREADS = tuple(
    Spread(shared, own, noise, first + second + third)
    for (shared, first), (own, second), (noise, third) in itertools.product(_SHARED, _OWN, _NOISE)
)


@dataclass(frozen=True)
class Belief:
    """What may be believed of the times of candidates."""

    candidates: Candidates
    laws: tuple[Laws, ...]

    @classmethod
    def of(cls, candidates: Candidates) -> "Belief":
        """Return what is believed before anything ran."""
        cores, expected = candidates.cores, candidates.expected
        scaling = [np.log(1.0 / cores + serial + added * cores) for serial, added in itertools.product(_SERIAL, _ADDED)]
        if expected is None:
            return cls(candidates, (Laws(np.array(scaling), _ANY_TIME, -log(len(scaling))),))
        unsure = float(np.median(expected.half)) / _DEVIATIONS
        beside = Laws(np.array(scaling), _ANY_TIME, _LAW_BESIDE_MODEL - log(len(scaling)))
        return cls(candidates, (Laws(expected.mean[None, :], unsure, 0.0), beside))

    def after(self, probes: Mapping[int, float]) -> Times:
        """Return what is believed once the candidates at some places have run, each with its time."""
        places = np.array(list(probes), dtype=np.intp)
        measured = np.log(np.array(list(probes.values()), dtype=float))
        # Without any time the laws of scaling know none.
        used = self.laws if len(places) else self.laws[:1]
        parts = [self._part(laws, spread, places, measured) for laws in used for spread in _SPREADS]
        scores = np.concatenate([part.weights for part in parts])
        return Times(
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.variances for part in parts]),
            np.concatenate([part.noise for part in parts]),
            np.exp(scores - logsumexp(scores)),
        )

    def _part(self, laws: Laws, spread: Spread, places: Places, measured: FloatArray) -> Times:
        """Return the mixture for one way to stray; its weights are logarithms of likelihoods."""
        count, nodes = len(laws.means), np.log(self.candidates.nodes)
        several = np.where(nodes > 0.0, _SEVERAL_NODES, 0.0)
        known = spread.shared**2 * self._alike(places) + laws.unsure**2
        known += np.outer(several[places], several) + _EACH_NODE**2 * np.outer(nodes[places], nodes)
        known[np.arange(len(places)), places] += spread.own**2
        total = spread.shared**2 + spread.own**2 + laws.unsure**2 + several**2 + (_EACH_NODE * nodes) ** 2
        root = np.linalg.cholesky(known[:, places] + spread.noise**2 * np.eye(len(places)))
        told = solve_triangular(root, known, lower=True)
        off = solve_triangular(root, (measured - laws.means[:, places]).T, lower=True)
        variance = np.maximum(total - (told**2).sum(axis=0), _LEAST_VARIANCE)
        return Times(
            laws.means + off.T @ told,
            np.broadcast_to(variance, laws.means.shape),
            np.full(count, spread.noise**2),
            laws.likely + spread.likely - 0.5 * (off**2).sum(axis=0) - np.log(np.diag(root)).sum(),
        )

    def _alike(self, places: Places) -> FloatArray:
        """Return how alike candidates are to those at some places, (k, n): 1 if equal."""
        traits = self.candidates.traits
        apart = ((traits[places][:, None, :] - traits[None, :, :]) ** 2).sum(axis=-1)
        return np.asarray(np.exp(-0.5 * apart))
