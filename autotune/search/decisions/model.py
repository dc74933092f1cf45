"""The model of a decision table: the logarithm of the cost of every setting in every cell, from all runs together.

A Gaussian process with two parts: what a context and a point (message size) cost whatever the setting, and what a
setting differs from that, which changes smoothly with context and point. So neighbours in size and ranks share what
they know, and so do settings that are alike. It is the model of Krause and Ong, "Contextual Gaussian process bandit
optimization" (NeurIPS 2011), section 5.2: an additive kernel over contexts and actions. A straight line in the
contexts' traits is removed first: a cost that grows by decades is no noise.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from autotune.statistics.gaussian_process import Array, correlation

Places = NDArray[np.integer]

_SCALE_SPREAD = 1.0
_SIGNALS = (0.0, -1.0)
_SIGNAL_SPREAD = 1.5
_NOISE, _NOISE_SPREAD = -4.0, 2.0
_BOUNDS = {"scale": (-3.0, 4.0), "signal": (-7.0, 3.0), "noise": (-10.0, 1.0)}
_STEPS = 30
_LEARNT_FROM = 120
_JITTER = 1e-6
_RIDGE = 1e-3


@dataclass(frozen=True)
class Known:
    """Values, (n,), of the logarithm of the cost: `contexts`, (n, a), and `traits`, (n, b), say of what."""

    contexts: Array
    traits: Array
    y: Array
    runs: Array

    def __len__(self) -> int:
        """How many values there are."""
        return len(self.y)

    def some(self, places: Places) -> "Known":
        """Return those at these places."""
        return Known(self.contexts[places], self.traits[places], self.y[places], self.runs[places])


@dataclass(frozen=True)
class Kernel:
    """Length scales of both parts, (a,) and (b,), and the variances of the parts and of one run's noise."""

    context_scales: Array
    scales: Array
    common: float
    own: float
    noise: float

    def between(self, a: tuple[Array, Array], b: tuple[Array, Array]) -> Array:
        """Return the covariances, (n, m), of contexts and traits `a` and `b`."""
        shared = self.common * correlation(a[0], b[0], self.context_scales)
        covariance: Array = shared + self.own * correlation(a[1], b[1], self.scales)
        return covariance


@dataclass(frozen=True)
class TableModel:
    """A process that knows values; `line`, (a + 1,), is the straight line in the contexts, in units of the values."""

    kernel: Kernel
    known: Known
    line: Array
    scale: float
    factor: Array
    weights: Array

    @property
    def noise(self) -> float:
        """The variance of one run's logarithm."""
        return self.kernel.noise * self.scale**2

    @classmethod
    def of(cls, kernel: Kernel, known: Known) -> "TableModel":
        """Return the process with this kernel."""
        line, rest, scale = _straightened(known)
        own = (known.contexts, known.traits)
        covariance = kernel.between(own, own) + np.diag(kernel.noise / known.runs + _JITTER)
        factor = np.linalg.cholesky(covariance)
        return cls(kernel, known, line, scale, factor, cho_solve((factor, True), rest / scale, check_finite=False))

    def at(self, contexts: Array, traits: Array) -> "Posterior":
        """Return what is known at `contexts`, (m, a), with `traits`, (m, b)."""
        cross = self.kernel.between((contexts, traits), (self.known.contexts, self.known.traits))
        half = solve_triangular(self.factor, cross.T, lower=True, check_finite=False)
        mean = _design(contexts) @ self.line + self.scale * (cross @ self.weights)
        variance = self.kernel.common + self.kernel.own - np.einsum("ij,ij->j", half, half)
        return Posterior(self, contexts, traits, mean, self.scale**2 * np.maximum(variance, 1e-9), half)


@dataclass(frozen=True)
class Posterior:
    """Means and variances, (m,), of logarithms of costs; `half`, (n, m), is what covariances are computed from."""

    model: TableModel
    contexts: Array
    traits: Array
    mean: Array
    variance: Array
    half: Array

    def covariance(self, first: Places, second: Places) -> Array:
        """Return the covariances, (k, l), of the places `first`, (k,), and `second`, (l,)."""
        one, other = ((self.contexts[places], self.traits[places]) for places in (first, second))
        prior = self.model.kernel.between(one, other)
        covariance: Array = self.model.scale**2 * (prior - self.half[:, first].T @ self.half[:, second])
        return covariance

    def differences(self, first: Places, second: Places) -> tuple[Array, Array]:
        """Return the mean and the standard deviation, (k,), of how much more `first` costs than `second`, pair by pair.

        Of a pair of equal places both are 0.
        """
        kernel = self.model.kernel
        both = np.einsum("ij,ij->j", self.half[:, first], self.half[:, second])
        shared = kernel.common * _paired(self.contexts[first], self.contexts[second], kernel.context_scales)
        own = kernel.own * _paired(self.traits[first], self.traits[second], kernel.scales)
        covariance = self.model.scale**2 * (shared + own - both)
        variance = self.variance[first] + self.variance[second] - 2.0 * covariance
        deviation: Array = np.sqrt(np.maximum(variance, 0.0))
        return self.mean[first] - self.mean[second], np.where(first == second, 0.0, deviation)


