"""The measurements of a space's configurations in the very setting of a question."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, nextafter, sqrt
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from autotune.formatting import configuration_text, quantity
from autotune.performance.regression.in_space import in_space
from autotune.performance.regression.prediction import CONFIDENCE, Interval
from autotune.performance.validity import broken_limits
from autotune.records.limit import Limits
from autotune.records.measurement import Judged, Measured, Setting
from objectives.base import Metric
from spaces import Float, Integer, Space
from spaces.valid_set.valid_set import Indices

# The standard deviation of the logarithm of a run if it is unknown: that of runs on a shared machine.
_NOISE = 0.03

# Half-widths, as logarithms, are capped here: a few runs of many configurations cannot estimate the noise.
_WIDEST = 20.0


@dataclass(frozen=True, eq=False)
class MeasuredHere:
    """The measured configurations, as distinct value indexes `rows`, (k, p), and a value or a bound of each.

    A verdict over a default that breaks one of the `limits` is ignored: that default is no valid reference.
    """

    space: Space
    setting: Setting
    rows: Indices
    measured: tuple[Measured, ...]
    limits: Limits = ()

    @classmethod
    def of(cls, space: Space, setting: Setting, measured: Sequence[Measured], limits: Limits = ()) -> Self:
        """Select the measurements of the setting; leave out other versions, other inputs and failures."""
        by_source: dict[str, list[Measured]] = defaultdict(list)
        for row in measured:
            if is_here(row, setting) and (row.value or row.bound or 0.0) > 0.0:
                by_source[row.setting.source].append(row)
        chosen: dict[bytes, tuple[Indices, Measured]] = {}
        for source in by_source.values():
            every, fits = space.fitting(in_space(space, [row.configuration for row in source]))
            for indices, row in zip(every[fits], np.array(source, dtype=object)[fits].tolist(), strict=True):
                key = indices.tobytes()
                if key not in chosen or _worth(row) > _worth(chosen[key][1]):
                    chosen[key] = (indices, row)
        rows = np.array([indices for indices, _ in chosen.values()], dtype=np.int32)
        width = len(space.parameters)
        values = tuple(row for _, row in chosen.values())
        return cls(space, setting, rows.reshape(len(chosen), width), values, limits)

    def at(self, rows: Indices) -> list[Measured | None]:
        """Return the measurement at each of the value indexes, (n, p); None for configurations without one."""
        return [self._by_row.get(row.tobytes()) for row in _as_keys(rows)]

    def inside(self, rows: Indices) -> npt.NDArray[np.bool_]:
        """Return which value indexes, (n, p), have every parameter inside the range of measured values."""
        is_inside = np.ones(len(rows), dtype=bool)
        for parameter, known, column in zip(self.space.parameters, self.rows.T, rows.T, strict=True):
            # Words and "unset" have no order, so no word lies between two others.
            between = np.zeros(len(rows), dtype=bool)
            if isinstance(parameter, Integer | Float) and (known >= 0).any():
                between = (column >= known[known >= 0].min()) & (column <= known.max())
            is_inside &= between | np.isin(column, known)
        return is_inside

    @cached_property
    def default(self) -> Measured | None:
        """The measurement of the space's default configuration; None if it was not measured."""
        return self.at(self.space.indices([self.space.default()]))[0]

    @cached_property
    def best(self) -> int | None:
        """The index in `rows` of the best value; None if there are only bounds."""
        costs = {place: self.cost(row) for place, row in enumerate(self.measured) if row.value is not None}
        return min(costs, key=lambda place: costs[place]) if costs else None

    @property
    def keeps_default(self) -> bool:
        """Whether a verdict found that the best configuration here is not sure to beat the default."""
        judged = None if self.best is None else self._judgement_of(self.measured[self.best])
        return judged is not None and not judged.holds

    def cost(self, measured: Measured) -> float:
        """Return the logarithm of a value or of a bound; lower is better.

        A configuration that lost to a verdict's winner in fresh runs ranks behind it, even if its trial looks better.
        """
        looks, judged = self._looks(measured), self._judgement_of(measured)
        if judged is None or judged.winner == measured.configuration:
            return looks
        winner = next((row for row in self.measured if row.configuration == judged.winner), measured)
        return max(looks, nextafter(self._looks(winner), inf))

    def _looks(self, measured: Measured) -> float:
        return self.setting.metric.cost(log(measured.value or measured.bound or 1.0))

    def verdict_on(self, measured: Measured | None) -> Judged | None:
        """Return a verdict's judgement of the configuration itself; None without one."""
        judged = None if measured is None else self._judgement_of(measured)
        return judged if measured is not None and judged and judged.winner == measured.configuration else None

    def is_confirmed(self, measured: Measured | None) -> bool:
        """Return whether a verdict found that a configuration surely beats the default."""
        judged = self.verdict_on(measured)
        return judged is not None and judged.holds

    def gain(self, measured: Measured | None) -> Interval | None:
        """Return how many times better than the default a configuration is; None unless both have values.

        This is the verdict's figure if there is one. Otherwise it is the ratio of the measurements, with an interval
        wide enough to hold for all configurations at once in 90 % of cases: the best of many looks better than it is.
        """
        default = self.default
        if measured is None or default is None or measured.value is None or default.value is None:
            return None
        judged = self.verdict_on(measured)
        if judged is not None and judged.said is not None:
            return Interval(*judged.said, judged.confidence)
        others = sum(row.value is not None for row in self.measured) - 1
        (error, degrees), (of_default, its_degrees) = _error(measured), _error(default)
        half = _half(sqrt(error**2 + of_default**2), min(degrees, its_degrees), max(1, others))
        gain, wide = exp(self._looks(default) - self._looks(measured)), exp(half)
        return Interval(gain, gain / wide, gain * wide)

    @property
    def remark(self) -> str:
        """Return how much was measured here, the best of it, and how sure that is; empty without measurements."""
        if self.best is None:
            return ""
        metric, best, default = self.setting.metric, self.measured[self.best], self.default
        count = len(self.measured)
        text = f"measured here: {count} configuration{'s' * (count != 1)}; the best {_value_text(best, metric)}"
        own = "the default was not measured"
        if default is best:
            own = "that is the default"
        elif default is not None and default.value is not None:
            how = "no verdict says that the best beats it"
            if self.is_confirmed(best):
                how = "a verdict says that the best beats it"
            elif self.keeps_default:
                how = "a verdict does not find the best sure to beat it"
            own = f"the default {_value_text(default, metric)}; {how}"
        return f"{text} ({configuration_text(best.configuration)}); {own}"

    def _judgement_of(self, measured: Measured) -> Judged | None:
        """Return a verdict's judgement of a configuration over this space's default; None without one."""
        judged, default = measured.judged, self.default
        if (
            judged is None
            or default is None
            or judged.over != default.configuration
            or broken_limits(self.limits, default)
        ):
            return None
        return judged

    @cached_property
    def _by_row(self) -> dict[bytes, Measured]:
        return dict(zip([row.tobytes() for row in _as_keys(self.rows)], self.measured, strict=True))


