"""TimePrior: the times of all candidates, as far as a few runs and a model tell.

Logarithms of times are a scaling law plus a Gaussian process: what nodes and cores add to the law, what configurations
near each other share, and what each has of its own. Which law, and how far times stray from it and from run to run, is
averaged over, each possibility with its likelihood (Rasmussen & Williams, Gaussian Processes for Machine Learning,
2006, chapter 5; Amdahl, AFIPS 1967, for the law).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Places
from autotune.performance.rightsizing.candidates import Candidates
from autotune.statistics.gaussian_process import Factor

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
# And nine tenths of it below this number of them.
_OF_TEN = 1.2816
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
        """Return how much less than `best` each is expected to cost, (n,), once it has run: its time times `weights`.

        Only what then keeps the limits in nine runs of ten counts: a run tells little of what ran before, more of what
        is uncertain (expected improvement under a constraint, by what one observation changes: Frazier et al., 2009).
        """
        noise = self.noise[:, None]
        changes = self.variances / np.sqrt(self.variances + noise)
        left = self.variances * noise / (self.variances + noise)
        ends = np.minimum(limits - _OF_TEN * np.sqrt(left + noise), np.log(best / weights))
        z = (ends - self.means) / changes
        below = weights * np.exp(self.means + changes**2 / 2.0) * norm.cdf(z - changes)
        return np.maximum(self.weights @ (best * norm.cdf(z) - below), 0.0)


@dataclass(frozen=True)
class Laws:
    """Logarithms of times, (s, n), and how all may be off together, (k, n), each by so many standard deviations.

    `likely` is the logarithm of how likely each is beforehand.
    """

    means: FloatArray
    off: FloatArray
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
class Runs:
    """What ran: the places, (k,), of candidates, the middles of the logarithms of their times, and the counts of runs.

    `squares` is how far runs of one candidate are from each other: the sum of squares about the middles.
    """

    places: Places
    middles: FloatArray
    counts: FloatArray
    squares: float

    @classmethod
    def of(cls, probes: Mapping[int, Sequence[float]]) -> "Runs":
        """Return the runs of the candidates at some places, by their times."""
        logs = [np.log(np.array(times, dtype=float)) for times in probes.values()]
        middles = np.array([np.median(times) for times in logs], dtype=float)
        squares = sum(float(((times - middle) ** 2).sum()) for times, middle in zip(logs, middles, strict=True))
        counts = np.array([len(times) for times in logs], dtype=float)
        return cls(np.array(list(probes), dtype=np.intp), middles, counts, squares)


@dataclass(frozen=True)
class TimePrior:
    """What may be believed of the times of candidates."""

    candidates: Candidates
    laws: tuple[Laws, ...]

    @classmethod
    def of(cls, candidates: Candidates) -> "TimePrior":
        """Return what is believed before anything ran."""
        cores, expected = candidates.cores, candidates.expected
        scaling = [np.log(1.0 / cores + serial + added * cores) for serial, added in itertools.product(_SERIAL, _ADDED)]
        by_nodes = _by_nodes(candidates)
        any_time = np.concatenate([np.full((1, len(cores)), _ANY_TIME), by_nodes])
        likely = -log(len(scaling))
        if expected is None:
            return cls(candidates, (Laws(np.array(scaling), any_time, likely),))
        beside = Laws(np.array(scaling), any_time, _LAW_BESIDE_MODEL + likely)
        # A model that says how it may be off knows what more nodes may do.
        off = by_nodes if candidates.off is None else candidates.off
        left = expected.deviations**2 - (0.0 if candidates.off is None else (off**2).sum(axis=0))
        unsure = np.full((1, len(cores)), np.sqrt(max(float(np.median(left)), 0.0)))
        return cls(candidates, (Laws(expected.mean[None, :], np.concatenate([unsure, off]), 0.0), beside))

    def after(self, probes: Mapping[int, Sequence[float]]) -> Times:
        """Return what is believed once the candidates at some places have run, each with the times of its runs."""
        runs = Runs.of(probes)
        # Without any time the laws of scaling know none.
        used = self.laws if len(runs.places) else self.laws[:1]
        parts = [self._part(laws, spread, runs) for laws in used for spread in _SPREADS]
        scores = np.concatenate([part.weights for part in parts])
        return Times(
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.variances for part in parts]),
            np.concatenate([part.noise for part in parts]),
            np.exp(scores - logsumexp(scores)),
        )

    def _part(self, laws: Laws, spread: Spread, runs: "Runs") -> Times:
        """Return the mixture for one way to stray; its weights are logarithms of likelihoods."""
        places = runs.places
        known = spread.shared**2 * self._alike(places) + laws.off[:, places].T @ laws.off
        known[np.arange(len(places)), places] += spread.own**2
        total = spread.shared**2 + spread.own**2 + (laws.off**2).sum(axis=0)
        factor = Factor.of(known[:, places], spread.noise**2 / runs.counts)
        roots = factor.roots(known)
        off = factor.roots((runs.middles - laws.means[:, places]).T)
        variance = np.maximum(total - (roots**2).sum(axis=0), _LEAST_VARIANCE)
        repeated = (runs.counts - 1.0).sum() * log(spread.noise) + 0.5 * runs.squares / spread.noise**2
        return Times(
            laws.means + off.T @ roots,
            np.broadcast_to(variance, laws.means.shape),
            np.full(len(laws.means), spread.noise**2),
            laws.likely + spread.likely - 0.5 * (off**2).sum(axis=0) - factor.half_log_determinant - repeated,
        )

    def _alike(self, places: Places) -> FloatArray:
        """Return how alike candidates are to those at some places, (k, n): 1 if equal."""
        traits = self.candidates.traits
        apart = ((traits[places][:, None, :] - traits[None, :, :]) ** 2).sum(axis=-1)
        return np.asarray(np.exp(-0.5 * apart))


def _by_nodes(candidates: Candidates) -> FloatArray:
    """Return how laws that know nothing of a network may be off, (2, n): on several nodes, and on more of them."""
    nodes = np.log(candidates.nodes)
    return np.stack([np.where(nodes > 0.0, _SEVERAL_NODES, 0.0), _EACH_NODE * nodes])
