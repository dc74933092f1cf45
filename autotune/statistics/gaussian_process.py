"""Gaussian processes: the one place that factorises covariances and fits kernels.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1 and section 5.4.1. A kernel is a sum
of Matern 5/2 kernels, each over columns of its own, with a length scale for each column. Length scales, variances and
noise are at the maximum of their posterior.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from math import log, pi, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.floating]
Places = NDArray[np.integer]

JITTER = 1e-6
"""Added to every variance of noise, so that a covariance can be factorised."""

_EXPECTED = 2
_NOISE_START = -4.0
# Kernels are fitted to at most this number of the best and newest values; the process knows more.
_LEARNT_FROM = 100
_LEAST_VARIANCE = 1e-12
# Beyond this number of standard deviations the mean above a bound is the bound itself, in double precision.
_FARTHEST = 8.0


@dataclass(frozen=True)
class Prior:
    """The normal prior of a logarithm: `middle` and `spread`; a fit stays between `low` and `high`."""

    middle: float
    spread: float
    low: float
    high: float


@dataclass(frozen=True)
class Priors:
    """The priors of a kernel of standardised values, and how many `steps` a fit takes at most.

    `scale` is that of the length scale in one dimension: its middle grows with half the logarithm of the number of
    columns, so that a process with many is no rougher than one with few. `signals` has a prior for each part.
    """

    scale: Prior
    noise: Prior
    signals: tuple[Prior, ...]
    steps: int


PRIORS = Priors(
    scale=Prior(sqrt(2.0) - 1.0, 1.5, -4.0, 5.0),
    noise=Prior(-6.0, 2.0, -14.0, 0.0),
    signals=(Prior(0.0, 1.0, -3.0, 3.0),),
    steps=40,
)
"""Priors of a process over the traits of configurations.

Hvarfner, Hellsten & Nardi, "Vanilla Bayesian Optimization Performs Great in High Dimensions", ICML 2024, but one e-fold
shorter, which did better on measured spaces: see docs/search.md.
"""


@dataclass(frozen=True)
class Kernel:
    """Length scales of all columns, (d,), the variance of each part and that of one run's noise.

    The first part is over the first of `sizes` columns, and so on; one part alone is over all columns.
    """

    scales: Array
    signals: tuple[float, ...]
    noise: float
    sizes: tuple[int, ...] = ()

    @cached_property
    def signal(self) -> float:
        """The variance of the function."""
        return sum(self.signals)

    def between(self, a: Array, b: Array) -> Array:
        """Return the covariances, (n, m), of points `a`, (n, d), and `b`, (m, d)."""
        parts = (
            signal * correlation(a[:, columns], b[:, columns], self.scales[columns])
            for signal, columns in zip(self.signals, self._columns, strict=True)
        )
        covariances: Array = reduce(np.add, parts)
        return covariances

    def covariance_by_row(self, a: Array, b: Array) -> Array:
        """Return the covariances, (n,), of the rows of `a` and `b`, (n, d), pair by pair."""
        squared = ((a - b) / self.scales) ** 2
        parts = (
            signal * _matern(np.sqrt(5.0 * squared[:, columns].sum(axis=1)))
            for signal, columns in zip(self.signals, self._columns, strict=True)
        )
        covariances: Array = reduce(np.add, parts)
        return covariances

    @property
    def _columns(self) -> list[slice]:
        return columns_of(self.sizes or (len(self.scales),))


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor `lower`, (n, n), of the covariance of n known values, noise included."""

    lower: Array

    @classmethod
    def of(cls, covariance: Array, noise: Array) -> "Factor":
        """Factorise the covariance, (n, n), of a function at n points plus the variances of noise there, (n,).

        Raises:
            LinAlgError: it is not positive definite.
        """
        return cls(np.linalg.cholesky(covariance + np.diag(noise + JITTER)))

    def weights(self, values: Array) -> Array:
        """Return what to multiply covariances with known points by, (n, ...), for the mean given `values`, (n, ...)."""
        solved: Array = scipy.linalg.cho_solve((self.lower, True), values, check_finite=False)
        return solved

    def roots(self, cross: Array) -> Array:
        """Return columns, (n, m), for covariances with known points `cross`, (n, m).

        Their inner products are by how much what is known lowers the covariances.
        """
        solved: Array = scipy.linalg.solve_triangular(self.lower, cross, lower=True, check_finite=False)
        return solved

    @property
    def inverse(self) -> Array:
        """The inverse of the covariance, (n, n); only its lower triangle is valid."""
        inverse: Array = scipy.linalg.lapack.dpotri(self.lower, lower=True)[0]
        return inverse

    @property
    def half_log_determinant(self) -> float:
        """Half the logarithm of the covariance's determinant."""
        return float(np.log(np.diag(self.lower)).sum())


