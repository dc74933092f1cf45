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
_NOISES = (1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class Surrogate:
    """A fitted process. `x` is (n, d), `factor` the (n, n) Cholesky factor, `weights` (n,)."""

    x: Array
    factor: Array
    weights: Array
    length_scale: float
    mean: float
    scale: float

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Return the mean and the standard deviation, both (m,), of the noise-free function at `x`, (m, d)."""
        cross = _kernel(x, self.x, self.length_scale)
        half = solve_triangular(self.factor, cross.T, lower=True)
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", half, half), 1e-12)
        return self.mean + self.scale * (cross @ self.weights), self.scale * np.sqrt(variance)


def fit(x: Array, y: Array) -> Surrogate:
    """Fit to values `y`, (n,), at encoded configurations `x`, (n, d)."""
    mean, scale = float(np.mean(y)), float(np.std(y)) or 1.0
    target = (y - mean) / scale
    distance = _distance(x, x)
    best: tuple[float, Array, Array, float] | None = None
    for length_scale in _LENGTH_SCALES:
        correlation = _matern(distance / (length_scale * sqrt(x.shape[1])))
        for noise in _NOISES:
            factor = np.linalg.cholesky(correlation + noise * np.eye(len(x)))
            half = solve_triangular(factor, target, lower=True)
            evidence = -0.5 * float(half @ half) - float(np.log(np.diag(factor)).sum())
            if best is None or evidence > best[0]:
                best = (evidence, factor, solve_triangular(factor, half, lower=True, trans="T"), length_scale)
    if best is None:
        msg = "a surrogate needs at least one length scale and one noise"
        raise ValueError(msg)
    _, factor, weights, length_scale = best
    return Surrogate(x, factor, weights, length_scale, mean, scale)


def expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return how much each point is expected to lie below `best`; all (m,), for minimisation."""
    z = (best - mean) / deviation
    density = np.exp(-0.5 * z * z) / sqrt(2 * pi)
    return (best - mean) * ndtr(z) + deviation * density


def _kernel(a: Array, b: Array, length_scale: float) -> Array:
    return _matern(_distance(a, b) / (length_scale * sqrt(a.shape[1])))


def _distance(a: Array, b: Array) -> Array:
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * (a @ b.T)
    distance: Array = np.sqrt(np.maximum(squared, 0.0))
    return distance


def _matern(r: Array) -> Array:
    s = sqrt(5.0) * r
    correlation: Array = (1.0 + s + s * s / 3.0) * np.exp(-s)
    return correlation
