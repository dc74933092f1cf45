"""Limits on a run: its time, its core-seconds and its energy."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the command reads its options before it imports the models
    from autotune.performance.regression.features import FloatArray
    from autotune.performance.rightsizing.candidates import Candidates

HOUR_S = 3600.0

ENERGY_UNITS: Mapping[str, float] = {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "Wh": 3.6e3, "kWh": 3.6e6}
"""The units of energy, in joules."""


@dataclass(frozen=True)
class Limits:
    """The most that a run may take.

    With a `deadline_s` the aim is the least core-seconds, without one the least time. `power_w` is the power that one
    core draws; the limit on energy has no effect until it is known.
    """

    deadline_s: float = inf
    core_seconds: float = inf
    energy_j: float = inf
    power_w: float | None = None

    def longest(self, candidates: "Candidates") -> "FloatArray":
        """Return the logarithms of the longest times, (n,), that keep all limits."""
        most_core_s = self.core_seconds
        if self.energy_j < inf and self.power_w is not None:
            most_core_s = min(most_core_s, self.energy_j / self.power_w)
        with np.errstate(divide="ignore"):
            return np.log(np.minimum(self.deadline_s, most_core_s / candidates.cores))

    def price(self, candidates: "Candidates") -> "FloatArray":
        """Return the cost of a second of each run, (n,): its cores, or 1 if the aim is the least time."""
        return candidates.cores if self.deadline_s < inf else np.ones(len(candidates))
