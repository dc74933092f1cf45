"""The limits of a study, converted from the study file to the units of the metrics."""

import re
from collections.abc import Mapping, Sequence
from math import inf, isfinite

from autotune.records.limit import OF_EVERY_RUN, Limit, Limits
from autotune.studyfile.model import LimitSection, StudyFile
from autotune.studyfile.target import of_every_run
from objectives.base import Metric, Plan
from objectives.units import conversion, usual_units
from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import Problem

_WRITTEN = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S*)\s*")


def limits_of(sections: Mapping[str, LimitSection], metrics: Sequence[Metric]) -> Limits:
    """Return the limits of a study, except those of metrics that no longer exist."""
    known = {metric.name: metric for metric in (*OF_EVERY_RUN, *metrics)}
    return tuple(_limit(section, known[name]) for name, section in sections.items() if name in known)


def limit_errors(study: StudyFile, plan: Plan) -> list[Problem]:
    """Return the errors in the limits of a study, each with its path."""
    known = {metric.name: metric for metric in (*of_every_run(plan), *plan.objective.metrics)}
    errors = []
    for name, section in study.limits.items():
        path = f"limits.{name}"
        if name not in known:
            msg = f"no metric is called {name!r}{did_you_mean(name, known)}; the metrics are {', '.join(known)}"
            errors.append(Problem(msg, path))
            continue
        wrong = [
            Problem(str(error), f"{path}.{end}")
            for end, written in (("min", section.min), ("max", section.max))
            if (error := _unreadable(written, known[name])) is not None
        ]
        if not wrong:
            limit = _limit(section, known[name])
            if limit.low > limit.high:
                wrong = [Problem(f"min is {section.min}, more than max, {section.max}: no value can be both", path)]
        errors += wrong
    if study.limits and study.stopping is not None:
        msg = "[stopping] compares trainings by one metric alone, so it excludes [limits]: remove one of them"
        errors.append(Problem(msg, "limits"))
    return errors


def _limit(section: LimitSection, metric: Metric) -> Limit:
    low = -inf if section.min is None else in_unit(section.min, metric)
    return Limit(metric, low, inf if section.max is None else in_unit(section.max, metric))


def _unreadable(written: float | str | None, metric: Metric) -> ValueError | None:
    try:
        if written is not None:
            in_unit(written, metric)
    except ValueError as error:
        return error
    return None


def in_unit(written: float | str, metric: Metric) -> float:
    """Return a number unchanged, and a text such as `12 GiB` in the unit of the metric.

    Raises:
        ValueError: The text is not a number, or its unit cannot be converted to that of the metric.
    """
    if not isinstance(written, str):
        return float(written)
    match = _WRITTEN.fullmatch(written)
    if match is None or not isfinite(float(match[1])):
        msg = f"must be a number, or a number with a unit in quotes ('12 GiB', '20 ms'), got {written!r}"
        raise ValueError(msg)
    value, unit = float(match[1]), match[2]
    if unit in {"", metric.unit}:
        return value
    convert = conversion(unit, metric.unit) if metric.unit else None
    if convert is not None:
        return convert(value)
    usual = usual_units(metric.unit)
    if not usual:
        has = f"is in {metric.unit}" if metric.unit else "has no unit"
        msg = f"{metric.name} {has}, so {unit!r} cannot be converted, got {written!r}: write the number alone"
        raise ValueError(msg)
    msg = f"{unit!r} is not a unit of {metric.name}, which is in {metric.unit}; known: {', '.join(usual)}"
    raise ValueError(msg)
