"""A Gaussian process on traits of configurations, and the expected improvement over the best so far.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1 and section 5.4.1; Matern 5/2 kernel
with a length scale for each trait. These and the noise are at the maximum of their posterior; the prior of the length
scales grows with the number of traits, so that a process with many of them is no rougher than one with few (Hvarfner,
Hellsten & Nardi, "Vanilla Bayesian Optimization Performs Great in High Dimensions", ICML 2024, but one e-fold shorter,
which did better on measured spaces: see docs/search.md). Expected improvement: Jones, Schonlau & Welch (1998), eq. 15,
as a logarithm, which still tells where it is tiny (Ament et al., NeurIPS 2023).
"""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtr

Array = NDArray[np.floating]

# Priors of the logarithms of length scales (spread), noise variance and signal variance, of standardised values.
_SCALE_SPREAD = 1.5
_NOISE, _NOISE_SPREAD = -6.0, 2.0
_SIGNAL_SPREAD = 1.0
_BOUNDS = {"scale": (-4.0, 5.0), "noise": (-14.0, 0.0), "signal": (-3.0, 3.0)}
_STEPS = 40
_JITTER = 1e-6
_EXPECTED = 2
# Curvatures are differences of slopes over this step of a logarithm.
_STEP = 1e-3
# Length scales are learnt from at most this number of the best and newest values; the process knows more.
_LEARNT_FROM = 100
# Beyond this number of standard deviations the mean above a bound is the bound itself, in double precision.
_FARTHEST = 8.0
# From there on an asymptotic series of the improvement is used: the difference of its terms is lost in rounding.
_TAIL = -5.0


@dataclass(frozen=True)
class Kernel:
    """Length scales (d,), the variance of the function and that of one run's noise, of standardised values."""

    scales: Array
    signal: float
    noise: float

    def between(self, a: Array, b: Array) -> Array:
        """Return the covariances, (n, m), of traits `a`, (n, d), and `b`, (m, d)."""
        return self.signal * correlation(a, b, self.scales)


