"""Sources: the measurements of one space in other settings.

Values are efficiencies, the best value of a setting over a configuration's, so that machines of different size can be
compared. Configurations with less than a tenth of the best efficiency count like failures.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xgboost

from autotune.performance.regression.in_space import in_space
from autotune.records.measurement import Measured, Setting, installation_of
from spaces import Space
from spaces.expressions.quantities import FloatArray
from spaces.valid_set.valid_set import Indices

FLOOR = 0.1
"""The least efficiency; lower ones are raised to it."""

# A source needs this many configurations to predict the others.
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
        """Return the logarithms of efficiency at value indexes (m, p): measured where possible, else smoothed."""
        keys = [row.tobytes() for row in np.ascontiguousarray(rows)]
        new = [index for index, key in enumerate(keys) if key not in self._known_logs]
        if new:
            self._known_logs.update(
                zip([keys[index] for index in new], self.smooth_at(rows[new]).tolist(), strict=True)
            )
        return np.array([self._known_logs[key] for key in keys])

    def efficiencies_at(self, rows: Indices) -> FloatArray:
        """Return the measured logarithms of efficiency at value indexes (m, p); NaN for unmeasured ones."""
        return np.array([self._measured_logs.get(row.tobytes(), np.nan) for row in np.ascontiguousarray(rows)])

    def smooth_at(self, rows: Indices) -> FloatArray:
        """Return the predictions at value indexes (m, p) by trees fitted to the measurements."""
        predicted = self._smoother.predict(xgboost.DMatrix(self.space.traits_of(rows)))
        smooth: FloatArray = np.clip(predicted.astype(float), np.log(FLOOR), 0.0)
        return smooth

    @cached_property
    def _measured_logs(self) -> dict[bytes, float]:
        return dict(zip([row.tobytes() for row in self.rows], self.logs.tolist(), strict=True))

    @cached_property
    def _known_logs(self) -> dict[bytes, float]:
        # Remember predictions: a search evaluates the same configurations again and again.
        return dict(self._measured_logs)

    @cached_property
    def _smoother(self) -> xgboost.Booster:
        return xgboost.train(_SMOOTHER, xgboost.DMatrix(self.space.traits_of(self.rows), self.logs), _ROUNDS)


def sources(space: Space, setting: Setting, measured: Sequence[Measured]) -> list[Source]:
    """Return a source for each setting with enough measured configurations of `space`, by the metric of `setting`.

    Installations on one machine are settings of their own. The setting itself is a source if `measured` includes it.
    """
    by_key: dict[tuple[object, ...], list[Measured]] = defaultdict(list)
    for measurement in measured:
        same = measurement.setting.program == setting.program and measurement.setting.metric.compares_with(
            setting.metric
        )
        if same:
            built = frozenset(installation_of(measurement.setting).items())
            by_key[measurement.setting.key, built].append(measurement)
    candidates = (_source(space, rows) for rows in by_key.values())
    return [source for source in candidates if source is not None]


def _source(space: Space, measured: Sequence[Measured]) -> Source | None:
    rows, fits = space.fitting(in_space(space, [measurement.configuration for measurement in measured]))
    known = [measurement for measurement, fit in zip(measured, fits, strict=True) if fit]
    metric = measured[0].setting.metric
    costs = [
        metric.cost(np.log(measurement.value))
        for measurement in known
        if measurement.value is not None and measurement.value > 0.0
    ]
    if len(costs) < _LEAST:
        return None
    logs = np.array([_log_efficiency(measurement, min(costs)) for measurement in known])
    unique: Indices
    unique, first = np.unique(rows[fits], axis=0, return_index=True)
    usable = ~np.isnan(logs[first])
    return Source(measured[0].setting, space, np.ascontiguousarray(unique[usable]), logs[first][usable])


def _log_efficiency(measurement: Measured, best: float) -> float:
    """Return the logarithm of efficiency; for a bound the greatest possible one, or NaN if it excludes nothing."""
    metric, floor = measurement.setting.metric, float(np.log(FLOOR))
    if measurement.value is not None and measurement.value > 0.0:
        return max(best - metric.cost(float(np.log(measurement.value))), floor)
    if measurement.bound is not None and measurement.bound > 0.0:
        most = best - metric.cost(float(np.log(measurement.bound)))
        return max(most, floor) if most < 0.0 else np.nan
    return floor