def learnt(known: Known, rng: np.random.Generator) -> Kernel:
    """Return the kernel at the maximum of its posterior, found from one start by L-BFGS-B."""
    if len(known) > _LEARNT_FROM:
        known = known.some(rng.choice(len(known), _LEARNT_FROM, replace=False))
    _, rest, scale = _straightened(known)
    a, b = known.contexts.shape[1], known.traits.shape[1]
    middles = np.r_[np.full(a, _middle(a)), np.full(b, _middle(b)), _SIGNALS, _NOISE]
    spreads = np.r_[np.full(a + b, _SCALE_SPREAD), [_SIGNAL_SPREAD] * 2, _NOISE_SPREAD]
    bounds = [*[_BOUNDS["scale"]] * (a + b), *[_BOUNDS["signal"]] * 2, _BOUNDS["noise"]]
    posterior = _MinusLogPosterior(known, rest / scale, middles, spreads)
    found = minimize(posterior, middles, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS}).x
    common, own, noise = np.exp(found[a + b :])
    return Kernel(np.exp(found[:a]), np.exp(found[a : a + b]), float(common), float(own), float(noise))


class _MinusLogPosterior:
    """Minus the logarithm of the posterior of a kernel, and its gradient: all of it by logarithms."""

    def __init__(self, known: Known, z: Array, middles: Array, spreads: Array) -> None:
        self._squares = [_squares(known.contexts), _squares(known.traits)]
        self._z, self._runs, self._middles, self._spreads = z, known.runs, middles, spreads

    def __call__(self, kernel: Array) -> tuple[float, Array]:
        n = len(self._z)
        sizes = [squares.shape[1] for squares in self._squares]
        scales = np.split(kernel[: sum(sizes)], [sizes[0]])
        signals, noise = np.exp(kernel[-3:-1]), np.exp(kernel[-1])
        covariance, slopes = np.diag(noise / self._runs + _JITTER), []
        parts = []
        for squares, logs, signal in zip(self._squares, scales, signals, strict=True):
            inverse = np.exp(-2.0 * logs)
            s = np.sqrt(5.0 * (squares @ inverse).reshape(n, n))
            decay = np.exp(-s)
            parts.append(signal * (1.0 + s + s * s / 3.0) * decay)
            slopes.append((signal * (-5.0 / 6.0) * (1.0 + s) * decay, inverse))
            covariance = covariance + parts[-1]
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(kernel)
        weights = cho_solve((factor, True), self._z, check_finite=False)
        slope = cho_solve((factor, True), np.eye(n), check_finite=False) - np.outer(weights, weights)
        gradient = [
            -((slope * by_distance).reshape(-1) @ squares) * inverse
            for squares, (by_distance, inverse) in zip(self._squares, slopes, strict=True)
        ]
        ends = [0.5 * float((slope * part).sum()) for part in parts]
        ends.append(0.5 * float(np.diag(slope) @ (noise / self._runs)))
        away = (kernel - self._middles) / self._spreads
        value = 0.5 * float(self._z @ weights) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(away @ away)
        return value, np.concatenate([*gradient, ends]) + away / self._spreads


def _squares(traits: Array) -> Array:
    n, d = traits.shape
    squares: Array = ((traits[:, None, :] - traits[None, :, :]) ** 2).reshape(n * n, d)
    return squares


def _paired(a: Array, b: Array, scales: Array) -> Array:
    """Return the correlations, (n,), of the rows of `a` and of `b`, (n, d), pair by pair."""
    s = np.sqrt(5.0 * (((a - b) / scales) ** 2).sum(axis=1))
    correlations: Array = (1.0 + s + s * s / 3.0) * np.exp(-s)
    return correlations


def _middle(count: int) -> float:
    return log(0.5 * sqrt(max(count, 1)))


def _design(contexts: Array) -> Array:
    return np.column_stack([np.ones(len(contexts)), contexts])


def _straightened(known: Known) -> tuple[Array, Array, float]:
    """Return the straight line of least squares, what it leaves, (n,), and the scale of that."""
    design = _design(known.contexts)
    ridge = _RIDGE * len(known) * np.eye(design.shape[1])
    ridge[0, 0] = 0.0
    middle = float(known.y.mean())
    line = np.linalg.solve(design.T @ design + ridge + _JITTER * np.eye(len(ridge)), design.T @ (known.y - middle))
    line[0] += middle
    rest = known.y - design @ line
    return line, rest, float(np.std(rest)) or 1.0
