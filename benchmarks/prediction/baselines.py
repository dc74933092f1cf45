"""Baselines for the model: simpler ways to choose a configuration for a machine without any runs.

Each returns scores of the candidates of a setting from measurements on other machines; lower is better.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from autotune.performance.regression.learners import Features
from autotune.performance.regression.similarity import squared_distances
from autotune.performance.regression.table import DesignMatrix
from autotune.performance.transfer.sources import sources
from autotune.records.measurement import Measured, Setting
from spaces import Space
from spaces.expressions.quantities import FloatArray
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
    metric = setting.metric
    valued = [row for row in known if row.value is not None and row.value > 0.0]
    valued = [row for row in valued if row.setting.metric.compares_with(metric)]
    if len(valued) < 2:
        return None
    columns = DesignMatrix.from_measurements(valued).named
    features = Features.learn(columns)
    costs = np.array([row.setting.metric.cost(float(np.log(row.value or 1.0))) for row in valued])
    forest = RandomForestRegressor(_TREES, random_state=0, n_jobs=1).fit(np.nan_to_num(features.raw(columns)), costs)
    candidates = features.raw(DesignMatrix.candidates(space, rows, setting).named)
    return np.asarray(forest.predict(np.nan_to_num(candidates)))


BASELINES: Mapping[str, Baseline] = {
    "nearest machine's": nearest_machine,
    "mean rank": mean_rank,
    "random forest": random_forest,
}