@dataclass(frozen=True)
class GaussianProcess:
    """A process that knows `y`, (n,), of as many `runs`, (n,), at `x`, (n, d).

    `factor` is the (n, n) Cholesky factor, `weights` are (n,). `spread` is the standard deviation of values that was
    expected before there were any, 0 if nothing was.
    """

    kernel: Kernel
    x: Array
    y: Array
    runs: Array
    factor: Array
    weights: Array
    mean: float
    scale: float
    spread: float = 0.0

    @classmethod
    def of(cls, kernel: Kernel, x: Array, y: Array, runs: Array, spread: float = 0.0) -> "GaussianProcess":
        """Return the process with this kernel."""
        mean, scale = _standard(y, spread)
        covariance = kernel.between(x, x) + np.diag(kernel.noise / runs + _JITTER)
        factor = np.linalg.cholesky(covariance)
        weights = cho_solve((factor, True), (y - mean) / scale, check_finite=False)
        return cls(kernel, x, y, runs, factor, weights, mean, scale, spread)

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Return the mean and the standard deviation, both (m,), of the noise-free function at `x`, (m, d)."""
        cross = self.kernel.between(x, self.x)
        half = solve_triangular(self.factor, cross.T, lower=True, check_finite=False)
        variance = np.maximum(self.kernel.signal - np.einsum("ij,ij->j", half, half), 1e-12)
        return self.mean + self.scale * (cross @ self.weights), self.scale * np.sqrt(variance)

    def covariance(self, x: Array) -> Array:
        """Return the posterior covariances, (m, m), of the noise-free function at `x`, (m, d)."""
        half = solve_triangular(self.factor, self.kernel.between(self.x, x), lower=True, check_finite=False)
        covariance: Array = self.scale**2 * (self.kernel.between(x, x) - half.T @ half)
        return covariance

    def with_kernel(self, kernel: Kernel) -> "GaussianProcess":
        """Return the process that knows the same, with another kernel."""
        return GaussianProcess.of(kernel, self.x, self.y, self.runs, self.spread)

    def drawn(self, x: Array, rng: np.random.Generator, count: int) -> Array:
        """Return `count` draws, (m, count), of the noise-free function at `x`, (m, d)."""
        mean, _ = self.predict(x)
        covariance = self.covariance(x)
        covariance[np.diag_indices(len(x))] += _JITTER * self.scale**2 * max(1.0, self.kernel.signal)
        draws: Array = mean[:, None] + np.linalg.cholesky(covariance) @ rng.standard_normal((len(x), count))
        return draws

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
    """Fit to values `y`, (n,), at traits `x`, (n, d); each is the mean of as many `runs`, (n,)."""
    runs = np.ones(len(x)) if runs is None else runs
    chosen = _telling(y)
    return GaussianProcess.of(_learnt(x[chosen], y[chosen], runs[chosen], spread), x, y, runs, spread)


def likely_kernels(process: GaussianProcess, rng: np.random.Generator, count: int) -> list[Kernel]:
    """Draw `count` kernels from their posterior, given what a fitted process knows.

    Around its maximum that is taken for normal (Laplace's approximation: MacKay, "Information Theory, Inference, and
    Learning Algorithms", 2003, chapter 27), in the logarithms of the parameters; no wider than the prior.
    """
    chosen = _telling(process.y)
    posterior = _posterior_of(process.x[chosen], process.y[chosen], process.runs[chosen], process.spread)
    kernel = process.kernel
    middle = np.log(np.r_[kernel.scales, kernel.noise, kernel.signal])
    _, slope = posterior(middle)
    steps = _STEP * np.eye(len(middle))
    curvature = np.array([posterior(middle + step)[1] - slope for step in steps]) / _STEP
    precisions, directions = np.linalg.eigh((curvature + curvature.T) / 2.0)
    away = rng.standard_normal((count, len(middle))) / np.sqrt(np.maximum(precisions, _NOISE_SPREAD**-2.0))
    low, high = np.array(_bounds(len(kernel.scales))).T
    drawn = np.exp(np.clip(middle + away @ directions.T, low, high))
    return [Kernel(one[:-2], float(one[-1]), float(one[-2])) for one in drawn]


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


def log_expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return the logarithm of how much each point is expected to lie below `best`; all (m,), for minimisation."""
    z = (best - mean) / deviation
    near = np.maximum(z, _TAIL)
    density = np.exp(-0.5 * near * near) / sqrt(2 * pi)
    body = np.log(density + near * ndtr(near))
    far = np.minimum(z, _TAIL)
    tail = -0.5 * far * far - 0.5 * log(2 * pi) - 2.0 * np.log(-far)
    logarithm: Array = np.where(z > _TAIL, body, tail) + np.log(deviation)
    return logarithm


def correlation(a: Array, b: Array, scales: Array) -> Array:
    """Return the correlations, (n, m), of traits `a`, (n, d), and `b`, (m, d), with length scales (d,)."""
    s = np.sqrt(5.0 * squared_distances(a / scales, b / scales))
    correlations: Array = (1.0 + s + s * s / 3.0) * np.exp(-s)
    return correlations


def squared_distances(a: Array, b: Array) -> Array:
    """Return the squared distances, (n, m), between the rows of `a`, (n, d), and of `b`, (m, d)."""
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * (a @ b.T)
    distances: Array = np.maximum(squared, 0.0)
    return distances


def above_bound(mean: Array, deviation: Array, bound: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation, both (n,), of a normal variable that is known to be above `bound`, (n,)."""
    z = np.minimum((bound - mean) / deviation, _FARTHEST)
    rate = np.exp(-0.5 * z * z) / sqrt(2 * pi) / ndtr(-z)
    variance = np.maximum(1.0 + z * rate - rate * rate, 0.0)
    return np.maximum(mean + deviation * rate, bound), deviation * np.sqrt(variance)


def _standard(y: Array, spread: float) -> tuple[float, float]:
    """Return mean and standard deviation; what was expected of the latter counts as much as `_EXPECTED` values."""
    if spread > 0.0:
        squares = float(np.var(y)) * len(y) + spread**2 * _EXPECTED
        return float(np.mean(y)), sqrt(squares / (len(y) + _EXPECTED))
    return float(np.mean(y)), float(np.std(y)) or 1.0


def _telling(y: Array) -> NDArray[np.intp]:
    if len(y) <= _LEARNT_FROM:
        return np.arange(len(y))
    half = _LEARNT_FROM // 2
    return np.union1d(np.argsort(y, kind="stable")[:half], np.arange(len(y) - half, len(y)))


def _learnt(x: Array, y: Array, runs: Array, spread: float) -> Kernel:
    """Return the kernel at the maximum of its posterior, found from one start by L-BFGS-B."""
    d = x.shape[1]
    posterior = _posterior_of(x, y, runs, spread)
    start, bounds = np.r_[np.full(d, log(0.5 * sqrt(d))), -4.0, 0.0], _bounds(d)
    optimum = minimize(posterior, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS}).x
    return Kernel(np.exp(optimum[:d]), float(np.exp(optimum[d + 1])), float(np.exp(optimum[d])))


def _bounds(traits: int) -> list[tuple[float, float]]:
    """Return the bounds of a kernel's logarithms: length scales, noise, signal."""
    return [*[_BOUNDS["scale"]] * traits, _BOUNDS["noise"], _BOUNDS["signal"]]


def _posterior_of(x: Array, y: Array, runs: Array, spread: float) -> "_Posterior":
    n, d = x.shape
    mean, scale = _standard(y, spread)
    return _Posterior(((x[:, None, :] - x[None, :, :]) ** 2).reshape(n * n, d), (y - mean) / scale, runs)


@dataclass(frozen=True)
class _Posterior:
    """Minus the logarithm of the posterior of a kernel, and its gradient.

    `squares`, (n * n, d), are the squared differences of traits, `z`, (n,), standardised values. A kernel is the
    logarithms of its d length scales, of the noise and of the signal.
    """

    squares: Array
    z: Array
    runs: Array

    def __call__(self, kernel: Array) -> tuple[float, Array]:
        n, d = len(self.z), self.squares.shape[1]
        scales, noise, signal = kernel[:d], np.exp(kernel[d]), np.exp(kernel[d + 1])
        inverse = np.exp(-2.0 * scales)
        s = np.sqrt(5.0 * (self.squares @ inverse).reshape(n, n))
        decay = np.exp(-s)
        correlations = (1.0 + s + s * s / 3.0) * decay
        noises = noise / self.runs
        try:
            factor = np.linalg.cholesky(signal * correlations + np.diag(noises + _JITTER))
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(kernel)
        weights = cho_solve((factor, True), self.z, check_finite=False)
        slope = cho_solve((factor, True), np.eye(n), check_finite=False) - np.outer(weights, weights)
        gradient = np.empty_like(kernel)
        by_distance = slope * (signal * (-5.0 / 6.0) * (1.0 + s) * decay)
        gradient[:d] = -(by_distance.reshape(-1) @ self.squares) * inverse
        gradient[d] = 0.5 * float(np.diag(slope) @ noises)
        gradient[d + 1] = 0.5 * float((slope * correlations).sum()) * signal
        value = 0.5 * float(self.z @ weights) + float(np.log(np.diag(factor)).sum())
        middles = np.r_[np.full(d, sqrt(2.0) - 1.0 + 0.5 * log(d)), _NOISE, 0.0]
        spreads = np.r_[np.full(d, _SCALE_SPREAD), _NOISE_SPREAD, _SIGNAL_SPREAD]
        away = (kernel - middles) / spreads
        return value + 0.5 * float(away @ away), gradient + away / spreads
