"""A search problem: a space as value indexes, with the recorded value and cost of every configuration."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.measured_tables import MeasuredTable
from spaces import Choice, Space


@dataclass(frozen=True)
class Problem:
    """A search problem with n valid configurations of p parameters.

    Attributes:
        rows: The valid configurations as indexes of values, (n, p).
        values: Median of the recorded runs, to be minimised, (n,); NaN where the configuration failed.
        costs_s: Time of an evaluation, also of failures, (n,).
        invalid_cost_s: Time charged to a method that proposes a configuration that breaks a constraint.
    """

    name: str
    space: Space
    rows: NDArray[np.int32]
    values: NDArray[np.float64]
    costs_s: NDArray[np.float64]

    @classmethod
    def of(cls, table: MeasuredTable) -> Self:
        """Return the problem of a table; a failure without a recorded cost gets the least cost of all."""
        rows = table.space.all_indices()
        keys = [frozenset(configuration.items()) for configuration in table.space.decode(rows)]
        times = [table.times_s.get(key, ()) for key in keys]
        values = np.array([median(found) if found else np.nan for found in times])
        # If only runs were recorded, an evaluation costs one run.
        costs = np.array(
            [table.costs_s.get(key, median(found) if found else np.nan) for key, found in zip(keys, times, strict=True)]
        )
        return cls(table.name, table.space, rows, values, np.where(np.isnan(costs), np.nanmin(costs), costs))

    @property
    def size(self) -> int:
        """The number of valid configurations."""
        return len(self.rows)

    @cached_property
    def optimum(self) -> float:
        return float(np.nanmin(self.values))

    @cached_property
    def worst(self) -> float:
        """The value credited to a search that has only seen failures."""
        return float(np.nanmax(self.values))

    @cached_property
    def invalid_cost_s(self) -> float:
        failed = self.costs_s[np.isnan(self.values)]
        return fmean(failed) if len(failed) else float(self.costs_s.min())

    @cached_property
    def places(self) -> Mapping[tuple[int, ...], int]:
        """The place in `rows` of each valid configuration."""
        return {tuple(row): place for place, row in enumerate(self.rows.tolist())}

    def hand_out(self, folder: Path) -> Path:
        """Write the problem without any values to a file for the methods; return its path."""
        path = folder / f"{self.name.replace('/', '_')}.json"
        path.write_text(json.dumps(self._known()), encoding="utf-8")
        return path

    def _known(self) -> dict[str, Any]:
        parameters: Sequence[Any] = self.space.parameters
        return {
            "name": self.name,
            "parameters": [
                {"name": p.name, "values": list(p.values), "ordered": not isinstance(p, Choice)} for p in parameters
            ],
            "rules": [constraint.rule for constraint in self.space.constraints],
            "valid": self.rows.tolist(),
            "default": self.space.indices([self.space.default()])[0].tolist(),
        }
