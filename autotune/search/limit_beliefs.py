"""Limit beliefs: where configurations are expected to keep the limits of a study.

Each limited metric has a Gaussian process of its own, of values: how far a configuration is from the limit tells more
than whether it keeps it. The improvement that is expected is multiplied by the chance to keep all limits (Gardner et
al., "Bayesian optimization with inequality constraints", ICML 2014), that is of the noise-free values: a run that was
lucky, or several that were not, are weighed as the noise of the process has it (Letham et al., "Constrained Bayesian
optimization with noisy experiments", 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from autotune.records.limit import Limit, Limits
from autotune.statistics.gaussian_process import Array, GaussianProcess, fit
from autotune.storage.observation import Observation

# A process is made of two values or more.
_LEAST_VALUES = 2
_LEAST_CHANCE = 1e-12
# A process is too sure of itself, and then nothing that it expects to break a limit is ever looked at: the standard
# deviations count that much more. Chosen on two measured spaces, checked on two others.
_DOUBT = 1.5


@dataclass(frozen=True)
class LimitedValues:
    """What was measured of one limited metric, (n,), NaN where nothing was, and between which values it must be.

    Values that are all positive are logarithms, and so are the ends then: what matters is the ratio to the limit.
    """

    values: Array
    low: float
    high: float
    ratios: bool = False

    @classmethod
    def of(cls, limit: Limit, values: Array) -> Self:
        """Return the values of a metric, in its unit, as a process learns from them."""
        ends = [end for end in (limit.low, limit.high) if abs(end) != inf]
        if not all(end > 0.0 for end in ends) or (values <= 0.0).any():
            return cls(values, limit.low, limit.high)
        low, high = (log(end) if abs(end) != inf else end for end in (limit.low, limit.high))
        return cls(np.log(values), low, high, ratios=True)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which trials are known to keep the limit, (n,)."""
        return (self.values >= self.low) & (self.values <= self.high)

    @property
    def beyond(self) -> Array:
        """How far trials are beyond the limit, (n,), relatively; 0 if they keep it, 1 where nothing was measured."""
        scale = 1.0 if self.ratios else max(abs(end) for end in (self.low, self.high) if abs(end) != inf) or 1.0
        excess = np.maximum(self.low - self.values, self.values - self.high) / scale
        return np.where(np.isnan(excess), 1.0, np.maximum(excess, 0.0))

    def log_chance(self, mean: Array, deviation: Array) -> Array:
        """Return the logarithms of the chances, (m,), that values of these distributions, (m,) both, keep the limit."""
        below, above = (self.low - mean) / deviation, (self.high - mean) / deviation
        if self.low == -inf:
            chances: Array = log_ndtr(above)
        elif self.high == inf:
            chances = log_ndtr(-below)
        else:
            chances = np.log(np.maximum(ndtr(above) - ndtr(below), _LEAST_CHANCE))
        return chances


def limited_values(limits: Limits, observations: Sequence[Observation]) -> tuple[LimitedValues, ...]:
    """Return what the observations say of each limited metric."""
    known = np.full((len(limits), len(observations)), np.nan)
    for place, observation in enumerate(observations):
        for number, value in zip(range(len(limits)), observation.limited, strict=False):
            known[number, place] = np.nan if value is None else value
    return tuple(LimitedValues.of(limit, values) for limit, values in zip(limits, known, strict=True))


@dataclass(frozen=True)
class LimitBeliefs:
    """A process for each limited metric of which something was measured."""

    processes: tuple[tuple[LimitedValues, GaussianProcess], ...] = ()

    @classmethod
    def fitted(cls, limited: Sequence[LimitedValues], x: Array, runs: Array, chosen: NDArray[np.intp]) -> Self:
        """Fit to the `chosen` of all trials, which have traits `x`, (n, d), and as many `runs`, (n,)."""
        processes = []
        for one in limited:
            known = chosen[~np.isnan(one.values[chosen])]
            if len(known) >= _LEAST_VALUES:
                processes.append((one, fit(x[known], one.values[known], runs[known])))
        return cls(tuple(processes))

    def believing(self, x: Array) -> Self:
        """Return the beliefs while runs at traits `x`, (m, d), are in flight (kriging believer)."""
        return replace(self, processes=tuple((one, process.believing(x)) for one, process in self.processes))

    def log_chance(self, traits: Array) -> Array:
        """Return the logarithms of the chances, (m,), that all limits are kept at traits (m, d)."""
        chances: Array = np.zeros(len(traits))
        for one, process in self.processes:
            mean, deviation = process.predict(traits)
            chances = chances + one.log_chance(mean, _DOUBT * deviation)
        return chances


NO_LIMITS = LimitBeliefs()