@dataclass(frozen=True)
class Posterior:
    """What `process` expects of the noise-free function at `x`, (m, d): `mean` and `deviation`, (m,).

    `roots`, (n, m), are what covariances are computed from.
    """

    process: "GaussianProcess"
    x: Array
    mean: Array
    deviation: Array
    roots: Array

    def covariance(self, first: Places, second: Places) -> Array:
        """Return the covariances, (k, l), of the places `first`, (k,), and `second`, (l,)."""
        prior = self.process.kernel.between(self.x[first], self.x[second])
        covariance: Array = self.process.scale**2 * (prior - self.roots[:, first].T @ self.roots[:, second])
        return covariance

    def differences(self, first: Places, second: Places) -> tuple[Array, Array]:
        """Return the mean and the standard deviation, (k,), of `first` minus `second`, (k,), pair by pair.

        Both are 0 for a pair of equal places.
        """
        known = np.einsum("ij,ij->j", self.roots[:, first], self.roots[:, second])
        prior = self.process.kernel.covariance_by_row(self.x[first], self.x[second])
        covariance = self.process.scale**2 * (prior - known)
        variance = self.deviation[first] ** 2 + self.deviation[second] ** 2 - 2.0 * covariance
        deviation: Array = np.sqrt(np.maximum(variance, 0.0))
        return self.mean[first] - self.mean[second], np.where(first == second, 0.0, deviation)


@dataclass(frozen=True)
class GaussianProcess:
    """A process that knows `y`, (n,), of as many `runs`, (n,), at `x`, (n, d).

    `factor` is that of the known values, `weights` are (n,). `spread` is the standard deviation of values that was
    expected before there were any, 0 if nothing was.
    """

    kernel: Kernel
    x: Array
    y: Array
    runs: Array
    factor: Factor
    weights: Array
    mean: float
    scale: float
    spread: float = 0.0

    @classmethod
    def of(cls, kernel: Kernel, x: Array, y: Array, runs: Array, spread: float = 0.0) -> "GaussianProcess":
        """Return the process with this kernel."""
        mean, scale = _standard(y, spread)
        factor = Factor.of(kernel.between(x, x), kernel.noise / runs)
        return cls(kernel, x, y, runs, factor, factor.weights((y - mean) / scale), mean, scale, spread)

    @property
    def noise(self) -> float:
        """The variance of the noise of one run."""
        return self.kernel.noise * self.scale**2

    def at(self, x: Array) -> Posterior:
        """Return what is expected at `x`, (m, d)."""
        cross = self.kernel.between(x, self.x)
        roots = self.factor.roots(cross.T)
        variance = np.maximum(self.kernel.signal - np.einsum("ij,ij->j", roots, roots), _LEAST_VARIANCE)
        mean = self.mean + self.scale * (cross @ self.weights)
        return Posterior(self, x, mean, self.scale * np.sqrt(variance), roots)

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Return the mean and the standard deviation, both (m,), of the noise-free function at `x`, (m, d)."""
        posterior = self.at(x)
        return posterior.mean, posterior.deviation

    def roots(self, x: Array) -> Array:
        """Return the columns, (n, m), of `Factor.roots` for points `x`, (m, d)."""
        return self.factor.roots(self.kernel.between(self.x, x))

    def covariance(self, x: Array) -> Array:
        """Return the posterior covariances, (m, m), of the noise-free function at `x`, (m, d)."""
        roots = self.roots(x)
        covariance: Array = self.scale**2 * (self.kernel.between(x, x) - roots.T @ roots)
        return covariance

    def believing(self, x: Array) -> "GaussianProcess":
        """Return the process that takes its own mean at `x`, (m, d), for one run's value there (kriging believer)."""
        believed, _ = self.predict(x)
        return self.knowing(x, believed, np.ones(len(x)))

    def knowing(self, x: Array, y: Array, runs: Array) -> "GaussianProcess":
        """Return the process that also knows `y`, (m,), at `x`, (m, d)."""
        joined = ((self.x, x), (self.y, y), (self.runs, runs))
        x, y, runs = (np.concatenate(pair) for pair in joined)
        return GaussianProcess.of(self.kernel, x, y, runs, self.spread)


