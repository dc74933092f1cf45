"""Held cores: what a run costs, as far as it is known before: the cores that it holds, as a product of parameters.

Where runs hold from one core to hundreds, the improvement that is expected of a run is weighed against its cost
(expected improvement per second: Snoek, Larochelle & Adams, NIPS 2012). In full measure that prefers what is cheap and
no good (Lee et al., "Cost-aware Bayesian optimization", arXiv:2003.10870, 2020), so the cost counts by its square root.
How long a run takes does not count: one that has lost is stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spaces import Configuration, Space

_POWER = 0.5
# Costs that differ by less than this factor are no reason to try something else.
_LEAST_FACTOR = 4.0
# So many jobs are looked at, of which as many again check what was found.
_JOBS_BEYOND_PARAMETERS = 8
_EXACT = 1e-6


@dataclass(frozen=True)
class HeldCores:
    """The cores of a run: a factor times powers of the numbers in a configuration, by their columns `names`."""

    space: Space
    names: tuple[str, ...]
    powers: NDArray[np.float64]
    factor: float

    @classmethod
    def found(cls, space: Space, cores_of: Callable[[Configuration], int]) -> Self | None:
        """Find out from the jobs of some configurations; None where cores hardly differ, or are no such product."""
        rng = np.random.default_rng(0)
        count = len(space.parameters) + _JOBS_BEYOND_PARAMETERS
        rows = space.sample_indices(rng, 2 * count)
        cores = np.log([max(1, cores_of(configuration)) for configuration in space.decode(rows)])
        if np.ptp(cores) < np.log(_LEAST_FACTOR):
            return None
        columns = space.columns(rows)
        names = tuple(
            name for name, column in columns.items() if column.dtype != object and not (column.astype(float) <= 0).any()
        )
        powers = np.column_stack([np.ones(len(rows)), _logarithms(columns, names)])
        solved = np.linalg.lstsq(powers[:count], cores[:count], rcond=None)[0]
        if np.abs(powers @ solved - cores).max() > _EXACT:
            return None
        return cls(space, names, solved[1:], float(solved[0]))

    def dearness(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return what the cost takes from the logarithm of an improvement, (n,), at value indexes (n, p)."""
        logs = self.factor + _logarithms(self.space.columns(rows), self.names) @ self.powers
        dearness: NDArray[np.float64] = _POWER * logs
        return dearness


def _logarithms(columns: dict[str, NDArray[np.generic]], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the logarithms of columns, (n, k); a parameter without a value counts as 1, and so does one of 0."""
    numbers = [columns[name].astype(float) for name in names]
    logs = [np.log(np.where(column > 0.0, column, 1.0)) for column in numbers]
    return np.column_stack(logs) if logs else np.zeros((len(next(iter(columns.values()), ())), 0))
