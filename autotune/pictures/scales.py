"""Scales: where the values of a parameter lie on an axis.

Numbers with many values lie where they are, evenly or by their logarithm. All else has a place for each value of the
domain, in its order, and "unset" stands before the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean
from typing import Any

from autotune.formatting import written
from autotune.pictures.chart import Axis
from spaces import Choice, Configuration, Flag, Float, Integer
from spaces.parameters.parameter import Parameter, Value, index_of

UNSET = "unset"
_FEW = 9
_TICKS = 8
_LETTERS = 16
# An even grid of whole numbers this wide is still read by its logarithm.
_RATIO = 50.0
_KINDS: Mapping[str, type[Parameter]] = {"integer": Integer, "float": Float, "choice": Choice, "flag": Flag}


@dataclass(frozen=True)
class Scale:
    """Where the values of one parameter lie."""

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

    @property
    def numeric(self) -> bool:
        """Whether values lie where they are as numbers."""
        number = isinstance(self.parameter, Integer | Float)
        return number and len(self.values) > _FEW and not self.parameter.may_be_missing

    @property
    def log(self) -> bool:
        """Whether they lie by their logarithm."""
        if not self.numeric:
            return False
        if isinstance(self.parameter, Float):
            return self.parameter.log
        first, second, last = (float(self.values[place]) for place in (0, 1, -1))
        even = last - first == (second - first) * (len(self.values) - 1)
        return first > 0.0 and last / first >= _RATIO and not even

    def place(self, configuration: Configuration) -> float | None:
        """Return where a configuration lies; None if its value is none of the domain, or it has none and must."""
        value = configuration.get(self.name)
        if value is None:
            return -1.0 if self.parameter.may_be_missing else None
        index = index_of(self.parameter, value)
        if index is None:
            return None
        return float(self.values[index]) if self.numeric else float(index)

    def share(self, configuration: Configuration) -> float | None:
        """Return where it lies between 0 and 1."""
        place = self.place(configuration)
        if place is None:
            return None
        low, high = self._ends
        if self.log:
            place, low, high = log(place), log(low), log(high)
        return (place - low) / (high - low) if high > low else 0.5

    @property
    def _ends(self) -> tuple[float, float]:
        if self.numeric:
            return float(self.values[0]), float(self.values[-1])
        return -1.0 if self.parameter.may_be_missing else 0.0, float(len(self.values) - 1)

    @property
    def axis(self) -> Axis:
        """The axis that the values lie on."""
        if self.numeric:
            return Axis(self.name, log=self.log)
        return Axis(self.name, ticks=tuple((place, text) for place, text in self._ticks(_TICKS)))

    def ruler(self, most: int = 5) -> list[tuple[float, str]]:
        """Return ticks as shares of the axis, for parallel coordinates."""
        if not self.numeric:
            low, high = self._ends
            return [((place - low) / (high - low) if high > low else 0.5, text) for place, text in self._ticks(most)]
        chosen = [self.values[place] for place in _spread(len(self.values), most)]
        shares = ((self.share({self.name: value}), short(written(value))) for value in chosen)
        return [(share, text) for share, text in shares if share is not None]

    def _ticks(self, most: int) -> list[tuple[float, str]]:
        unset = [(-1.0, UNSET)] if self.parameter.may_be_missing else []
        places = _spread(len(self.values), most - len(unset))
        return unset + [(float(place), short(written(self.values[place]))) for place in places]


def scales_of(space: Mapping[str, Any]) -> list[Scale]:
    """Return the scales of the parameters of a stored space (`Space.to_dict`)."""
    found = []
    for entry in space["parameters"]:
        parts = dict(entry)
        kind = _KINDS[parts.pop("type")]
        found.append(Scale.of(kind(**parts)))
    return found


def short(text: str, letters: int = _LETTERS) -> str:
    """Return a word that fits beside an axis."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def telling(
    scales: Sequence[Scale], configurations: Sequence[Configuration], logs: Sequence[float]
) -> dict[str, float]:
    """Return the share of the variance of values that each parameter explains alone, for those that vary.

    It is the adjusted R² of the groups of equal values (a one-way layout); of a parameter with a value for every few
    trials neighbouring values make a group.
    """
    found = {}
    for scale in scales:
        places = [
            (scale.place(configuration), value) for configuration, value in zip(configurations, logs, strict=True)
        ]
        there = [(place, value) for place, value in places if place is not None]
        if len({place for place, _ in there}) > 1:
            found[scale.name] = _adjusted(_grouped(there))
    return found


def _grouped(places: Sequence[tuple[float, float]]) -> list[list[float]]:
    """Return the values by their places, in at most a quarter as many groups as there are values."""
    ranks = {place: rank for rank, place in enumerate(sorted({place for place, _ in places}))}
    most = max(2, len(places) // 4)
    groups: dict[int, list[float]] = {}
    for place, value in places:
        rank = ranks[place]
        groups.setdefault(rank if len(ranks) <= most else rank * most // len(ranks), []).append(value)
    return list(groups.values())


def _adjusted(groups: Sequence[Sequence[float]]) -> float:
    values = [value for group in groups for value in group]
    middle = fmean(values)
    whole = sum((value - middle) ** 2 for value in values)
    free = len(values) - len(groups)
    if whole <= 0.0 or free <= 0:
        return 0.0
    within = sum((value - fmean(group)) ** 2 for group in groups for value in group) / free
    return max(0.0, 1.0 - within / (whole / (len(values) - 1)))


def _spread(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    return sorted({round(step * (count - 1) / (most - 1)) for step in range(most)})
