"""How much others on a machine move the values of a study, and from which disturbance on a run says too little.

A run from which others took the share s of its time is expected to take 1 / (1 - s) times as long, to the power of an
effect that is estimated: within each configuration, the logarithms of values are regressed on x = -log(1 - s). The
prior of the effect is normal around 1, which is what a single thread suffers; ranks that wait for the slowest suffer
more, and what waits for a disk less. Outliers are pulled in, as in the mixed model.

A run is disturbed if others can have moved its value by more than the noise between runs that nobody disturbed.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp, log1p, sqrt

import numpy as np

_PRIOR_EFFECT = 1.0
_PRIOR_SPREAD = 1.0
# Before anything was repeated, runs are thought to differ by 2 %, as in the mixed model.
_PRIOR_NOISE = 0.02
_PRIOR_DEGREES = 1.0
# No study asks for more than that.
_LEAST_NOISE = 0.01
# What a machine always does besides, such as autotune itself, is part of what is measured on it; but no more than that.
_MOST_USUAL = 0.05
_USUAL_QUANTILE = 0.25
# An effect that seems to be none may be one nevertheless.
_LEAST_EFFECT = 0.1
_MOST_TAKEN = 0.99
_CLIP = 2.5
_ROUNDS = 20


@dataclass(frozen=True)
class ObservedRun:
    """A run: its configuration, the logarithm of its value (lower is better), and the share that others took."""

    configuration: Hashable
    value: float
    taken: float


@dataclass(frozen=True)
class Sensitivity:
    """What taking a share of a run's time does to its value: `effect`, with its standard `error`.

    `noise` is the standard deviation of the logarithms of undisturbed values, `usual` the x that runs have anyway.
    """

    effect: float = _PRIOR_EFFECT
    error: float = _PRIOR_SPREAD
    noise: float = _PRIOR_NOISE
    usual: float = 0.0

    @property
    def threshold(self) -> float:
        """The share of a run's time from which on it is disturbed."""
        worst = max(self.effect + self.error, _LEAST_EFFECT)
        return 1.0 - exp(-self.usual - max(self.noise, _LEAST_NOISE) / worst)


def sensitivity(runs: Sequence[ObservedRun], prior_effect: float = _PRIOR_EFFECT) -> Sensitivity:
    """Estimate it from the runs of a study, disturbed ones included; `prior_effect` is expected before any."""
    if not runs:
        return Sensitivity(prior_effect)
    taken = np.array([-log1p(-min(run.taken, _MOST_TAKEN)) for run in runs])
    values = np.array([run.value for run in runs])
    places: dict[Hashable, int] = {}
    group = np.array([places.setdefault(run.configuration, len(places)) for run in runs])
    sizes = np.bincount(group)
    within = taken - (np.bincount(group, taken) / sizes)[group]
    medians = np.array([np.median((values - taken)[group == place]) for place in range(len(sizes))])
    prior = 1.0 / _PRIOR_SPREAD**2
    noise, effect, error = _PRIOR_NOISE, prior_effect, _PRIOR_SPREAD
    fitted = medians[group] + taken
    for _ in range(_ROUNDS):
        pulled = fitted + np.clip(values - fitted, -_CLIP * noise, _CLIP * noise)
        precision = prior + float(within @ within) / noise**2
        effect = (prior * prior_effect + float(within @ pulled) / noise**2) / precision
        error = 1.0 / sqrt(precision)
        centers = np.bincount(group, pulled - effect * taken) / sizes
        fitted = centers[group] + effect * taken
        residuals = np.clip(values - fitted, -_CLIP * noise, _CLIP * noise)
        squares = _PRIOR_DEGREES * _PRIOR_NOISE**2 + float(residuals @ residuals)
        noise = sqrt(squares / (_PRIOR_DEGREES + len(runs) - len(sizes)))
    return Sensitivity(effect, error, noise, min(float(np.quantile(taken, _USUAL_QUANTILE)), _MOST_USUAL))
