"""The model of a decision table: the logarithm of the cost of every setting in every cell, from all runs together.

It is a Gaussian process with two parts: the cost of a context and a point (message size) for any setting, and the
difference of a setting from it, which changes smoothly with context and point. So neighbours in size and ranks share
information, and similar settings do, too. This is the model of Krause and Ong, "Contextual Gaussian process bandit
optimization" (NeurIPS 2011), section 5.2: an additive kernel over contexts and actions. A straight line in the traits
of contexts is removed first, since a growth of the cost by decades would look like noise.
"""

from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from autotune.statistics.gaussian_process import (
    JITTER,
    Array,
    GaussianProcess,
    Kernel,
    Posterior,
    Prior,
    Priors,
    fit_kernel,
)

_PRIORS = Priors(
    scale=Prior(log(0.5), 1.0, -3.0, 4.0),
    noise=Prior(-4.0, 2.0, -10.0, 1.0),
    signals=(Prior(0.0, 1.5, -7.0, 3.0), Prior(-1.0, 1.5, -7.0, 3.0)),
    steps=30,
)
_LEARNT_FROM = 120
_RIDGE = 1e-3


@dataclass(frozen=True)
class Known:
    """Measured values.

    Attributes:
        contexts: The traits of their contexts and points, (n, a).
        traits: The traits of their contexts, settings and points, (n, b).
        y: The logarithms of the costs, (n,).
        runs: The number of runs of each value, (n,).
    """

    contexts: Array
    traits: Array
    y: Array
    runs: Array

    def __len__(self) -> int:
        """The number of values."""
        return len(self.y)

    def some(self, places: NDArray[np.integer]) -> "Known":
        """Return the values at some positions."""
        return Known(self.contexts[places], self.traits[places], self.y[places], self.runs[places])


@dataclass(frozen=True)
class TableModel:
    """The model of a table.

    Attributes:
        process: The process of the residuals.
        line: The straight line in the traits of contexts, (a + 1,).
    """

    process: GaussianProcess
    line: Array

    @property
    def noise(self) -> float:
        """The variance of the logarithm of a single run's cost."""
        return self.process.noise

    @classmethod
    def of(cls, kernel: Kernel, known: Known) -> "TableModel":
        """Return the model of some values with a kernel."""
        line, rest = _fit_line(known)
        return cls(GaussianProcess.of(kernel, _points(known.contexts, known.traits), rest, known.runs), line)

    def at(self, contexts: Array, traits: Array) -> Posterior:
        """Return the posterior at `contexts`, (m, a), with `traits`, (m, b)."""
        left = self.process.at(_points(contexts, traits))
        return replace(left, mean=_design(contexts) @ self.line + left.mean)

    def believing(self, contexts: Array, traits: Array) -> "TableModel":
        """Return the model with one run counted at each of these points, at the model's own means."""
        return replace(self, process=self.process.believing(_points(contexts, traits)))


def fit_table_kernel(known: Known, rng: np.random.Generator) -> Kernel:
    """Return a kernel fitted to the values, with a part over contexts and a part over contexts and settings."""
    if len(known) > _LEARNT_FROM:
        known = known.some(rng.choice(len(known), _LEARNT_FROM, replace=False))
    _, rest = _fit_line(known)
    sizes = known.contexts.shape[1], known.traits.shape[1]
    return fit_kernel(_points(known.contexts, known.traits), rest, known.runs, priors=_PRIORS, sizes=sizes)


def _points(contexts: Array, traits: Array) -> Array:
    return np.hstack([contexts, traits])


def _design(contexts: Array) -> Array:
    return np.column_stack([np.ones(len(contexts)), contexts])


def _fit_line(known: Known) -> tuple[Array, Array]:
    """Return the straight line of least squares, and the residuals, (n,)."""
    design = _design(known.contexts)
    ridge = _RIDGE * len(known) * np.eye(design.shape[1])
    ridge[0, 0] = 0.0
    middle = float(known.y.mean())
    line = np.linalg.solve(design.T @ design + ridge + JITTER * np.eye(len(ridge)), design.T @ (known.y - middle))
    line[0] += middle
    return line, known.y - design @ line
