"""Accuracy: how well each setting is predicted by a model that knows nothing of its machine, or of its workload.

A random split would flatter: there the model has seen the same machine and nearly the same configuration.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.stats import spearmanr

from autotune.performance.baselines import BASELINES
from autotune.performance.model import PerformanceModel
from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import FloatArray
from autotune.performance.run_times.model import RunTimes
from autotune.performance.table_space import in_terms_of, tabled
from autotune.records.measurement import Measured, Setting
from spaces import Configuration, Space

By = Literal["machine", "workload"]

TRIES = 5
"""So many proposals are looked at."""

_LEAST = 3  # configurations with a value that a setting must have to be judged


@dataclass(frozen=True)
class Choice:
    """What choosing came to: the efficiency (best value of the setting over it) of the first, and of the best few."""

    first: float
    best: float


@dataclass(frozen=True)
class Times:
    """How far predicted values were from measured ones.

    `error` is the median of the absolute errors, relative; `correlation` Spearman's, NaN where there is none; `covered`
    the share of values in their intervals, `width` the median factor from the middle of an interval to its end.
    """

    error: float
    correlation: float
    covered: float
    width: float
    predicted: tuple[tuple[float, float, float, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class HeldOutSetting:
    """A setting that was left out, with its number of `values`; None where the model declined to answer."""

    setting: Setting
    values: int
    default: float | None
    choice: Choice | None
    times: Times | None
    baselines: Mapping[str, Choice]
    doubts: tuple[str, ...] = ()


def left_out(measured: Sequence[Measured], by: By, *, baselines: bool = True) -> Iterator[HeldOutSetting]:
    """Yield every setting that can be judged, predicted without any measurement of its machine (or workload)."""
    settings = {one.setting.key: one.setting for one in measured}
    for setting in settings.values():
        own = [one for one in measured if one.setting.key == setting.key]
        group = _group(setting, by)
        known = [one for one in measured if _group(one.setting, by) != group]
        told = [one for one in own if one.value is not None and one.value > 0.0]
        if len(told) >= _LEAST and any(one.value is not None for one in known):
            yield _held(setting, own, told, known, baselines=baselines)


def _group(setting: Setting, by: By) -> str:
    return setting.machine if by == "machine" else setting.workload


def _held(
    setting: Setting, own: Sequence[Measured], told: Sequence[Measured], known: Sequence[Measured], *, baselines: bool
) -> HeldOutSetting:
    default = next((one for one in own if one.default), None)
    space = tabled([one.configuration for one in own], default.configuration if default else None)
    costs = {_key(space, one.configuration): _cost(one) for one in told}
    best = min(costs.values())

    def chosen(configurations: Sequence[Configuration]) -> Choice:
        found = [float(np.exp(best - costs.get(_key(space, one), np.inf))) for one in configurations]
        return Choice(found[0], max(found))

    model = PerformanceModel(tuple(known))
    prediction = model.best(space, setting, TRIES)
    proposals = [one.configuration for one in prediction.proposals]
    rows = space.all_indices()
    others: dict[str, Choice] = {}
    for name, baseline in BASELINES.items() if baselines else ():
        scores = baseline(known, space, rows, setting)
        if scores is not None:
            others[name] = chosen(space.decode(rows[np.argsort(scores, kind="stable")[:TRIES]]))
    return HeldOutSetting(
        setting,
        len(told),
        float(np.exp(best - _cost(default))) if default is not None and default in told else None,
        chosen(proposals) if proposals else None,
        _times(told, known, setting),
        others,
        prediction.doubts,
    )


def _times(told: Sequence[Measured], known: Sequence[Measured], setting: Setting) -> Times | None:
    model = RunTimes.fitted(known, (), setting)
    if model is None or model.abstains:
        return None
    estimate = model.estimate(DesignMatrix.measured(told))
    true = np.log([one.value or np.nan for one in told])
    away = np.abs(estimate.mean - true)
    return Times(
        error=float(np.median(np.abs(np.expm1(estimate.mean - true)))),
        correlation=_correlation(estimate.mean, true),
        covered=float((away <= estimate.half).mean()),
        width=float(np.exp(np.median(estimate.half))),
        predicted=tuple(
            zip(
                np.exp(true).tolist(),
                np.exp(estimate.mean).tolist(),
                np.exp(estimate.mean - estimate.half).tolist(),
                np.exp(estimate.mean + estimate.half).tolist(),
                strict=True,
            )
        ),
    )


def _correlation(predicted: FloatArray, true: FloatArray) -> float:
    """Return Spearman's rank correlation, NaN where all of either, (n,), are the same."""
    if np.ptp(predicted) == 0.0 or np.ptp(true) == 0.0:
        return float("nan")
    return float(spearmanr(predicted, true).statistic)


def _cost(one: Measured) -> float:
    return one.setting.metric.cost(float(np.log(one.value or np.nan)))


def _key(space: Space, configuration: Configuration) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(in_terms_of(space, configuration).items()))
