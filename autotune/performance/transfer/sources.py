"""Sources: what settings elsewhere tell of the configurations of one space.

All is on the scale of efficiency, the best value of a setting over a configuration's: it compares configurations where
times differ by the size of the machine. What is slower than a tenth of the best is all alike, and so is what fails.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xgboost

from autotune.performance.regression.features import FloatArray
from autotune.records.measurement import Measured, Setting
from spaces import Configuration, Space
from spaces.valid_set.valid_set import Indices

FLOOR = 0.1
"""The least efficiency that is told from others."""

# From fewer configurations nobody can say what the others would do.
_LEAST = 20
_SMOOTHER = {
    "max_depth": 6,
    "eta": 0.1,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
    "nthread": 1,
    "seed": 0,
    "verbosity": 0,
}
_ROUNDS = 300


@dataclass(frozen=True, eq=False)
class Source:
    """A setting, the configurations measured there as value indexes (n, p), and their logarithms of efficiency (n,)."""

    setting: Setting
    space: Space
    rows: Indices
    logs: FloatArray

    def at(self, rows: Indices) -> FloatArray:
        """Return the logarithms of efficiency at value indexes (m, p): measured where that was done, else smoothed."""
        keys = [row.tobytes() for row in np.ascontiguousarray(rows)]
        new = [place for place, key in enumerate(keys) if key not in self._told]
        if new:
            self._told.update(zip([keys[place] for place in new], self.smooth_at(rows[new]).tolist(), strict=True))
        return np.array([self._told[key] for key in keys])

    def measured_at(self, rows: Indices) -> FloatArray:
        """Return the measured logarithms of efficiency at value indexes (m, p), NaN where nothing was measured."""
        return np.array([self._places.get(row.tobytes(), np.nan) for row in np.ascontiguousarray(rows)])

    def smooth_at(self, rows: Indices) -> FloatArray:
        """Return what trees that were fitted to the measurements say at value indexes (m, p)."""
        told = self._smoother.predict(xgboost.DMatrix(self.space.traits_of(rows)))
        smooth: FloatArray = np.clip(told.astype(float), np.log(FLOOR), 0.0)
        return smooth

    @cached_property
    def _places(self) -> dict[bytes, float]:
        return dict(zip([row.tobytes() for row in self.rows], self.logs.tolist(), strict=True))

    @cached_property
    def _told(self) -> dict[bytes, float]:
        # A search asks about the same configurations again and again.
        return dict(self._places)

    @cached_property
    def _smoother(self) -> xgboost.Booster:
        return xgboost.train(_SMOOTHER, xgboost.DMatrix(self.space.traits_of(self.rows), self.logs), _ROUNDS)


def sources(space: Space, setting: Setting, measured: Sequence[Measured]) -> list[Source]:
    """Return the settings that measured enough configurations of `space`, by the metric of `setting`.

    Whether what was measured in the setting itself counts is for the caller to say.
    """
    by_key: dict[tuple[str, ...], list[Measured]] = defaultdict(list)
    for one in measured:
        same = one.setting.program == setting.program and one.setting.metric.compares_with(setting.metric)
        if same:
            by_key[one.setting.key].append(one)
    found = (_source(space, rows) for rows in by_key.values())
    return [one for one in found if one is not None]


def _source(space: Space, measured: Sequence[Measured]) -> Source | None:
    rows, fits = space.fitting(_adapted(space, [one.configuration for one in measured]))
    known = [one for one, fit in zip(measured, fits, strict=True) if fit]
    metric = measured[0].setting.metric
    costs = [metric.cost(np.log(one.value)) for one in known if one.value is not None and one.value > 0.0]
    if len(costs) < _LEAST:
        return None
    logs = np.array([_log_efficiency(one, min(costs)) for one in known])
    unique: Indices
    unique, first = np.unique(rows[fits], axis=0, return_index=True)
    told = ~np.isnan(logs[first])
    return Source(measured[0].setting, space, np.ascontiguousarray(unique[told]), logs[first][told])


def _log_efficiency(one: Measured, best: float) -> float:
    """Return the logarithm of efficiency; of a bound the most that it can be, which is NaN if that tells nothing."""
    metric, floor = one.setting.metric, float(np.log(FLOOR))
    if one.value is not None and one.value > 0.0:
        return max(best - metric.cost(float(np.log(one.value))), floor)
    if one.bound is not None and one.bound > 0.0:
        most = best - metric.cost(float(np.log(one.bound)))
        return max(most, floor) if most < 0.0 else np.nan
    return floor


def _adapted(space: Space, configurations: Sequence[Configuration]) -> list[Configuration]:
    """Return configurations in the terms of `space`.

    A parameter that the space does not have and that never changed there is left out; one that nobody set there has its
    default.
    """
    values: dict[str, set[object]] = defaultdict(set)
    counts: dict[str, int] = defaultdict(int)
    for configuration in configurations:
        for name, value in configuration.items():
            values[name].add(value)
            counts[name] += 1
    own = {parameter.name for parameter in space.parameters}
    never_change = {name for name, seen in values.items() if len(seen) == 1 and counts[name] == len(configurations)}
    idle = never_change - own
    missing = {name: value for name, value in space.default().items() if name not in values}
    if not idle and not missing:
        return list(configurations)
    return [{**missing, **{name: value for name, value in one.items() if name not in idle}} for one in configurations]
