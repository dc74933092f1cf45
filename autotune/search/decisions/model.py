"""The model of a decision table: the logarithm of the cost of every setting in every cell, from all runs together.

A Gaussian process with two parts: what a context and a point (message size) cost whatever the setting, and what a
setting differs from that, which changes smoothly with context and point. So neighbours in size and ranks share what
they know, and so do settings that are alike. It is the model of Krause and Ong, "Contextual Gaussian process bandit
optimization" (NeurIPS 2011), section 5.2: an additive kernel over contexts and actions. A straight line in the
contexts' traits is removed first: a cost that grows by decades is no noise.
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
    """Values, (n,), of the logarithm of the cost: `contexts`, (n, a), and `traits`, (n, b), say of what."""

    contexts: Array
    traits: Array
    y: Array
    runs: Array

    def __len__(self) -> int:
        """How many values there are."""
        return len(self.y)

    def some(self, places: NDArray[np.integer]) -> "Known":
        """Return those at these places."""
        return Known(self.contexts[places], self.traits[places], self.y[places], self.runs[places])


@dataclass(frozen=True)
class TableModel:
    """A straight line in the contexts, (a + 1,), and the `process` of what it leaves."""

    process: GaussianProcess
    line: Array

    @property
    def noise(self) -> float:
        """The variance of one run's logarithm."""
        return self.process.noise

    @classmethod
    def of(cls, kernel: Kernel, known: Known) -> "TableModel":
        """Return the model with this kernel."""
        line, rest = _straightened(known)
        return cls(GaussianProcess.of(kernel, _points(known.contexts, known.traits), rest, known.runs), line)

    def at(self, contexts: Array, traits: Array) -> Posterior:
        """Return what is known at `contexts`, (m, a), with `traits`, (m, b)."""
        left = self.process.at(_points(contexts, traits))
        return replace(left, mean=_design(contexts) @ self.line + left.mean)

    def believing(self, contexts: Array, traits: Array) -> "TableModel":
        """Return the model that takes its own means there for one run's values."""
        return replace(self, process=self.process.believing(_points(contexts, traits)))


def learnt(known: Known, rng: np.random.Generator) -> Kernel:
    """Return the kernel that is fitted to the values: a part over contexts, and one over contexts and settings."""
    if len(known) > _LEARNT_FROM:
        known = known.some(rng.choice(len(known), _LEARNT_FROM, replace=False))
    _, rest = _straightened(known)
    sizes = known.contexts.shape[1], known.traits.shape[1]
    return fit_kernel(_points(known.contexts, known.traits), rest, known.runs, priors=_PRIORS, sizes=sizes)


def _points(contexts: Array, traits: Array) -> Array:
    return np.hstack([contexts, traits])


def _design(contexts: Array) -> Array:
    return np.column_stack([np.ones(len(contexts)), contexts])


def _straightened(known: Known) -> tuple[Array, Array]:
    """Return the straight line of least squares, and what it leaves, (n,)."""
    design = _design(known.contexts)
    ridge = _RIDGE * len(known) * np.eye(design.shape[1])
    ridge[0, 0] = 0.0
    middle = float(known.y.mean())
    line = np.linalg.solve(design.T @ design + ridge + JITTER * np.eye(len(ridge)), design.T @ (known.y - middle))
    line[0] += middle
    return line, known.y - design @ line
