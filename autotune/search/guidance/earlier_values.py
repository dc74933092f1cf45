"""The values of an earlier study in the model of a search, as before an upgrade of the program.

They are points of the same Gaussian process, apart from this study's by a column of their own. Its length scale is
fitted with the others: the better both agree, the more an earlier value tells. If the earlier winner lost its gain, the
search still spreads over the space first: otherwise it took longer than one from nothing (docs/research/search.md).
"""

from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

from autotune.statistics.gaussian_process import (
    Array,
    GaussianProcess,
    Kernel,
    Posterior,
    best_and_newest,
    fit_censored,
)
from spaces import Space

Rows = NDArray[np.int32]

TOLERANCE = 0.02
"""The relative loss that does not matter."""

# The part of the logarithm of its gain over the default that an earlier winner must keep.
_KEPT = 0.7

# The best and the newest of more values, which would slow each proposal.
_MOST = 60


@dataclass(frozen=True, eq=False)
class EarlierValues:
    """The `costs`, (k,), as logarithms, of value indexes `rows`, (k, p), each the mean of as many `runs`, (k,).

    `winner` is the index of the winner.
    """

    space: Space
    rows: Rows
    costs: NDArray[np.float64]
    runs: NDArray[np.float64]
    winner: int

    def has_held(self, rows: Rows, costs: NDArray[np.float64]) -> bool:
        """Return whether the winner keeps most of its gain over the default, or has not run.

        Args:
            rows: The trials, value indexes (n, p), the default first.
            costs: Their costs, (n,), as logarithms; +inf for a failure, NaN for a running trial.
        """
        winner, default = self.winner, self._place_of(rows[0])
        here = np.flatnonzero((rows == self.rows[winner]).all(axis=1))
        if default is None or not len(here) or not np.isfinite(costs[0]) or np.isnan(costs[here[0]]):
            return True
        return has_kept(float(costs[0] - costs[here[0]]), float(self.costs[default] - self.costs[winner]))

    def fit(
        self, rows: Rows, costs: Array, runs: Array, censored: NDArray[np.bool_], valued: NDArray[np.bool_]
    ) -> "JointProcess":
        """Fit a process to the earlier values and to those of trials at value indexes `rows`, (n, p).

        Args:
            rows: The trials.
            costs: Their costs, (n,), as logarithms.
            runs: The number of runs of each, (n,).
            censored: Which costs are bounds, (n,).
            valued: Which costs are values, (n,), neither bounds nor estimates for failed trials.
        """
        own = costs[valued]
        places = [self._place_of(row) for row in rows[valued]]
        off = [cost - self.costs[place] for cost, place in zip(own, places, strict=True) if place is not None]
        # A release that is faster as a whole differs by a factor.
        factor = np.median(off) if off else np.median(own) - np.median(self.costs)
        chosen = best_and_newest(self.costs, _MOST)
        traits = self.space.traits_of(np.concatenate([self.rows[chosen], rows]))
        apart = np.repeat([1.0, 0.0], [len(chosen), len(rows)])
        joint = fit_censored(
            np.column_stack([traits, apart]),
            np.concatenate([self.costs[chosen] + factor, costs]),
            np.concatenate([self.runs[chosen], runs]),
            np.concatenate([np.zeros(len(chosen), dtype=bool), censored]),
        )
        return JointProcess.here(joint)

    def _place_of(self, row: Rows) -> int | None:
        places = np.flatnonzero((self.rows == row).all(axis=1))
        return int(places[0]) if len(places) else None


def has_kept(here: float, there: float) -> bool:
    """Return whether a winner keeps most of its gain over the default, as logarithms."""
    return here >= _KEPT * there - log1p(TOLERANCE)


@dataclass(frozen=True)
class JointProcess(GaussianProcess):
    """The process of this study, at traits without the column that tells the studies apart; `joint` knows both."""

    joint: GaussianProcess | None = None

    @classmethod
    def here(cls, joint: GaussianProcess) -> "JointProcess":
        """Return the part of a joint process that belongs to this study."""
        own = joint.x[:, -1] == 0.0
        kernel = Kernel(joint.kernel.scales[:-1], joint.kernel.signals, joint.kernel.noise)
        known = (joint.x[own, :-1], joint.y[own], joint.runs[own], joint.factor, joint.weights, joint.mean, joint.scale)
        return cls(kernel, *known, joint=joint)

    def at(self, x: Array) -> Posterior:
        """Return what is expected at `x`, (m, d)."""
        return self._joint.at(_padded(x))

    def roots(self, x: Array) -> Array:
        """Return the columns, (n, m), of `Factor.roots` for points `x`, (m, d)."""
        return self._joint.roots(_padded(x))

    def covariance(self, x: Array) -> Array:
        """Return the posterior covariances, (m, m), of the noise-free function at `x`, (m, d)."""
        return self._joint.covariance(_padded(x))

    def knowing(self, x: Array, y: Array, runs: Array) -> "JointProcess":
        """Return the process that also knows `y`, (m,), at `x`, (m, d)."""
        return JointProcess.here(self._joint.knowing(_padded(x), y, runs))

    @property
    def _joint(self) -> GaussianProcess:
        assert self.joint is not None
        return self.joint


def _padded(x: Array) -> Array:
    return np.column_stack([x, np.zeros(len(x))])
