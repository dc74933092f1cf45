"""A Gaussian process on encoded configurations, and the expected improvement over the best so far.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1; Matern 5/2 kernel with one length
scale, chosen with the noise by the marginal likelihood on a small grid; expected improvement as in Jones, Schonlau &
Welch (1998), eq. 15.
"""

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtr

Array = NDArray[np.floating]

_LENGTH_SCALES = (0.2, 0.5, 1.0, 2.0)
_NOISES = (1e-3, 1e-2, 1e-1, 0.3)
# Beyond that many standard deviations the mean above a bound is the bound itself, in double precision.
_FARTHEST = 8.0


@dataclass(frozen=True)
class Surrogate:
    """A process fitted to `y`, (n,), at `x`, (n, d); `factor` is the (n, n) Cholesky factor, `weights` are (n,)."""

    x: Array
    y: Array
    factor: Array
    weights: Array
    length_scale: float
    mean: float
    scale: float

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Return the mean and the standard deviation, both (m,), of the noise-free function at `x`, (m, d)."""
        cross = kernel(x, self.x, self.length_scale)
        half = solve_triangular(self.factor, cross.T, lower=True)
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", half, half), 1e-12)
        return self.mean + self.scale * (cross @ self.weights), self.scale * np.sqrt(variance)


def fit(x: Array, y: Array, runs: Array | None = None) -> Surrogate:
    """Fit to values `y`, (n,), at encoded configurations `x`, (n, d); each is the mean of as many `runs`, (n,)."""
    shares = np.ones(len(x)) if runs is None else 1.0 / runs
    mean, scale = float(np.mean(y)), float(np.std(y)) or 1.0
    target = (y - mean) / scale
    distance = _distance(x, x)
    best: tuple[float, Array, Array, float] | None = None
    for length_scale in _LENGTH_SCALES:
        correlation = _matern(distance / (length_scale * sqrt(x.shape[1])))
        for noise in _NOISES:
            factor = np.linalg.cholesky(correlation + noise * np.diag(shares))
            half = solve_triangular(factor, target, lower=True)
            evidence = -0.5 * float(half @ half) - float(np.log(np.diag(factor)).sum())
            if best is None or evidence > best[0]:
                best = (evidence, factor, solve_triangular(factor, half, lower=True, trans="T"), length_scale)
    if best is None:
        msg = "a surrogate needs at least one length scale and one noise"
        raise ValueError(msg)
    _, factor, weights, length_scale = best
    return Surrogate(x, y, factor, weights, length_scale, mean, scale)


def fit_censored(x: Array, y: Array, runs: Array, censored: NDArray[np.bool_]) -> Surrogate:
    """Fit to values of which the `censored` ones, (n,), are lower bounds.

    Those enter as the mean of the normal distribution above the bound that the process predicts without them (Hutter,
    Hoos & Leyton-Brown, "Bayesian optimization with censored response data", 2011).
    """
    known = ~censored
    if not censored.any() or known.sum() < 2:
        return fit(x, y, runs)
    mean, deviation = fit(x[known], y[known], runs[known]).predict(x[censored])
    z = np.minimum((y[censored] - mean) / deviation, _FARTHEST)
    above = mean + deviation * np.exp(-0.5 * z * z) / sqrt(2 * pi) / ndtr(-z)
    filled = y.copy()
    filled[censored] = np.maximum(above, y[censored])
    return fit(x, filled, runs)


def expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return how much each point is expected to lie below `best`; all (m,), for minimisation."""
    z = (best - mean) / deviation
    density = np.exp(-0.5 * z * z) / sqrt(2 * pi)
    return (best - mean) * ndtr(z) + deviation * density


def kernel(a: Array, b: Array, length_scale: float) -> Array:
    """Return the correlations, (n, m), of encoded configurations `a`, (n, d), and `b`, (m, d)."""
    return _matern(_distance(a, b) / (length_scale * sqrt(a.shape[1])))


def _distance(a: Array, b: Array) -> Array:
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * (a @ b.T)
    distance: Array = np.sqrt(np.maximum(squared, 0.0))
    return distance


def _matern(r: Array) -> Array:
    s = sqrt(5.0) * r
    correlation: Array = (1.0 + s + s * s / 3.0) * np.exp(-s)
    return correlation