def fit(x: Array, y: Array, runs: Array | None = None, spread: float = 0.0) -> GaussianProcess:
    """Fit to values `y`, (n,), at points `x`, (n, d); each is the mean of as many `runs`, (n,)."""
    runs = np.ones(len(x)) if runs is None else runs
    chosen = best_and_newest(y, _LEARNT_FROM)
    return GaussianProcess.of(fit_kernel(x[chosen], y[chosen], runs[chosen], spread), x, y, runs, spread)


def fit_censored(x: Array, y: Array, runs: Array, censored: NDArray[np.bool_], spread: float = 0.0) -> GaussianProcess:
    """Fit to values; the `censored` ones, (n,), are lower bounds.

    Those enter as the mean of the normal distribution above the bound that the process predicts without them (Hutter,
    Hoos & Leyton-Brown, "Bayesian optimization with censored response data", 2011).
    """
    known = ~censored
    if not censored.any() or known.sum() < 2:
        return fit(x, y, runs, spread)
    without = fit(x[known], y[known], runs[known], spread)
    above, _ = above_bound(*without.predict(x[censored]), y[censored])
    return without.knowing(x[censored], above, runs[censored])


def fit_kernel(  # noqa: PLR0913  by keyword
    x: Array, y: Array, runs: Array, spread: float = 0.0, *, priors: Priors = PRIORS, sizes: Sequence[int] = ()
) -> Kernel:
    """Return the kernel at the maximum of its posterior, found from one start by L-BFGS-B.

    Args:
        x: points, (n, d).
        y: values there, (n,).
        runs: of how many runs each value is the mean, (n,).
        spread: the standard deviation that was expected of the values, 0 if nothing was.
        priors: the priors of the kernel.
        sizes: how many columns each part has; without, one part has all.
    """
    sizes = tuple(sizes) or (x.shape[1],)
    mean, scale = _standard(y, spread)
    posterior = MinusLogPosterior(x, sizes, (y - mean) / scale, runs, priors)
    start = np.concatenate(
        [
            *(np.full(size, log(0.5 * sqrt(max(size, 1)))) for size in sizes),
            [_NOISE_START, *(prior.middle for prior in priors.signals)],
        ]
    )
    each = [*[priors.scale] * x.shape[1], priors.noise, *priors.signals]
    bounds = [(prior.low, prior.high) for prior in each]
    optimum = scipy.optimize.minimize(
        posterior, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": priors.steps}
    ).x
    d = x.shape[1]
    signals = tuple(float(np.exp(signal)) for signal in optimum[d + 1 :])
    return Kernel(np.exp(optimum[:d]), signals, float(np.exp(optimum[d])), sizes)


