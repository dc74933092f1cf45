"""Models of the metrics that have limits: the chance that a configuration keeps the limits of a study.

Each limited metric has a Gaussian process of its values, since the distance from a limit tells more than whether the
limit is kept. The expected improvement is multiplied by the chance to keep all limits (Gardner et al., "Bayesian
optimization with inequality constraints", ICML 2014). It is the chance of the noise-free values, so a lucky run counts
only as far as the noise of the process allows (Letham et al., "Constrained Bayesian optimization with noisy
experiments", 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import Self

import numpy as np
import scipy
from numpy.typing import NDArray

from autotune.records.limit import Limit, Limits
from autotune.statistics.gaussian_process import Array, GaussianProcess, fit
from autotune.storage.observation import Observation

# The least number of values for a process.
_LEAST_VALUES = 2
_LEAST_CHANCE = 1e-12
# The factor on standard deviations, since a process is overconfident and would never let the search look where it
# expects a broken limit. Chosen on two measured spaces, checked on two others.
_DOUBT = 1.5


@dataclass(frozen=True)
class LimitedValues:
    """The values of a limited metric, and its limit.

    Attributes:
        values: The values of the trials, (n,), NaN for those without one.
        low: The lower end of the limit.
        high: The upper end of the limit.
        ratios: Whether values and ends are logarithms. They are if all are positive, since then the ratio to the limit
            matters.
    """

    values: Array
    low: float
    high: float
    ratios: bool = False

    @classmethod
    def of(cls, limit: Limit, values: Array) -> Self:
        """Return the values of a metric, given in its unit, in the form that a process is fitted to."""
        ends = [end for end in (limit.low, limit.high) if abs(end) != inf]
        if not all(end > 0.0 for end in ends) or (values <= 0.0).any():
            return cls(values, limit.low, limit.high)
        low, high = (log(end) if abs(end) != inf else end for end in (limit.low, limit.high))
        return cls(np.log(values), low, high, ratios=True)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """The trials that are known to keep the limit, (n,)."""
        return (self.values >= self.low) & (self.values <= self.high)

    @property
    def beyond(self) -> Array:
        """The relative distance of each trial beyond the limit, (n,); 0 if it keeps the limit, 1 without a value."""
        scale = 1.0 if self.ratios else max(abs(end) for end in (self.low, self.high) if abs(end) != inf) or 1.0
        excess = np.maximum(self.low - self.values, self.values - self.high) / scale
        return np.where(np.isnan(excess), 1.0, np.maximum(excess, 0.0))

    def log_chance(self, mean: Array, deviation: Array) -> Array:
        """Return the logarithm of the chance that a value keeps the limit, for normal distributions; all (m,)."""
        below, above = (self.low - mean) / deviation, (self.high - mean) / deviation
        if self.low == -inf:
            chances: Array = scipy.special.log_ndtr(above)
        elif self.high == inf:
            chances = scipy.special.log_ndtr(-below)
        else:
            chances = np.log(np.maximum(scipy.special.ndtr(above) - scipy.special.ndtr(below), _LEAST_CHANCE))
        return chances


def limited_values(limits: Limits, observations: Sequence[Observation]) -> tuple[LimitedValues, ...]:
    """Return the values of each limited metric in the observations."""
    known = np.full((len(limits), len(observations)), np.nan)
    for place, observation in enumerate(observations):
        for number, value in zip(range(len(limits)), observation.limited, strict=False):
            known[number, place] = np.nan if value is None else value
    return tuple(LimitedValues.of(limit, values) for limit, values in zip(limits, known, strict=True))


@dataclass(frozen=True)
class LimitModels:
    """A process for each limited metric that has enough values."""

    processes: tuple[tuple[LimitedValues, GaussianProcess], ...] = ()

    @classmethod
    def fit(cls, limited: Sequence[LimitedValues], x: Array, runs: Array, chosen: NDArray[np.intp]) -> Self:
        """Fit the processes.

        Args:
            limited: The values of the limited metrics.
            x: The traits of all trials, (n, d).
            runs: The number of runs of each trial, (n,).
            chosen: The indexes of the trials to fit to.
        """
        processes = []
        for one in limited:
            known = chosen[~np.isnan(one.values[chosen])]
            if len(known) >= _LEAST_VALUES:
                processes.append((one, fit(x[known], one.values[known], runs[known])))
        return cls(tuple(processes))

    def believing(self, x: Array) -> Self:
        """Return the models while runs at traits `x`, (m, d), are in flight (kriging believer)."""
        return replace(self, processes=tuple((one, process.believing(x)) for one, process in self.processes))

    def log_chance(self, traits: Array) -> Array:
        """Return the logarithm of the chance that all limits are kept, (m,), at traits (m, d)."""
        chances: Array = np.zeros(len(traits))
        for one, process in self.processes:
            mean, deviation = process.predict(traits)
            chances = chances + one.log_chance(mean, _DOUBT * deviation)
        return chances


NO_LIMITS = LimitModels()
