"""What whole runs will be, foretold from short ones: with what this study has learnt of the bias and noise of those.

A whole run's cost is a line over that of the short run, plus what depends on the configuration, plus noise: the
autoregressive model of two fidelities (Kennedy & O'Hagan, "Predicting the output from a complex computer code when fast
approximations are available", Biometrika 87, 2000). It is one of costs, not of their logarithms, since a start-up adds
to a run. The line is a Bayesian regression, whose slope is thought to be near one; the rest is a Gaussian process over
the traits of configurations. Both are fitted in turns, by generalised least squares, and what is foretold is universal
kriging (Cressie, Statistics for Spatial Data, 1993, section 3.4). How far the model is off is checked where it is
known: each pair is foretold from the others, and the spread is made as wide as those errors were. Only the short value
chooses which pairs there are, and a regression on it is not biased by that.

Of a trait that no pair is near to, nothing is known: there a bias of `_UNSEEN` is thought to be usual.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from autotune.search.gaussian_process import GaussianProcess, fit

Array = NDArray[np.floating]

# Before anything is known, whole runs are thought to be off the line by 2 %: worth one degree of freedom.
_PRIOR_NOISE = 0.02
# Variances of offset and slope, in units of the noise's: the slope is 1, give or take 0.5 if that is 2 %.
_OFFSET, _SLOPE = 1e6, 625.0
# From so many pairs on their errors tell more than their size.
_STRUCTURED = 6
_TURNS = 3
_UNSEEN = 0.15
# The traits of a configuration lie between 0 and 1: this far from the nearest pair nothing is known.
_FAR = 0.5
# What depends on the configuration does not make a whole run shorter than this share of what the line says.
_LEAST_SHARE = 0.1


@dataclass(frozen=True)
class Forecast:
    """What is expected of whole runs: means and standard deviations, both (m,), of logarithms; lower is better."""

    mean: Array
    spread: Array
    degrees: float


@dataclass(frozen=True)
class WholeRuns:
    """The model that pairs imply, of costs as shares of `short_s` and `whole_s`, which are usual.

    Of the pairs there are traits `x`, (n, d), and the `design`, (n, 2), with the inverse covariance `weights`, (n, n).
    The `line`, (2,), has a posterior `covariance`.
    """

    x: Array
    short_s: float
    whole_s: float
    design: Array
    weights: Array
    line: Array
    covariance: Array
    noise: float
    degrees: float
    rest: GaussianProcess | None
    widened: float

    @classmethod
    def of(cls, x: Array, short: Array, whole: Array) -> "WholeRuns":
        """Learn from the traits, (n, d), and the logarithms of short and whole runs, both (n,), of some trials."""
        short_s, whole_s = float(np.exp(np.mean(short))), float(np.exp(np.mean(whole)))
        design, wholes = _design(np.exp(short) / short_s), np.exp(whole) / whole_s
        degrees = max(1.0, len(wholes) - 1.0)
        # The noise of a run is a share of it.
        line, covariance = _line(design, wholes, np.diag(wholes**-2.0))
        left = (wholes - design @ line) / wholes
        beyond = line - 1.0
        squares = _PRIOR_NOISE**2 + float(left @ left) + float(beyond @ _PRIOR @ beyond)
        noise = sqrt(squares / degrees)
        covariance = noise**2 * covariance
        weights: Array = np.diag(wholes**-2.0) / noise**2
        rest, widened = None, 1.0
        for _ in range(_TURNS):
            residual = wholes - design @ line
            if len(wholes) < _STRUCTURED or float(np.std(residual)) < 1e-9:
                break
            rest = fit(x, residual)
            weights = np.linalg.inv(rest.scale**2 * rest.factor @ rest.factor.T)
            line, covariance = _line(design, wholes, weights, noise)
        if rest is not None:
            rest = GaussianProcess.of(rest.kernel, x, wholes - design @ line, np.ones(len(wholes)))
            widened = _widened(rest)
        return cls(x, short_s, whole_s, design, weights, line, covariance, noise, degrees, rest, widened)

    def forecast(self, x: Array, short: Array) -> Forecast:
        """Foretell whole runs of configurations with traits `x`, (m, d), and logarithms of short runs, (m,)."""
        costs = np.exp(short) / self.short_s
        design = _design(costs)
        on_line = design @ self.line
        if self.rest is None:
            told = np.maximum(on_line, _LEAST_SHARE * costs)
            variance = self.noise**2 * told**2 + _quadratic(design, self.covariance)
        else:
            beside, spread = self.rest.predict(x)
            told = np.maximum(on_line + beside, _LEAST_SHARE * np.maximum(on_line, costs))
            own = self.rest.scale**2 * self.rest.kernel.noise
            cross = self.rest.scale**2 * self.rest.kernel.between(x, self.x)
            unknown = design - cross @ self.weights @ self.design
            variance = self.widened * (spread**2 + own) + _quadratic(unknown, self.covariance)
        gaps = np.abs(x[:, None, :] - self.x[None, :, :]).min(axis=1).max(axis=1, initial=0.0)
        unseen = _UNSEEN * np.minimum(gaps / _FAR, 1.0)
        return Forecast(np.log(told * self.whole_s), np.sqrt(variance / told**2 + unseen**2), self.degrees)


_PRIOR = np.diag([1.0 / _OFFSET, 1.0 / _SLOPE])


def _design(costs: Array) -> Array:
    """Return the offset at the usual cost, and the slope, (n, 2)."""
    return np.column_stack([np.ones(len(costs)), costs - 1.0])


def _line(design: Array, wholes: Array, weights: Array, noise: float = 1.0) -> tuple[Array, Array]:
    """Return the line through costs, (n,), with inverse covariances `weights`, (n, n), and its covariance, (2, 2)."""
    covariance = np.linalg.inv(design.T @ weights @ design + _PRIOR / noise**2)
    return covariance @ (design.T @ weights @ wholes + _PRIOR @ np.ones(2) / noise**2), covariance


def _quadratic(rows: Array, matrix: Array) -> Array:
    """Return the variance of each row of a combination, (m,)."""
    variances: Array = np.einsum("ij,jk,ik->i", rows, matrix, rows)
    return variances


def _widened(rest: GaussianProcess) -> float:
    """Return how much wider the variance of a process is to be, by how well it foretells each of its values."""
    inverse = np.linalg.inv(rest.factor @ rest.factor.T)
    errors = (inverse @ ((rest.y - rest.mean) / rest.scale)) ** 2 / np.diag(inverse)
    # One more that is as expected, so that few errors say little.
    return max(1.0, (1.0 + float(errors.sum())) / len(rest.y))
