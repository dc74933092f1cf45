"""Accuracy: test how well a model predicts each setting without any measurement of its machine or its workload.

A random split would flatter the model: it would have seen the same machine and nearly the same configuration.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.stats import spearmanr

from autotune.performance.installation import with_installation_apart
from autotune.performance.model import PerformanceModel
from autotune.performance.recognition import unify_names
from autotune.performance.regression.table import DesignMatrix
from autotune.performance.run_times.model import RunTimes
from autotune.records.measurement import Measured, Setting
from objectives.replay.domains import parameter_of, usable_names, value_of
from spaces import Configuration, Listed, Space, Value
from spaces.expressions.quantities import FloatArray

By = Literal["machine", "workload"]

TRIES = 5
"""The number of proposals to judge."""

_LEAST = 3  # a setting is judged if it has this many configurations with a value
_REASON = "only what was measured can be compared"


@dataclass(frozen=True)
class Choice:
    """The efficiency (best value of the setting over the proposal's) of the first proposal, and of the best one."""

    first: float
    best: float


@dataclass(frozen=True)
class Times:
    """How far predicted values were from measured ones.

    Attributes:
        error: The median of the absolute relative errors.
        correlation: Spearman's rank correlation; NaN if either side is constant.
        covered: The share of values inside their intervals.
        width: The median factor from the middle of an interval to its end.
        predicted: For each value: the measured value, the predicted one, and both ends of its interval.
    """

    error: float
    correlation: float
    covered: float
    width: float
    predicted: tuple[tuple[float, float, float, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class HeldOutSetting:
    """A setting that was left out, with its number of `values`; a figure is None if the model gave no answer."""

    setting: Setting
    values: int
    default: float | None
    choice: Choice | None
    times: Times | None
    doubts: tuple[str, ...] = ()


def judge_held_out(measured: Sequence[Measured], by: By) -> Iterator[HeldOutSetting]:
    """Yield every setting that can be judged, predicted without any measurement of its machine (or workload).

    Measurements of the same machine or workload under another name are left out, too: the model would recognise them
    by their facts.
    """
    measured = _with_usable_names(measured)
    tables: dict[tuple[object, ...], list[Measured]] = {}
    for measurement in measured:
        tables.setdefault((measurement.setting.key, measurement.setting.built), []).append(measurement)
    for own in tables.values():
        setting = own[-1].setting
        asked = with_installation_apart(setting)
        group = _group(asked, by)
        named = zip(measured, unify_names(measured, asked), strict=True)
        known = [measurement for measurement, alike in named if _group(alike.setting, by) != group]
        valued = [measurement for measurement in own if measurement.value is not None and measurement.value > 0.0]
        if len(valued) >= _LEAST and any(measurement.value is not None for measurement in known):
            yield _hold_out(setting, own, valued, known)


def _group(setting: Setting, by: By) -> str:
    return setting.machine if by == "machine" else setting.workload


def _hold_out(
    setting: Setting, own: Sequence[Measured], valued: Sequence[Measured], known: Sequence[Measured]
) -> HeldOutSetting:
    default = next((measurement for measurement in own if measurement.default), None)
    space = _space_of([measurement.configuration for measurement in own], default.configuration if default else None)
    costs = {_key(space, measurement.configuration): _cost(measurement) for measurement in valued}
    best = min(costs.values())

    def chosen(configurations: Sequence[Configuration]) -> Choice:
        efficiencies = [
            float(np.exp(best - costs.get(_key(space, configuration), np.inf))) for configuration in configurations
        ]
        return Choice(efficiencies[0], max(efficiencies))

    model = PerformanceModel(tuple(known))
    prediction = model.best(space, setting, TRIES)
    proposals = [proposal.configuration for proposal in prediction.proposals]
    return HeldOutSetting(
        setting,
        len(valued),
        float(np.exp(best - _cost(default))) if default is not None and default in valued else None,
        chosen(proposals) if proposals else None,
        _times(valued, known, setting),
        prediction.doubts,
    )


def _times(valued: Sequence[Measured], known: Sequence[Measured], setting: Setting) -> Times | None:
    model = RunTimes.fit(known, (), setting)
    if model is None or model.abstains:
        return None
    estimate = model.estimate(DesignMatrix.from_measurements(valued))
    true = np.log([measurement.value or np.nan for measurement in valued])
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
    """Return Spearman's rank correlation of two arrays, (n,); NaN if either is constant."""
    if np.ptp(predicted) == 0.0 or np.ptp(true) == 0.0:
        return float("nan")
    return float(spearmanr(predicted, true).statistic)


def _cost(measurement: Measured) -> float:
    return measurement.setting.metric.cost(float(np.log(measurement.value or np.nan)))


def _key(space: Space, configuration: Configuration) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(_in_terms_of(space, configuration).items()))


def _space_of(configurations: Sequence[Configuration], default: Configuration | None = None) -> Space:
    """Return the space of exactly these configurations, with the first as default unless another is given."""
    names = list(dict.fromkeys(name for configuration in configurations for name in configuration))
    first = configurations[0] if default is None else default
    parameters = [
        parameter_of(name, name, [configuration.get(name) for configuration in configurations], first.get(name))
        for name in names
    ]
    rows = [
        tuple(value_of(parameter, configuration.get(parameter.name)) for parameter in parameters)
        for configuration in configurations
    ]
    return Space(parameters, [Listed.of("measured", names, rows, _REASON)])


def _with_usable_names(measured: Sequence[Measured]) -> list[Measured]:
    """Return the measurements with parameter names that a space allows: an import may use `block-size`."""
    names = dict.fromkeys(name for row in measured for name in (*row.configuration, *row.idle))
    called = usable_names(list(names))
    return [
        replace(
            row,
            configuration={called[name]: value for name, value in row.configuration.items()},
            idle=tuple(called[name] for name in row.idle),
        )
        for row in measured
    ]


def _in_terms_of(space: Space, configuration: Configuration) -> Mapping[str, Value]:
    """Return a measured configuration with the values that `_space_of` uses."""
    values = {parameter.name: value_of(parameter, configuration.get(parameter.name)) for parameter in space.parameters}
    return {name: value for name, value in values.items() if value is not None}
