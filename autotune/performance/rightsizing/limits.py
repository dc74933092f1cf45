"""Limits on a run: its time, its core-seconds and its energy."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the command reads its options before it imports the models
    from autotune.performance.rightsizing.candidates import Candidates
    from spaces.expressions.quantities import FloatArray

HOUR_S = 3600.0

ENERGY_UNITS: Mapping[str, float] = {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "Wh": 3.6e3, "kWh": 3.6e6}
"""The units of energy, in joules."""


@dataclass(frozen=True)
class Limits:
    """The most that a run may take.

    The aim is the least energy if `least_energy`, else with a `deadline_s` the least core-seconds, without one the
    least time. Limit and aim of energy have no effect until the power is known, the watts of a core by candidate, (n,).
    """

    deadline_s: float = inf
    core_seconds: float = inf
    energy_j: float = inf
    least_energy: bool = False

    @property
    def needs_energy(self) -> bool:
        """Whether the energy of runs must be known."""
        return self.least_energy or self.energy_j < inf

    def longest(self, candidates: "Candidates", power_w: "FloatArray | None") -> "FloatArray":
        """Return the logarithms of the longest times, (n,), that keep all limits."""
        most_core_s = self.core_seconds if power_w is None else np.minimum(self.core_seconds, self.energy_j / power_w)
        return np.log(np.minimum(self.deadline_s, most_core_s / candidates.cores))

    def price(self, candidates: "Candidates", power_w: "FloatArray | None") -> "FloatArray":
        """Return the cost of a second of each run, (n,): its watts, its cores, or 1 if the aim is the least time."""
        if self.least_energy and power_w is not None:
            return candidates.cores * power_w
        return candidates.cores if self.least_energy or self.deadline_s < inf else np.ones(len(candidates))
