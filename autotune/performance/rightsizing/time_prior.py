"""The prior of the times of all candidates, and their posterior after a few runs.

The logarithm of a time is a scaling law plus a Gaussian process. The process has a part that depends on nodes and
cores, a part that similar configurations share, and a part of each configuration. The result averages over scaling laws
and over the variances of these parts and of the runs, weighted by likelihood (Rasmussen & Williams, Gaussian Processes
for Machine Learning, 2006, chapter 5; Amdahl, AFIPS 1967, for the law).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from autotune.performance.regression.table import Places
from autotune.performance.rightsizing.candidates import Candidates
from autotune.statistics.gaussian_process import Factor
from spaces.expressions.quantities import FloatArray

# The serial share of the work, and the overhead that each core adds, in units of the work of one core.
_SERIAL = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03)
_ADDED = (0.0, 0.00001, 0.00007)
# Standard deviations of logarithms, with the logarithms of their prior probabilities.
_SHARED = ((0.05, 0.0), (0.15, 0.0), (0.4, -0.5))
_OWN = ((0.02, 0.0), (0.06, 0.0), (0.15, 0.0))
_NOISE = ((0.02, 0.0), (0.05, -0.3), (0.12, -2.0))
_SEVERAL_NODES, _EACH_NODE = 0.15, 0.15
# Each doubling of the cores of a rank lengthens the time's logarithm by this much, give or take a standard deviation
# that grows with the root of the doublings and is shared by all sizes. Pure MPI was the fastest in 216 of 237 published
# groups of runs of molecular dynamics. The deviation is so wide that about one of six runs has another division.
_DOUBLING, _DOUBLING_OFF = 0.15, 0.25
# The standard deviation of the time's logarithm before anything ran: so wide that it says nothing.
_ANY_TIME = 10.0
# The standard deviation of the slopes of a core's power, over the logarithms of cores and nodes: idle ones draw power.
_SLOPE_OF_POWER = 0.5
# The log weight of a law that only knows work and cores, relative to a model of the program.
_LAW_BESIDE_MODEL = -2.0
# 90 % of a normal distribution lie within this number of standard deviations.
_DEVIATIONS = 1.6449
# 90 % of it lie below this number of them.
_OF_TEN = 1.2816
_LEAST_VARIANCE = 1e-8


@dataclass(frozen=True)
class Times:
    """Logarithms of times as a mixture of m normal distributions: means and variances (m, n), weights (m,).

    The variances are those of the median of many runs; `noise`, (m,), is the further variance of one run.
    """

    means: FloatArray
    variances: FloatArray
    noise: FloatArray
    weights: FloatArray

    def chance(self, limits: FloatArray) -> FloatArray:
        """Return the probabilities, (n,), that one run of each candidate keeps its limit, (n,), a logarithm."""
        apart = (limits - self.means) / np.sqrt(self.variances + self.noise[:, None])
        return np.asarray(self.weights @ norm.cdf(apart))

    @property
    def middle(self) -> FloatArray:
        """The expected times, (n,)."""
        return np.asarray(np.exp(self.weights @ self.means))

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends, (n,) each, of intervals that contain the time of one run in 90 % of cases."""
        mean = self.weights @ self.means
        spread = self.weights @ (self.variances + self.noise[:, None] + (self.means - mean) ** 2)
        half = _DEVIATIONS * np.sqrt(spread)
        return np.exp(mean - half), np.exp(mean + half)

    def gain(self, limits: FloatArray, weights: FloatArray, best: float) -> FloatArray:
        """Return the expected improvement on the cost `best`, (n,), if each candidate ran once.

        The cost is the time times `weights`. A candidate counts only if it would then keep its limit in 90 % of runs.
        This is the constrained expected improvement for the change that one observation makes (Frazier et al., 2009),
        which is small for candidates that have run and larger for uncertain ones.
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
    """Scaling laws: logarithms of times, (s, n), and directions of common error, (k, n), in standard deviations.

    `likely` are the logarithms of the laws' prior probabilities.
    """

    means: FloatArray
    off: FloatArray
    likely: float


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithms of times around a law, and their prior probability.

    `shared` is the part that similar candidates share, `own` the part of each candidate, `noise` that of each run.
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
    """The runs of k candidates: their places, (k,), the mean logarithms of their times, and their numbers of runs.

    `squares` is the sum of the squared differences from these means.
    """

    places: Places
    middles: FloatArray
    counts: FloatArray
    squares: float

    @classmethod
    def of(cls, probes: Mapping[int, Sequence[float]]) -> "Runs":
        """Return the runs, given the times of the candidates at some places."""
        logs = [np.log(np.array(times, dtype=float)) for times in probes.values()]
        middles = np.array([np.median(times) for times in logs], dtype=float)
        squares = sum(float(((times - middle) ** 2).sum()) for times, middle in zip(logs, middles, strict=True))
        counts = np.array([len(times) for times in logs], dtype=float)
        return cls(np.array(list(probes), dtype=np.intp), middles, counts, squares)


@dataclass(frozen=True)
class TimePrior:
    """The prior of the times of candidates."""

    candidates: Candidates
    laws: tuple[Laws, ...]

    @classmethod
    def of(cls, candidates: Candidates) -> "TimePrior":
        """Return the prior of candidates before anything ran."""
        cores, expected = candidates.cores, candidates.expected
        slower = _DOUBLING * candidates.doublings
        overheads = itertools.product(_SERIAL, _ADDED)
        scaling = [slower + np.log(1.0 / cores + serial + added * cores) for serial, added in overheads]
        by_nodes = _by_nodes(candidates)
        by_division = (_DOUBLING_OFF * np.sign(candidates.doublings) * np.sqrt(np.abs(candidates.doublings)))[None, :]
        any_time = np.concatenate([np.full((1, len(cores)), _ANY_TIME), by_nodes, by_division])
        likely = -log(len(scaling))
        if expected is None:
            return cls(candidates, (Laws(np.array(scaling), any_time, likely),))
        beside = Laws(np.array(scaling), any_time, _LAW_BESIDE_MODEL + likely)
        # A model that states its common errors already includes those of more nodes.
        off = by_nodes if candidates.off is None else candidates.off
        left = expected.deviations**2 - (0.0 if candidates.off is None else (off**2).sum(axis=0))
        mean = expected.mean
        # Costs with unknown rates do not know which division is fast.
        if not candidates.has_useful_times:
            mean, off = mean + slower, np.concatenate([off, by_division])
        unsure = np.full((1, len(cores)), np.sqrt(max(float(np.median(left)), 0.0)))
        return cls(candidates, (Laws(mean[None, :], np.concatenate([unsure, off]), 0.0), beside))

    @classmethod
    def of_power(cls, candidates: Candidates) -> "TimePrior":
        """Return the prior of the watts of each core: a power law of cores and nodes."""
        sizes = np.log([candidates.cores, candidates.nodes])
        off = np.concatenate([np.full((1, len(candidates)), _ANY_TIME), _SLOPE_OF_POWER * sizes])
        return cls(candidates, (Laws(np.zeros((1, len(candidates))), off, 0.0),))

    def after(self, probes: Mapping[int, Sequence[float]]) -> Times:
        """Return the posterior of the times, given the times of the runs of the candidates at some places."""
        runs = Runs.of(probes)
        # Without any measured time, the scaling laws cannot predict one.
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
        """Return the mixture for one spread; its weights are logarithms of likelihoods."""
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
        """Return the similarity, (k, n), of all candidates to those at some places: 1 if equal."""
        traits = self.candidates.traits
        apart = ((traits[places][:, None, :] - traits[None, :, :]) ** 2).sum(axis=-1)
        return np.asarray(np.exp(-0.5 * apart))


def _by_nodes(candidates: Candidates) -> FloatArray:
    """Return the common errors, (2, n), of laws without a network: on several nodes, and growing with their number."""
    nodes = np.log(candidates.nodes)
    return np.stack([np.where(nodes > 0.0, _SEVERAL_NODES, 0.0), _EACH_NODE * nodes])