def is_here(measured: Measured, setting: Setting) -> bool:
    """Return whether a measurement is of a setting, and of the same program and input as far as these are known."""
    there = measured.setting
    comparable = there.key == setting.key and there.metric.compares_with(setting.metric)
    return comparable and there.may_be_identical(setting)


def value_of(measured: Measured | None) -> Interval | None:
    """Return the value of a measurement, with the interval in which repeats would lie; None without a value."""
    if measured is None or measured.value is None:
        return None
    wide = exp(_half(*_error(measured)))
    return Interval(measured.value, measured.value / wide, measured.value * wide)


def _error(measured: Measured) -> tuple[float, float]:
    """Return the standard error of the logarithm of a value, and its degrees of freedom."""
    if measured.error is None:
        return _NOISE / sqrt(max(1, measured.runs)), inf
    return measured.error, measured.degrees


def _half(error: float, degrees: float, count: int = 1) -> float:
    """Return the half-width of an interval that holds the true logarithm, or `count` of them at once, in 90 %."""
    return min(error * float(stdtrit(degrees, 1.0 - (1.0 - CONFIDENCE) / (2.0 * count))), _WIDEST)


def _worth(measured: Measured) -> tuple[bool, bool, int]:
    """Return a sort key: a value beats a bound, a verdict beats trials, and many runs beat few."""
    return (measured.value is not None, measured.judged is not None, measured.runs)


def _as_keys(rows: Indices) -> Indices:
    return np.ascontiguousarray(rows, dtype=np.int32)


def _value_text(measured: Measured, metric: Metric) -> str:
    runs = "" if measured.runs == 1 else f" in {measured.runs} runs"
    return f"{quantity(measured.value or 0.0, metric)}{runs}"
