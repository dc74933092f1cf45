"""Baselines for the model: simpler ways to choose a configuration for a machine without any runs.

Each returns scores of the candidates of a setting from measurements on other machines; lower is better.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xgboost
from sklearn.ensemble import RandomForestRegressor

from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.linear import LogLinear
from autotune.performance.regression.similarity import squared_distances
from autotune.performance.regression.table import Table
from autotune.performance.transfer.sources import sources
from autotune.records.measurement import Measured, Setting
from spaces import Space
from spaces.valid_set.valid_set import Indices

Baseline = Callable[[Sequence[Measured], Space, Indices, Setting], FloatArray | None]
"""Returns scores, (n,), of value indexes (n, p) in a setting; None if there are too few measurements."""

_TREES = 200


def nearest_machine(known: Sequence[Measured], space: Space, rows: Indices, setting: Setting) -> FloatArray | None:
    """Rank configurations by their values on the most similar machine."""
    elsewhere = sources(space, setting, known)
    if not elsewhere:
        return None
    near = squared_distances([*(source.setting.machine_facts for source in elsewhere), setting.machine_facts])
    logs: FloatArray = -elsewhere[int(near[-1, :-1].argmin())].at(rows)
    return logs


def mean_rank(known: Sequence[Measured], space: Space, rows: Indices, setting: Setting) -> FloatArray | None:
    """Rank configurations by their mean rank on the other machines."""
    elsewhere = sources(space, setting, known)
    if not elsewhere:
        return None
    ranks = [np.argsort(np.argsort(-source.at(rows), kind="stable"), kind="stable") for source in elsewhere]
    means: FloatArray = np.mean(ranks, axis=0)
    return means


def random_forest(known: Sequence[Measured], space: Space, rows: Indices, setting: Setting) -> FloatArray | None:
    """Fit a random forest to the logarithm of the value on configuration, workload and machine facts."""

    def fitted(x: FloatArray, y: FloatArray) -> Callable[[FloatArray], FloatArray]:
        forest = RandomForestRegressor(_TREES, random_state=0, n_jobs=1).fit(np.nan_to_num(x), y)
        return lambda new: np.asarray(forest.predict(np.nan_to_num(new)))

    return _regressed(known, space, rows, setting, fitted)


def plain_xgboost(known: Sequence[Measured], space: Space, rows: Indices, setting: Setting) -> FloatArray | None:
    """Fit XGBoost with its default settings to the same columns."""

    def fitted(x: FloatArray, y: FloatArray) -> Callable[[FloatArray], FloatArray]:
        booster = xgboost.train({"nthread": 1, "verbosity": 0}, xgboost.DMatrix(x, y), 100)
        return lambda new: booster.predict(xgboost.DMatrix(new)).astype(float)

    return _regressed(known, space, rows, setting, fitted)


def log_linear(known: Sequence[Measured], space: Space, rows: Indices, setting: Setting) -> FloatArray | None:
    """Fit log(value) = machine + workload + each parameter, the model that HPC centres use."""
    valued = _valued(known, setting)
    if len(valued) < 2:
        return None
    model = LogLinear.fit(
        _table(DesignMatrix.from_measurements(valued)), _costs(valued), np.ones(len(valued)), products=False
    )
    return model.predict(_table(DesignMatrix.candidates(space, rows, setting)))


BASELINES: Mapping[str, Baseline] = {
    "nearest machine's": nearest_machine,
    "mean rank": mean_rank,
    "log-linear": log_linear,
    "random forest": random_forest,
    "plain XGBoost": plain_xgboost,
}


def _regressed(
    known: Sequence[Measured],
    space: Space,
    rows: Indices,
    setting: Setting,
    fitted: Callable[[FloatArray, FloatArray], Callable[[FloatArray], FloatArray]],
) -> FloatArray | None:
    valued = _valued(known, setting)
    if len(valued) < 2:
        return None
    columns = DesignMatrix.from_measurements(valued).named
    features = Features.learn(columns)
    return fitted(features.raw(columns), _costs(valued))(
        features.raw(DesignMatrix.candidates(space, rows, setting).named)
    )


def _table(cases: DesignMatrix) -> Table:
    named = cases.named.items()
    return Table(
        {name: column for name, column in named if column.dtype != object},
        {name: column for name, column in named if column.dtype == object},
    )


def _valued(known: Sequence[Measured], setting: Setting) -> list[Measured]:
    metric = setting.metric
    valued = (measurement for measurement in known if measurement.value is not None and measurement.value > 0.0)
    return [measurement for measurement in valued if measurement.setting.metric.compares_with(metric)]


def _costs(valued: Sequence[Measured]) -> FloatArray:
    return np.array(
        [measurement.setting.metric.cost(float(np.log(measurement.value or 1.0))) for measurement in valued]
    )
