"""How curves go on: forecasts of what trainings reach, from how far each has come and from each other.

A Gaussian process over trials and steps, after freeze-thaw Bayesian optimisation (Swersky, Snoek & Adams, "Freeze-thaw
Bayesian optimization", arXiv:1406.3896, 2014): a curve is a level, which it approaches, plus a decay, a mixture of
exponentials of the step. Trials that are alike have similar levels and decays (Matern 5/2 of their traits), each has a
share of its own besides, and all have one in common. What is modelled are costs, lower is better, the best up to a
step. Parameters are at the maximum of their posterior.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from autotune.search.gaussian_process import correlation

Array = NDArray[np.floating]
Places = NDArray[np.intp]

# Priors of logarithms, centre and spread: a trial's own share, variances of levels, decays and noise, and at last the
# half life, which is thought to be about a quarter of the most steps; length scales are as for other processes.
_CENTRES = (log(0.1), log(0.5), log(0.5), log(1e-3))
_SPREADS = (1.5, 1.0, 1.0, 1.5, 1.0)
_SCALE_SPREAD = 1.5
_BOUNDS = ((-6.0, 2.0), (-5.0, 3.0), (-5.0, 3.0), (-12.0, 0.0))
_SCALE_BOUNDS = (-4.0, 5.0)
_ITERATIONS = 40
_JITTER = 1e-6


@dataclass(frozen=True)
class Points:
    """Points of curves: of which `trial` each is, (n,), a row of a table of traits, and after which `step`, (n,)."""

    trial: Places
    step: Array


@dataclass(frozen=True)
class Shape:
    """The parameters of the process, of standardised costs; `scales`, (d,), are those of traits.

    `own` is the share of level and decay that a trial has to itself; `level`, `decay` and `noise` are variances;
    after `half` steps half of a decay is over.
    """

    scales: Array
    own: float
    level: float
    decay: float
    noise: float
    half: float

    @classmethod
    def of(cls, logarithms: Array) -> "Shape":
        """Return the parameters of which these are the logarithms, (d + 5,)."""
        own, level, decay, noise, half = (float(one) for one in np.exp(logarithms[-5:]))
        return cls(np.exp(logarithms[:-5]), own, level, decay, noise, half)

    def between(self, alike: Array, a: Points, b: Points) -> Array:
        """Return the covariances, (n, m), of points of trials that are as much `alike`, (n, m)."""
        left = self.half / (a.step[:, None] + b.step[None, :] + self.half)
        shared = alike + self.own * (a.trial[:, None] == b.trial[None, :])
        covariance: Array = 1.0 + left + shared * (self.level + self.decay * left)
        return covariance

    def within(self, a: Array, b: Array) -> Array:
        """Return the covariances, (n,), of two points of one trial, after steps `a` and `b`, both (n,)."""
        left = self.half / (a + b + self.half)
        covariance: Array = 1.0 + left + (1.0 + self.own) * (self.level + self.decay * left)
        return covariance


@dataclass(frozen=True)
class Forecast:
    """What trials are expected to reach, (m,): mean, standard deviation, and how much of that a look would tell."""

    mean: Array
    spread: Array
    told: Array


@dataclass(frozen=True)
class LearningCurves:
    """The process that knows `points` of trials with traits `x`, (t, d); `factor` is the (n, n) Cholesky factor."""

    x: Array
    points: Points
    shape: Shape
    factor: Array
    weights: Array
    mean: float
    scale: float
    widened: float

    @classmethod
    def of(cls, x: Array, points: Points, costs: Array, most: int) -> "LearningCurves":
        """Learn from the costs, (n,), of points of trials, which make at most so many steps."""
        mean, scale = float(np.mean(costs)), float(np.std(costs)) or 1.0
        y = (costs - mean) / scale
        posterior = _Posterior.of(x, points, y, most)
        d = x.shape[1]
        start = np.r_[np.full(d, log(0.5)), posterior.centres[d:]]
        bounds = [*[_SCALE_BOUNDS] * d, *_BOUNDS, (log(0.25), log(4.0 * most + 1.0))]
        found = minimize(posterior, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS})
        shape = Shape.of(found.x)
        alike = correlation(x, x, shape.scales)[np.ix_(points.trial, points.trial)]
        factor = np.linalg.cholesky(shape.between(alike, points, points) + np.eye(len(y)) * (shape.noise + _JITTER))
        weights = cho_solve((factor, True), y, check_finite=False)
        return cls(x, points, shape, factor, weights, mean, scale, _widened(factor, weights, points))

    def forecast(self, x: Array, looks: Array, most: int, trials: Places | None = None) -> Forecast:
        """Foretell what trials with traits `x`, (m, d), reach after `most` steps, and what looks at steps (m,) tell.

        `trials`, (m,), are their rows in the table of traits; without, they have not begun.
        """
        who = np.arange(len(x)) + len(self.x) if trials is None else trials
        ends, looked = Points(who, np.full(len(x), float(most))), Points(who, looks)
        alike = correlation(x, self.x, self.shape.scales)[:, self.points.trial]
        to_end, to_look = (self.shape.between(alike, one, self.points) for one in (ends, looked))
        at_end, at_look = (
            solve_triangular(self.factor, one.T, lower=True, check_finite=False) for one in (to_end, to_look)
        )
        variance = np.maximum(self.shape.within(ends.step, ends.step) - (at_end**2).sum(axis=0), 1e-12)
        seen = self.shape.within(looks, looks) - (at_look**2).sum(axis=0) + self.shape.noise + _JITTER
        shared = self.shape.within(ends.step, looks) - (at_end * at_look).sum(axis=0)
        told = np.minimum(shared**2 / np.maximum(seen, 1e-12), variance)
        scale, mean = self.scale * self.widened, self.mean + self.scale * (to_end @ self.weights)
        return Forecast(mean, scale * np.sqrt(variance), scale * np.sqrt(told))


def _widened(factor: Array, weights: Array, points: Points) -> float:
    """Return how much wider spreads have to be, by how well the last point of each curve is foretold from its first.

    The block of the others is left out by its inverse covariance (Rasmussen & Williams 2006, section 5.4.2).
    """
    inverse = cho_solve((factor, True), np.eye(len(weights)), check_finite=False)
    squares = [1.0]
    for trial in np.unique(points.trial):
        places = np.flatnonzero(points.trial == trial)
        block = places[(len(places) + 1) // 2 :]
        if len(block):
            covariance = np.linalg.inv(inverse[np.ix_(block, block)])
            error = covariance @ weights[block]
            squares.append(float(error[-1] ** 2 / covariance[-1, -1]))
    return max(1.0, sqrt(sum(squares) / len(squares)))


@dataclass(frozen=True)
class _Posterior:
    """Minus the logarithm of the posterior of a shape, and its gradient, by the logarithms of its parameters.

    `squares`, (t * t, d), are the squared differences of traits; `sums` and `same`, (n, n), are sums of steps, and
    whether points are of one trial; `centres` are those of the prior.
    """

    squares: Array
    points: Points
    sums: Array
    same: NDArray[np.bool_]
    y: Array
    centres: Array

    @classmethod
    def of(cls, x: Array, points: Points, y: Array, most: int) -> "_Posterior":
        t, d = x.shape
        centres = np.r_[np.full(d, 0.5 + 0.5 * log(max(d, 1))), _CENTRES, log(most / 4.0)]
        squares = ((x[:, None, :] - x[None, :, :]) ** 2).reshape(t * t, d)
        sums = points.step[:, None] + points.step[None, :]
        return cls(squares, points, sums, points.trial[:, None] == points.trial[None, :], y, centres)

    def __call__(self, logarithms: Array) -> tuple[float, Array]:
        shape, d, trial = Shape.of(logarithms), self.squares.shape[1], self.points.trial
        t = int(len(self.squares) ** 0.5 + 0.5)
        inverse = shape.scales**-2.0
        s = np.sqrt(5.0 * (self.squares @ inverse).reshape(t, t))
        decay = np.exp(-s)
        alike = ((1.0 + s + s * s / 3.0) * decay)[np.ix_(trial, trial)]
        left = shape.half / (self.sums + shape.half)
        course, shared = shape.level + shape.decay * left, alike + shape.own * self.same
        diagonal = np.eye(len(self.y))
        covariance = 1.0 + left + shared * course + (shape.noise + _JITTER) * diagonal
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(logarithms)
        weights = cho_solve((factor, True), self.y, check_finite=False)
        slope = 0.5 * (cho_solve((factor, True), diagonal, check_finite=False) - np.outer(weights, weights))
        by_trial = np.zeros((t, t))
        np.add.at(by_trial, (trial[:, None], trial[None, :]), slope * course)
        gradient = np.empty_like(logarithms)
        gradient[:d] = ((5.0 / 3.0) * (1.0 + s) * decay * by_trial).reshape(-1) @ self.squares * inverse
        gradient[d] = shape.own * (slope * course * self.same).sum()
        gradient[d + 1] = shape.level * (slope * shared).sum()
        gradient[d + 2] = shape.decay * (slope * shared * left).sum()
        gradient[d + 3] = shape.noise * np.trace(slope)
        gradient[d + 4] = (slope * (1.0 + shape.decay * shared) * left * (1.0 - left)).sum()
        value = 0.5 * float(self.y @ weights) + float(np.log(np.diag(factor)).sum())
        spreads = np.r_[np.full(d, _SCALE_SPREAD), _SPREADS]
        away = (logarithms - self.centres) / spreads
        return value + 0.5 * float(away @ away), gradient + away / spreads
