"""What was measured of the configurations of a space in the setting that a question is about."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, sqrt
from typing import Self

import numpy as np
import numpy.typing as npt

from autotune.formatting import shown
from autotune.performance.regression.in_space import in_space
from autotune.performance.regression.prediction import Interval
from autotune.records.measurement import Measured, Setting
from spaces import Float, Integer, Space
from spaces.valid_set.valid_set import Indices

# Half the interval that holds a single run in nine cases of ten, as a logarithm: runs on a shared machine differ so.
_NOISE = 0.05


@dataclass(frozen=True, eq=False)
class MeasuredHere:
    """Value indexes `rows`, (k, p), each once, and the measurement of each, a value or a bound."""

    space: Space
    setting: Setting
    rows: Indices
    measured: tuple[Measured, ...]

    @classmethod
    def of(cls, space: Space, setting: Setting, measured: Sequence[Measured]) -> Self:
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
        return cls(space, setting, rows.reshape(len(chosen), width), tuple(row for _, row in chosen.values()))

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

    @property
    def best(self) -> int | None:
        """The place of the best value in `rows`; None where there are only bounds."""
        costs = {place: self.cost(row) for place, row in enumerate(self.measured) if row.value is not None}
        return min(costs, key=lambda place: costs[place]) if costs else None

    def cost(self, measured: Measured) -> float:
        """Return the logarithm of a value, or of a bound, the better the less."""
        return self.setting.metric.cost(log(measured.value or measured.bound or 1.0))

    def remark(self, default: Measured | None) -> str:
        """Say how much was measured here, and what was the best of it; empty if nothing was."""
        if self.best is None:
            return ""
        metric, best = self.setting.metric, self.measured[self.best]
        count = len(self.measured)
        text = f"measured here: {count} configuration{'s' * (count != 1)}; the best {_said(best, metric.unit)}"
        own = "the default was not measured"
        if default is best:
            own = "that is the default"
        elif default is not None and default.value is not None:
            own = f"the default {_said(default, metric.unit)}"
        return f"{text} ({shown(best.configuration)}); {own}"

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
    wide = exp(_half(measured))
    return Interval(measured.value, measured.value / wide, measured.value * wide)


def gain_of(measured: Measured | None, default: Measured | None) -> Interval | None:
    """Return how many times better than the default it was measured to be; None if not both have values."""
    if measured is None or default is None or measured.value is None or default.value is None:
        return None
    metric = measured.setting.metric
    gain = exp(metric.cost(log(default.value)) - metric.cost(log(measured.value)))
    wide = exp(sqrt(_half(measured) ** 2 + _half(default) ** 2))
    return Interval(gain, gain / wide, gain * wide)


def _half(measured: Measured) -> float:
    return _NOISE / sqrt(max(1, measured.runs))


def _worth(measured: Measured) -> tuple[bool, int]:
    """A value says more than a bound, and many runs more than few."""
    return (measured.value is not None, measured.runs)


def _as_keys(rows: Indices) -> Indices:
    return np.ascontiguousarray(rows, dtype=np.int32)


def _said(measured: Measured, unit: str) -> str:
    runs = "" if measured.runs == 1 else f" in {measured.runs} runs"
    return f"{measured.value:.4g}{f' {unit}' if unit else ''}{runs}"