class MinusLogPosterior:
    """Minus the logarithm of the posterior of a kernel, and its gradient.

    A kernel is the logarithms of its d length scales, of the noise, and of the variances of its parts.
    """

    def __init__(self, x: Array, sizes: Sequence[int], z: Array, runs: Array, priors: Priors) -> None:
        """Take points `x`, (n, d), the number of columns of each part, and standardised values `z`, (n,)."""
        self._z, self._runs, self._sizes = z, runs, sizes
        # Each pair of points once: the factorisation reads nothing above the diagonal.
        self._pairs = np.tril_indices(len(x), -1)
        first, second = self._pairs
        self._squares = [(x[first, part] - x[second, part]) ** 2 for part in columns_of(sizes)]
        middles = [np.full(size, priors.scale.middle + 0.5 * log(max(size, 1))) for size in self._sizes]
        others = [priors.noise, *priors.signals]
        self._middles = np.concatenate([*middles, [prior.middle for prior in others]])
        spreads = [priors.scale.spread] * sum(self._sizes) + [prior.spread for prior in others]
        self._spreads = np.array(spreads)

    def __call__(self, kernel: Array) -> tuple[float, Array]:
        """Return the value and the gradient, (k,), at the logarithms `kernel`, (k,)."""
        d = sum(self._sizes)
        noises = np.exp(kernel[d]) / self._runs
        parts, slopes = [], []
        for squares, columns, log_signal in zip(self._squares, columns_of(self._sizes), kernel[d + 1 :], strict=True):
            signal, inverse = np.exp(log_signal), np.exp(-2.0 * kernel[columns])
            s = np.sqrt(5.0 * (squares @ inverse))
            decay = np.exp(-s)
            correlations = (1.0 + s + s * s / 3.0) * decay
            parts.append((signal, correlations))
            slopes.append((signal * (-5.0 / 6.0) * (1.0 + s) * decay, inverse))
        try:
            factor = Factor.of(self._covariance(parts), noises)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(kernel)
        weights = factor.weights(self._z)
        precision, (first, second) = factor.inverse, self._pairs
        diagonal = np.diag(precision) - weights * weights
        of_pairs = precision[first, second] - weights[first] * weights[second]
        gradient = np.empty_like(kernel)
        for squares, columns, (by_distance, inverse) in zip(
            self._squares, columns_of(self._sizes), slopes, strict=True
        ):
            gradient[columns] = -2.0 * ((of_pairs * by_distance) @ squares) * inverse
        gradient[d] = 0.5 * float(diagonal @ noises)
        gradient[d + 1 :] = [
            (0.5 * diagonal.sum() + float(of_pairs @ correlations)) * signal for signal, correlations in parts
        ]
        value = 0.5 * float(self._z @ weights) + factor.half_log_determinant
        away = (kernel - self._middles) / self._spreads
        return value + 0.5 * float(away @ away), gradient + away / self._spreads

    def _covariance(self, parts: Sequence[tuple[float, Array]]) -> Array:
        """Return the lower triangle of the covariance, (n, n); parts have a variance and the correlations of pairs."""
        covariance = np.diag(np.full(len(self._z), sum(signal for signal, _ in parts)))
        covariance[self._pairs] = reduce(np.add, (signal * correlations for signal, correlations in parts))
        return covariance


def columns_of(sizes: Sequence[int]) -> list[slice]:
    """Return the columns of each part."""
    return [slice(first, end) for first, end in pairwise(accumulate(sizes, initial=0))]


def correlation(a: Array, b: Array, scales: Array) -> Array:
    """Return the correlations, (n, m), of traits `a`, (n, d), and `b`, (m, d), with length scales (d,)."""
    root_5 = sqrt(5.0)
    distances = squared_distances(a * (root_5 / scales), b * (root_5 / scales))
    return _matern(np.sqrt(distances, out=distances))


def _matern(s: Array) -> Array:
    correlations: Array = s / 3.0
    correlations += 1.0
    correlations *= s
    correlations += 1.0
    correlations *= np.exp(-s)
    return correlations


def squared_distances(a: Array, b: Array) -> Array:
    """Return the squared distances, (n, m), between the rows of `a`, (n, d), and of `b`, (m, d)."""
    # In place, since for thousands of candidates the memory of each step takes longer than its arithmetic.
    distances: Array = a @ b.T
    distances *= -2.0
    distances += (a * a).sum(1)[:, None]
    distances += (b * b).sum(1)
    return np.maximum(distances, 0.0, out=distances)


def above_bound(mean: Array, deviation: Array, bound: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation, both (n,), of a normal variable that is known to be above `bound`, (n,)."""
    z = np.minimum((bound - mean) / deviation, _FARTHEST)
    rate = np.exp(-0.5 * z * z) / sqrt(2 * pi) / scipy.special.ndtr(-z)
    variance = np.maximum(1.0 + z * rate - rate * rate, 0.0)
    return np.maximum(mean + deviation * rate, bound), deviation * np.sqrt(variance)


def best_and_newest(values: Array, most: int) -> NDArray[np.intp]:
    """Return the indexes of the `values`, (n,), that are not NaN; of more than `most` only the best and the newest."""
    known = np.flatnonzero(~np.isnan(values))
    if len(known) <= most:
        return known
    half = most // 2
    best = known[np.argsort(values[known], kind="stable")[:half]]
    return np.union1d(best, known[-half:])


def _standard(y: Array, spread: float) -> tuple[float, float]:
    """Return mean and standard deviation; what was expected of the latter counts as much as `_EXPECTED` values."""
    if spread > 0.0:
        squares = float(np.var(y)) * len(y) + spread**2 * _EXPECTED
        return float(np.mean(y)), sqrt(squares / (len(y) + _EXPECTED))
    return float(np.mean(y)), float(np.std(y)) or 1.0
