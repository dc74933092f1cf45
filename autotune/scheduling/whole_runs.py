"""What whole runs will be, foretold from short ones: with what this study has learnt of the bias and noise of those.

The logarithm of a whole run's value is a line over that of the short run, plus what depends on the configuration, plus
noise: the autoregressive model of two fidelities (Kennedy & O'Hagan, "Predicting the output from a complex computer
code when fast approximations are available", Biometrika 87, 2000). The line is a Bayesian regression, whose slope is
thought to be near one; the rest is a Gaussian process over the traits of configurations. How far the model is off is
checked where it is known: each pair is foretold from the others, and the spread is made as wide as those errors were.
Only the short value chooses which pairs there are, and a regression on it is not biased by that.

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
_UNSEEN = 0.15
# The traits of a configuration lie between 0 and 1: this far from the nearest pair nothing is known.
_FAR = 0.5


@dataclass(frozen=True)
class Forecast:
    """What is expected of whole runs: means and standard deviations, both (m,), of logarithms; lower is better."""

    mean: Array
    spread: Array
    degrees: float


@dataclass(frozen=True)
class WholeRuns:
    """The model that pairs imply: of traits `x`, (n, d), with the posterior of the line, its noise and what is left."""

    x: Array
    middle: float
    line: Array
    covariance: Array
    noise: float
    degrees: float
    rest: GaussianProcess | None
    widened: float

    @classmethod
    def of(cls, x: Array, short: Array, whole: Array) -> "WholeRuns":
        """Learn from the traits, (n, d), and the logarithms of short and whole runs, both (n,), of some trials."""
        middle = float(np.mean(short))
        design = np.column_stack([np.ones(len(short)), short - middle])
        # Around the line of slope one, since that is what is thought before.
        prior = np.diag([1.0 / _OFFSET, 1.0 / _SLOPE])
        covariance = np.linalg.inv(design.T @ design + prior)
        beside = covariance @ design.T @ (whole - short)
        left = whole - short - design @ beside
        degrees = max(1.0, len(short) - 1.0)
        squares = _PRIOR_NOISE**2 + float(left @ left) + float(beside @ prior @ beside)
        noise = sqrt(squares / degrees)
        rest, widened = _structure(x, left)
        return cls(x, middle, beside, covariance, noise, degrees, rest, widened)

    def forecast(self, x: Array, short: Array) -> Forecast:
        """Foretell whole runs of configurations with traits `x`, (m, d), and short runs, (m,)."""
        design = np.column_stack([np.ones(len(short)), short - self.middle])
        mean = short + design @ self.line
        lever = np.einsum("ij,jk,ik->i", design, self.covariance, design)
        variance = self.noise**2 * (1.0 + lever)
        if self.rest is not None:
            beside, spread = self.rest.predict(x)
            own = self.rest.scale**2 * self.rest.kernel.noise
            mean = mean + beside
            variance = self.widened * (spread**2 + own) + self.noise**2 * lever
        gaps = np.abs(x[:, None, :] - self.x[None, :, :]).min(axis=1).max(axis=1, initial=0.0)
        unseen = _UNSEEN * np.minimum(gaps / _FAR, 1.0)
        return Forecast(mean, np.sqrt(variance + unseen**2), self.degrees)


def _structure(x: Array, left: Array) -> tuple[GaussianProcess | None, float]:
    """Return the process of what is `left`, (n,), and how much wider its variance is to be; None where too few tell."""
    if len(left) < _STRUCTURED or float(np.std(left)) < 1e-9:
        return None, 1.0
    rest = fit(x, left)
    inverse = np.linalg.inv(rest.factor @ rest.factor.T)
    errors = (inverse @ ((left - rest.mean) / rest.scale)) ** 2 / np.diag(inverse)
    # One more that is as expected, so that few errors say little.
    return rest, max(1.0, (1.0 + float(errors.sum())) / len(left))
