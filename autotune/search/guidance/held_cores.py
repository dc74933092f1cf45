"""The cores that a run holds, as a product of parameters: the part of its cost that is known in advance.

If runs hold from one core to hundreds, the expected improvement of a run is weighed against its cost (expected
improvement per second: Snoek, Larochelle & Adams, NIPS 2012). Divided by the full cost, cheap and bad configurations
would win (Lee et al., "Cost-aware Bayesian optimization", arXiv:2003.10870, 2020), so the square root of the cost is
used. The time of a run does not count, since a run that has lost is stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spaces import Configuration, Space

_POWER = 0.5
# Costs that differ by less than this factor are ignored.
_LEAST_FACTOR = 4.0
# The product is fitted to as many jobs as there are parameters plus this number, and checked on as many again.
_JOBS_BEYOND_PARAMETERS = 8
_EXACT = 1e-6


@dataclass(frozen=True)
class HeldCores:
    """The cores of a run: a factor times powers of numbers in the configuration.

    Attributes:
        space: The space.
        names: The columns with these numbers.
        powers: The exponent of each column.
        factor: The logarithm of the factor.
    """

    space: Space
    names: tuple[str, ...]
    powers: NDArray[np.float64]
    factor: float

    @classmethod
    def infer(cls, space: Space, cores_of: Callable[[Configuration], int]) -> Self | None:
        """Fit the product to the jobs of some configurations; None if cores hardly differ or are not such a product."""
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

    def cost_penalty(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the term to subtract from the logarithm of an improvement, (n,), at value indexes (n, p)."""
        logs = self.factor + _logarithms(self.space.columns(rows), self.names) @ self.powers
        cost_penalty: NDArray[np.float64] = _POWER * logs
        return cost_penalty


def _logarithms(columns: dict[str, NDArray[np.generic]], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the logarithms of columns, (n, k); an unset parameter counts as 1, and so does the value 0."""
    numbers = [columns[name].astype(float) for name in names]
    logs = [np.log(np.where(column > 0.0, column, 1.0)) for column in numbers]
    return np.column_stack(logs) if logs else np.zeros((len(next(iter(columns.values()), ())), 0))
