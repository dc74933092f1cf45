"""Scales: the positions of a parameter's values on an axis.

A numeric parameter with many values has a linear or logarithmic axis. For any other parameter, each value of the domain
has its own position, in order, with "unset" before the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from statistics import fmean
from typing import Any

from autotune.formatting import UNSET, value_text
from autotune.pictures.chart import Axis
from spaces import Choice, Configuration, Flag, Float, Integer
from spaces.parameters.parameter import Parameter, Value, index_of

_FEW = 9
_TICKS = 8
_RULER_TICKS = 5
_LETTERS = 16
# An uneven grid of whole numbers with at least this ratio of its ends is logarithmic.
_RATIO = 50.0
_KINDS: Mapping[str, type[Parameter]] = {"integer": Integer, "float": Float, "choice": Choice, "flag": Flag}


@dataclass(frozen=True)
class Scale:
    """The positions of one parameter's values on an axis."""

    parameter: Parameter
    values: tuple[Value, ...]

    @classmethod
    def of(cls, parameter: Parameter) -> "Scale":
        """Return the scale of a parameter."""
        return cls(parameter, tuple(parameter.values))

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.parameter.name

    @cached_property
    def numeric(self) -> bool:
        """Whether the position of a value is the value itself."""
        number = isinstance(self.parameter, Integer | Float)
        return number and len(self.values) > _FEW and not self.parameter.may_be_missing

    @cached_property
    def log(self) -> bool:
        """Whether the axis is logarithmic."""
        if not self.numeric:
            return False
        if isinstance(self.parameter, Float):
            return self.parameter.log
        first, second, last = (float(self.values[index]) for index in (0, 1, -1))
        even = last - first == (second - first) * (len(self.values) - 1)
        return first > 0.0 and last / first >= _RATIO and not even

    def place(self, configuration: Configuration) -> float | None:
        """Return the position of a configuration; None if its value is not in the domain or wrongly missing."""
        value = configuration.get(self.name)
        if value is None:
            return -1.0 if self.parameter.may_be_missing else None
        index = index_of(self.parameter, value)
        if index is None:
            return None
        return float(self.values[index]) if self.numeric else float(index)

    def share(self, configuration: Configuration) -> float | None:
        """Return the position of a configuration between 0 and 1."""
        position = self.place(configuration)
        if position is None:
            return None
        low, high = self._ends
        if self.log:
            position, low, high = log(position), log(low), log(high)
        return (position - low) / (high - low) if high > low else 0.5

    @property
    def _ends(self) -> tuple[float, float]:
        if self.numeric:
            return float(self.values[0]), float(self.values[-1])
        return -1.0 if self.parameter.may_be_missing else 0.0, float(len(self.values) - 1)

    @property
    def axis(self) -> Axis:
        """The axis of the values."""
        if self.numeric:
            return Axis(self.name, log=self.log)
        return Axis(self.name, ticks=tuple((position, text) for position, text in self._ticks(_TICKS)))

    def ruler(self) -> list[tuple[float, str]]:
        """Return ticks as shares of the axis, for parallel coordinates."""
        if not self.numeric:
            low, high = self._ends
            ticks = self._ticks(_RULER_TICKS)
            return [((position - low) / (high - low) if high > low else 0.5, text) for position, text in ticks]
        chosen = [self.values[index] for index in _spread(len(self.values), _RULER_TICKS)]
        shares = ((self.share({self.name: value}), short(value_text(value))) for value in chosen)
        return [(share, text) for share, text in shares if share is not None]

    def _ticks(self, most: int) -> list[tuple[float, str]]:
        unset = [(-1.0, UNSET)] if self.parameter.may_be_missing else []
        indices = _spread(len(self.values), most - len(unset))
        return unset + [(float(index), short(value_text(self.values[index]))) for index in indices]


def scales_of(space: Mapping[str, Any]) -> list[Scale]:
    """Return the scales of the parameters of a stored space (`Space.to_dict`)."""
    scales = []
    for entry in space["parameters"]:
        parts = dict(entry)
        kind = _KINDS[parts.pop("type")]
        scales.append(Scale.of(kind(**parts)))
    return scales


def short(text: str, letters: int = _LETTERS) -> str:
    """Return a text cut to a length that fits beside an axis."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def variance_shares(
    scales: Sequence[Scale], configurations: Sequence[Configuration], logs: Sequence[float]
) -> dict[str, float]:
    """Return the share of the variance of `logs` that each varying parameter explains alone.

    It is the adjusted R² of the groups of equal parameter values (a one-way layout). If a parameter has more values
    than a quarter of the trials, neighbouring values form a group.
    """
    shares = {}
    for scale in scales:
        positions = [
            (scale.place(configuration), value) for configuration, value in zip(configurations, logs, strict=True)
        ]
        there = [(position, value) for position, value in positions if position is not None]
        if len({position for position, _ in there}) > 1:
            shares[scale.name] = _adjusted_share(_group(there))
    return shares


def _group(positions: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Return the values grouped by position, in at most a quarter of the number of values."""
    ranks = {position: rank for rank, position in enumerate(sorted({position for position, _ in positions}))}
    most = max(2, len(positions) // 4)
    groups: dict[int, list[float]] = {}
    for position, value in positions:
        rank = ranks[position]
        groups.setdefault(rank if len(ranks) <= most else rank * most // len(ranks), []).append(value)
    return list(groups.values())


def _adjusted_share(groups: Sequence[Sequence[float]]) -> float:
    values = [value for group in groups for value in group]
    whole = _squares(values)
    free = len(values) - len(groups)
    if whole <= 0.0 or free <= 0:
        return 0.0
    within = sum(_squares(group) for group in groups) / free
    return max(0.0, 1.0 - within / (whole / (len(values) - 1)))


def _squares(values: Sequence[float]) -> float:
    middle = fmean(values)
    return sum((value - middle) ** 2 for value in values)


def _spread(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    return sorted({round(step * (count - 1) / (most - 1)) for step in range(most)})
