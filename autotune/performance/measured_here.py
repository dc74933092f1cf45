"""What was measured of the configurations of a space in the setting that a question is about."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, nextafter, sqrt
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from autotune.formatting import shown
from autotune.performance.regression.in_space import in_space
from autotune.performance.regression.prediction import CONFIDENCE, Interval
from autotune.performance.validity import broken_limits
from autotune.records.limit import Limits
from autotune.records.measurement import Judged, Measured, Setting
from spaces import Float, Integer, Space
from spaces.valid_set.valid_set import Indices

# The standard deviation of the logarithm of a run where nobody knows it: runs on a shared machine differ so.
_NOISE = 0.03

# Beyond that factor, as a logarithm, an interval says nothing: few runs of many configurations know no noise.
_WIDEST = 20.0


@dataclass(frozen=True, eq=False)
class MeasuredHere:
    """Value indexes `rows`, (k, p), each once, and the measurement of each, a value or a bound.

    What a verdict says over a default that breaks one of the `limits` does not count: they do not compare.
    """

    space: Space
    setting: Setting
    rows: Indices
    measured: tuple[Measured, ...]
    limits: Limits = ()

    @classmethod
    def of(cls, space: Space, setting: Setting, measured: Sequence[Measured], limits: Limits = ()) -> Self:
        """Learn from measurements; those of other settings, versions or inputs, and failures, are left out."""
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
        """Return the measurement of each of value indexes, (n, p); None where there is none."""
        return [self._by_row.get(row.tobytes()) for row in _as_keys(rows)]

    def inside(self, rows: Indices) -> npt.NDArray[np.bool_]:
        """Return which value indexes, (n, p), have no parameter outside of the values that were measured."""
        is_inside = np.ones(len(rows), dtype=bool)
        for parameter, known, column in zip(self.space.parameters, self.rows.T, rows.T, strict=True):
            # Of words, and of "unset", nothing lies between two others.
            between = np.zeros(len(rows), dtype=bool)
            if isinstance(parameter, Integer | Float) and (known >= 0).any():
                between = (column >= known[known >= 0].min()) & (column <= known.max())
            is_inside &= between | np.isin(column, known)
        return is_inside

    @cached_property
    def default(self) -> Measured | None:
        """The measurement of the space's default configuration; None where there is none."""
        return self.at(self.space.indices([self.space.default()]))[0]

    @cached_property
    def best(self) -> int | None:
        """The place of the best value in `rows`; None where there are only bounds."""
        costs = {place: self.cost(row) for place, row in enumerate(self.measured) if row.value is not None}
        return min(costs, key=lambda place: costs[place]) if costs else None

    @property
    def keeps_default(self) -> bool:
        """Whether a verdict found that the best of here is not sure to beat the default."""
        judged = None if self.best is None else self._judged(self.measured[self.best])
        return judged is not None and not judged.holds

    def cost(self, measured: Measured) -> float:
        """Return the logarithm of a value, or of a bound, the better the less.

        What a verdict's winner was chosen before, in fresh runs, is behind that, though its trial may look better.
        """
        looks, judged = self._looks(measured), self._judged(measured)
        if judged is None or judged.winner == measured.configuration:
            return looks
        winner = next((row for row in self.measured if row.configuration == judged.winner), measured)
        return max(looks, nextafter(self._looks(winner), inf))

    def _looks(self, measured: Measured) -> float:
        return self.setting.metric.cost(log(measured.value or measured.bound or 1.0))

    def verdict_on(self, measured: Measured | None) -> Judged | None:
        """Return what a verdict says of a configuration itself; None where none does."""
        judged = None if measured is None else self._judged(measured)
        return judged if measured is not None and judged and judged.winner == measured.configuration else None

    def confirmed(self, measured: Measured | None) -> bool:
        """Return whether a verdict says that a configuration surely beats the default."""
        judged = self.verdict_on(measured)
        return judged is not None and judged.holds

    def gain(self, measured: Measured | None) -> Interval | None:
        """Return how many times better than the default a configuration is; None if not both have values.

        That is what a verdict says of it. Without one it is what it looks like, and the interval is so wide that those
        of all configurations are right at once in nine cases of ten: the best of many looks better than it is.
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
        """Say how much was measured here, what was the best of it, and how sure that is; empty if nothing was."""
        if self.best is None:
            return ""
        metric, best, default = self.setting.metric, self.measured[self.best], self.default
        count = len(self.measured)
        text = f"measured here: {count} configuration{'s' * (count != 1)}; the best {_said(best, metric.unit)}"
        own = "the default was not measured"
        if default is best:
            own = "that is the default"
        elif default is not None and default.value is not None:
            how = "no verdict says that the best beats it"
            if self.confirmed(best):
                how = "a verdict says that the best beats it"
            elif self.keeps_default:
                how = "a verdict does not find the best sure to beat it"
            own = f"the default {_said(default, metric.unit)}; {how}"
        return f"{text} ({shown(best.configuration)}); {own}"

    def _judged(self, measured: Measured) -> Judged | None:
        """Return what a verdict says of a configuration, over the default that is asked about."""
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
    """Return whether it was measured in a setting, with the same program and input as far as these are known."""
    there = measured.setting
    comparable = there.key == setting.key and there.metric.compares_with(setting.metric)
    return comparable and there.may_be_identical(setting)


def value_of(measured: Measured | None) -> Interval | None:
    """Return the value of a measurement, with what repeats would be within; None without a value."""
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
    """Return half the interval that holds the true logarithm in nine cases of ten; for a `count` of them, all of it."""
    return min(error * float(stdtrit(degrees, 1.0 - (1.0 - CONFIDENCE) / (2.0 * count))), _WIDEST)


def _worth(measured: Measured) -> tuple[bool, bool, int]:
    """A value says more than a bound, a verdict more than trials, and many runs more than few."""
    return (measured.value is not None, measured.judged is not None, measured.runs)


def _as_keys(rows: Indices) -> Indices:
    return np.ascontiguousarray(rows, dtype=np.int32)


def _said(measured: Measured, unit: str) -> str:
    runs = "" if measured.runs == 1 else f" in {measured.runs} runs"
    return f"{measured.value:.4g}{f' {unit}' if unit else ''}{runs}"
