"""What is expected of trainings that are frozen: which is worth its next leg, and which may still beat all others.

The next leg goes to the trial with the greatest index: the rate of improvement per step for which its next leg is a
fair price, if the training may be given up after that. It is the reservation price of a box that is opened in two
stages (Weitzman, "Optimal search for the best alternative", Econometrica 47, 1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from autotune.scheduling.learning_curves import Forecast, LearningCurves, Points
from autotune.search.base import Rows, fresh
from autotune.search.gaussian_process import log_expected_improvement
from spaces import Configuration, Space

Array = NDArray[np.floating]

# So many untried configurations stand for all.
_UNTRIED = 200
_HALVINGS = 50
# No trial is said to end below that share of the best cost so far.
_LEAST_SHARE = 0.1
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


@dataclass(frozen=True)
class Frozen:
    """How far a trial has come: the best costs until some steps, in their order; `over` if nothing is left to train."""

    number: int
    configuration: Configuration
    steps: tuple[int, ...]
    costs: tuple[float, ...]
    over: bool


@dataclass(frozen=True)
class Told:
    """What is foretold of a trial: the index of its next leg, the chance that it beats all others, its cost at the end.

    That cost is worth as much as so many `runs`.
    """

    index: float
    chance: float
    cost: float
    runs: float


@dataclass(frozen=True)
class CurveOutlook:
    """What `curves`, two or more, tell of trials that make `rungs` steps at most and freeze between."""

    space: Space
    rungs: Sequence[int]
    curves: Sequence[Frozen]

    @cached_property
    def trials(self) -> dict[int, Told]:
        """What is foretold of those that are not over, by their numbers."""
        places = np.array([place for place, curve in enumerate(self.curves) if not curve.over], dtype=np.intp)
        if not len(places):
            return {}
        now = np.array([float(self.curves[place].steps[-1]) for place in places])
        looks = np.array([float(self.after(int(step))) for step in now])
        forecast = self._model.forecast(self._traits[places], looks, self._most, places)
        index = fair_rates(forecast, self._best, looks - now, self._most - looks)
        reached = self._reached[places]
        others = np.array([np.delete(self._reached, place).min() for place in places])
        chance = np.where(reached < others, 1.0, ndtr((others - forecast.mean) / forecast.spread))
        noise = self._model.shape.noise * self._model.scale**2
        runs = noise / (noise + forecast.spread**2)
        # Where no cost is 0 or below, the search looks at ratios, and none must be foretold.
        least = _LEAST_SHARE * self._best if self._best > 0.0 else -np.inf
        told = np.column_stack([index, chance, np.clip(forecast.mean, least, reached), runs]).tolist()
        return {self.curves[place].number: Told(*one) for place, one in zip(places, told, strict=True)}

    @cached_property
    def untried(self) -> float:
        """The greatest index of configurations that no trial has."""
        drawn = self.space.sample_indices(np.random.default_rng(0), _UNTRIED + len(self._rows))
        rows = fresh(drawn, self._rows)[:_UNTRIED]
        if not len(rows):
            return 0.0
        looks = np.full(len(rows), float(self.rungs[0]))
        forecast = self._model.forecast(self.space.traits_of(rows), looks, self._most)
        return float(fair_rates(forecast, self._best, looks, self._most - looks).max())

    def after(self, step: int) -> int:
        """Return the next rung after a step."""
        return next((rung for rung in self.rungs if rung > step), self._most)

    @property
    def _most(self) -> int:
        return self.rungs[-1]

    @property
    def _best(self) -> float:
        return float(self._reached.min())

    @cached_property
    def _reached(self) -> Array:
        return np.array([curve.costs[-1] for curve in self.curves])

    @cached_property
    def _rows(self) -> Rows:
        return self.space.indices([curve.configuration for curve in self.curves])

    @cached_property
    def _traits(self) -> Array:
        return self.space.traits_of(self._rows)

    @cached_property
    def _model(self) -> LearningCurves:
        trial = np.repeat(np.arange(len(self.curves)), [len(curve.steps) for curve in self.curves])
        step = np.array([float(one) for curve in self.curves for one in curve.steps])
        # What is worse than most are at their first rung may be so by any factor, and would hide all other differences.
        usual = np.median([curve.costs[0] for curve in self.curves])
        costs = np.minimum(np.array([cost for curve in self.curves for cost in curve.costs]), usual)
        return LearningCurves.of(self._traits, Points(trial, step), costs, self._most)


def fair_rates(forecast: Forecast, best: float, leg: Array, rest: Array) -> Array:
    """Return the improvements on `best` per step, (m,), for which `leg` steps are a fair price, `rest` being optional.

    After the leg a part of what is unsure is known, and the rest is bought only where it is worth its steps.
    """
    left = np.sqrt(np.maximum(forecast.spread**2 - forecast.told**2, 1e-18))
    means = forecast.mean[:, None] + forecast.told[:, None] * _NODES
    gains = np.exp(log_expected_improvement(means, np.broadcast_to(left[:, None], means.shape), best))
    weights = _WEIGHTS / _WEIGHTS.sum()
    low, high = np.zeros(len(leg)), gains.max(axis=1, initial=0.0) / leg
    for _ in range(_HALVINGS):
        rate = 0.5 * (low + high)
        worth = np.maximum(gains - (rate * rest)[:, None], 0.0) @ weights > rate * leg
        low, high = np.where(worth, rate, low), np.where(worth, high, rate)
    return low
