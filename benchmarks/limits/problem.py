"""Measured spaces with a second measured column, of which a limit is made."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.measured_tables import Key, MeasuredTable, load_syr2k, load_tables
from spaces import Choice, Space

# A fifth of the configurations that work keep the limit.
SHARE = 0.2
# Pairs of cards: fast on the first, and no slower than the limit on the second.
_PAIRS = (("A100", "MI250X"), ("MI250X", "A4000"), ("W7800", "A6000"))


@dataclass(frozen=True)
class LimitedProblem:
    """`values` (n,) of the configurations `rows` (n, p) are minimised, `second` (n,) is to be `limit` at most.

    Both are NaN where the configuration failed.
    """

    name: str
    space: Space
    rows: NDArray[np.int32]
    values: NDArray[np.float64]
    second: NDArray[np.float64]
    limit: float

    @cached_property
    def keeps(self) -> NDArray[np.bool_]:
        return np.nan_to_num(self.second, nan=np.inf) <= self.limit

    @cached_property
    def optimum(self) -> float:
        return float(self.values[self.keeps].min())

    @cached_property
    def worst(self) -> float:
        """What a search is said to have found that has seen nothing feasible."""
        return float(self.values[self.keeps].max())

    def gap(self, places: list[int]) -> float:
        """Return how far the best feasible one of `places` is from the optimum, as a logarithm."""
        found = [float(self.values[place]) for place in places if self.keeps[place]]
        return log(min(found, default=self.worst) / self.optimum)

    def infeasible(self, places: list[int]) -> float:
        """Return which share of `places` broke the limit, or failed."""
        return 1.0 - float(self.keeps[places].mean())

    def hand_out(self, folder: Path) -> Path:
        """Write the problem to a file, for a peer, and return its path."""
        path = folder / f"{self.name.replace('/', '_').replace(' ', '_')}.json"
        stored = {
            "ordered": [not isinstance(parameter, Choice) for parameter in self.space.parameters],
            "sizes": [len(parameter.values) for parameter in self.space.parameters],
            "rows": self.rows.tolist(),
            "default": self.space.indices([self.space.default()])[0].tolist(),
            "values": [None if np.isnan(value) else log(value) for value in self.values],
            "beyond": [None if np.isnan(value) else log(value / self.limit) for value in self.second],
        }
        path.write_text(json.dumps(stored), encoding="utf-8")
        return path


def load_problems(folder: Path) -> Iterator[LimitedProblem]:
    """Yield every problem whose tables are there."""
    tables = {table.name: table for table in load_tables(folder) if table.name.startswith("convolution")}
    for first, second in _PAIRS:
        both = [tables.get(f"convolution {card}") for card in (first, second)]
        if both[0] is not None and both[1] is not None:
            times = {key: median(found) for key, found in both[1].times_s.items() if found}
            yield _problem(f"{first}, limit on {second}", both[0], times)
    for table in load_syr2k(folder):
        yield _problem("syr2k, limit on compiling and running", table, table.costs_s)


def _problem(name: str, table: MeasuredTable, second_of: Mapping[Key, float]) -> LimitedProblem:
    rows = table.space.all_indices()
    keys = [frozenset(configuration.items()) for configuration in table.space.decode(rows)]
    values = np.array([median(found) if (found := table.times_s.get(key)) else np.nan for key in keys])
    second = np.array([second_of.get(key, np.nan) for key in keys])
    works = ~np.isnan(values) & ~np.isnan(second)
    values, second = np.where(works, values, np.nan), np.where(works, second, np.nan)
    limit = float(np.quantile(second[works], SHARE))
    return LimitedProblem(name, table.space, rows, values, second, limit)
