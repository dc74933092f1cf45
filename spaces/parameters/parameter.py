"""Parameters and their values. Every domain is finite, so that duplicates are well defined."""

import keyword
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, TypeAlias

from spaces.parameters.errors import SpaceError

Value: TypeAlias = int | float | str | bool
"""A value of a parameter or of a fact."""

Configuration: TypeAlias = Mapping[str, Value]
"""The parameters that have a value. One that is unset ("leave it to the program") or inactive is missing."""

DEFAULT_POINTS = 33  # 32 steps: fine enough for tuning, coarse enough that two trials do not differ by noise only
_MAX_VALUES = 1_000_000  # a longer list of values is a mistake in `high` or `step`
_BY_LOGARITHM = 4.0  # listed positive values that span this factor are compared by their logarithms
_GRID_DIGITS = 12  # grid values are rounded so that they read well: 0.3, not 0.30000000000000004


@dataclass(frozen=True, kw_only=True)
class _Common:
    """The fields that every kind of parameter has."""

    default: Value | None = None
    optional: bool = False
    when: str | None = None
    help: str = ""

    @property
    def may_be_missing(self) -> bool:
        """Whether "no value" is possible: the parameter is optional or conditional."""
        return self.optional or self.when is not None


@dataclass(frozen=True)
class Integer(_Common):
    """A whole number out of `values` (strictly increasing).

    Args:
        default: The value in the default configuration; None for unset (or inactive) by default.
        optional: Whether unset ("leave it to the program") is an allowed value.
        when: An expression over earlier parameters and facts; the parameter exists only where it is true.
        help: One sentence for people.

    Raises:
        SpaceError: The name, the values or the default are invalid.
    """

    name: str
    values: tuple[int, ...]
    default: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        errors = _name_errors(self.name)
        if not all(type(value) is int for value in self.values):
            errors.append(f"{self.name}: values must be whole numbers, not {_first_not_int(self.values)!r}")
        elif not self.values:
            errors.append(f"{self.name}: has no values; give at least one")
        elif any(a >= b for a, b in zip(self.values, self.values[1:], strict=False)):
            errors.append(f"{self.name}: values must increase and not repeat: {_shorten(self.values)}")
        elif max(abs(value) for value in self.values) >= 2**62:
            errors.append(f"{self.name}: values must be smaller than 2**62 in magnitude")
        _refuse(errors + _default_errors(self))

    @classmethod
    def range(cls, name: str, low: int, high: int, step: int = 1, **common: Any) -> Self:  # noqa: ANN401  passed on
        """Return `low`, `low + step`, ... up to `high`, which is included if a step reaches it."""
        if step < 1 or high < low:
            raise SpaceError(f"{name}: needs low <= high and step >= 1, not low={low}, high={high}, step={step}")
        if (high - low) // step >= _MAX_VALUES:
            raise SpaceError(f"{name}: {(high - low) // step + 1} values are more than {_MAX_VALUES}; raise step")
        return cls(name, tuple(range(low, high + 1, step)), **common)

    @classmethod
    def powers_of_two(cls, name: str, low: int, high: int, **common: Any) -> Self:  # noqa: ANN401  passed on
        """Return the powers of two from `low` to `high`, both included if they are powers of two."""
        if not 1 <= low <= high < 2**62:
            raise SpaceError(f"{name}: needs 1 <= low <= high < 2**62, not low={low}, high={high}")
        powers = tuple(2**k for k in range(high.bit_length()) if low <= 2**k <= high)
        if not powers:
            raise SpaceError(f"{name}: there is no power of two from low={low} to high={high}")
        return cls(name, powers, **common)


@dataclass(frozen=True)
class Float(_Common):
    """A number on a grid of `points` values from `low` to `high`, evenly spaced (`log`: in the logarithm).

    The grid makes the space finite and repeated configurations recognisable. Grid values are rounded to 12 significant
    digits; the ends are exact. A value within a relative 1e-9 of a grid value counts as that value. A default between
    two grid values is a value, too. `listed` values (strictly increasing) replace the grid.

    Raises:
        SpaceError: The name, the bounds, the values or the default are invalid.
    """

    name: str
    low: float
    high: float
    log: bool = False
    points: int = DEFAULT_POINTS
    listed: tuple[float, ...] = ()
    default: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "listed", tuple(self.listed))
        errors = _name_errors(self.name) + (self._list_errors() if self.listed else self._grid_errors())
        _refuse(errors)
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        _refuse(_default_errors(self))

    @classmethod
    def of_values(cls, name: str, values: Sequence[float], **common: Any) -> Self:  # noqa: ANN401  passed on
        """Return the parameter with these values."""
        if not values:
            raise SpaceError(f"{name}: has no values; give at least one")
        first, last = values[0], values[-1]
        is_log = is_number(first) and first > 0 and is_number(last) and last >= _BY_LOGARITHM * first
        return cls(name, first, last, is_log, len(values), tuple(values), **common)

    def _grid_errors(self) -> list[str]:
        errors = []
        if not (is_number(self.low) and is_number(self.high)):
            errors.append(f"{self.name}: low and high must be finite numbers, not {self.low!r} and {self.high!r}")
        elif not self.low < self.high:
            errors.append(f"{self.name}: low must be below high, not low={float(self.low)}, high={float(self.high)}")
        elif self.log and self.low <= 0:
            errors.append(f"{self.name}: a logarithmic grid needs low > 0, not {float(self.low)}")
        if type(self.points) is not int or not 2 <= self.points <= _MAX_VALUES:
            errors.append(f"{self.name}: points must be a whole number from 2 to {_MAX_VALUES}, not {self.points!r}")
        return errors

    def _list_errors(self) -> list[str]:
        if not all(map(is_number, self.listed)):
            return [f"{self.name}: values must be finite numbers: {_shorten(self.listed)}"]
        if any(a >= b for a, b in pairwise(self.listed)):
            return [f"{self.name}: values must increase and not repeat: {_shorten(self.listed)}"]
        object.__setattr__(self, "listed", tuple(map(float, self.listed)))
        return []

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The listed values, or the grid and the default, increasing."""
        grid = self.listed or self._grid()
        if self.is_default_added:
            return tuple(sorted((*grid, float(self.default))))  # type: ignore[arg-type]  # a number then
        return grid

    @cached_property
    def is_default_added(self) -> bool:
        """Whether the default lies between two values of the grid."""
        if self.listed or not is_number(self.default) or not self.low < self.default < self.high:  # type: ignore[operator]
            return False
        return _grid_index(self, self._grid(), float(self.default)) is None  # type: ignore[arg-type]  # a number

    def _grid(self) -> tuple[float, ...]:
        last = self.points - 1
        nothing = _nothing(self)
        inner = [_round(self._at(k / last)) for k in range(1, last)]
        inner = [0.0 if abs(value) < nothing else value for value in inner]
        return tuple(dict.fromkeys([self.low, *inner, self.high]))

    def _at(self, share: float) -> float:
        if self.log:
            return math.exp((1 - share) * math.log(self.low) + share * math.log(self.high))
        return (1 - share) * self.low + share * self.high


@dataclass(frozen=True)
class Choice(_Common):
    """One of several words without an order.

    Raises:
        SpaceError: The name, the values or the default are invalid.
    """

    name: str
    values: tuple[str, ...]
    default: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        errors = _name_errors(self.name)
        if not self.values:
            errors.append(f"{self.name}: has no values; give at least one")
        elif not all(type(value) is str for value in self.values):
            errors.append(f"{self.name}: values of a choice must be strings: {_shorten(self.values)}")
        elif len(set(self.values)) < len(self.values):
            errors.append(f"{self.name}: values must not repeat: {_shorten(self.values)}")
        _refuse(errors + _default_errors(self))

    @cached_property
    def places(self) -> dict[object, int]:
        """The index of each value; a recorded table may have hundreds of thousands."""
        return {value: index for index, value in enumerate(self.values)}


@dataclass(frozen=True)
class Flag(_Common):
    """Off or on: False or True.

    Raises:
        SpaceError: The name or the default are invalid.
    """

    name: str
    default: bool | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _refuse(_name_errors(self.name) + _default_errors(self))

    @property
    def values(self) -> tuple[bool, ...]:
        """False and True."""
        return (False, True)

    @property
    def places(self) -> dict[object, int]:
        """The index of each value."""
        return {False: 0, True: 1}


Parameter: TypeAlias = Integer | Float | Choice | Flag
"""Any kind of parameter."""


def index_of(parameter: Parameter, value: object) -> int | None:
    """Return the index of `value` in the parameter's domain, or None if it is not in it (True is not 1)."""
    if not _is_of_kind(parameter, value):
        return None
    if isinstance(parameter, Float):
        return _grid_index(parameter, parameter.values, float(value))  # type: ignore[arg-type]  # a number: checked above
    if isinstance(parameter, Integer):
        place = bisect_left(parameter.values, value)  # type: ignore[call-overload]  # a whole number: checked above
        return place if parameter.values[place : place + 1] == (value,) else None
    return parameter.places.get(value)


def describe_domain(parameter: Parameter) -> str:
    """Return the domain in words, for messages."""
    if isinstance(parameter, Float) and not parameter.listed:
        scale = "logarithmic" if parameter.log else "even"
        added = f", and {parameter.default!r}" if parameter.is_default_added else ""
        return f"{parameter.points} {scale} steps from {parameter.low:g} to {parameter.high:g}{added}"
    return _shorten(parameter.values)


def _is_of_kind(parameter: Parameter, value: object) -> bool:
    if isinstance(parameter, Flag):
        return isinstance(value, bool)
    if isinstance(parameter, Choice):
        return isinstance(value, str)
    if isinstance(parameter, Integer):
        return isinstance(value, int) and not isinstance(value, bool)
    return is_number(value)


def _grid_index(parameter: Float, values: tuple[float, ...], value: float) -> int | None:
    above = bisect_left(values, value)
    nearest = min(range(max(0, above - 1), min(above + 1, len(values))), key=lambda k: abs(values[k] - value))
    return nearest if math.isclose(values[nearest], value, rel_tol=1e-9, abs_tol=_nothing(parameter)) else None


def _nothing(parameter: Float) -> float:
    """Return the magnitude below which a value of a grid across zero counts as 0, because only rounding is left."""
    return 1e-12 * max(abs(parameter.low), abs(parameter.high)) if parameter.low < 0.0 < parameter.high else 0.0


def is_number(value: object) -> bool:
    """Return whether `value` is a number that a float can hold: not NaN, not infinite, not True."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**1000


def _round(value: float) -> float:
    return float(f"{value:.{_GRID_DIGITS}g}")


def _name_errors(name: object) -> list[str]:
    if isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name):
        return []
    return [f"{name!r} is not a name: use letters, digits and _, not beginning with a digit, and no Python keyword"]


def _default_errors(parameter: Parameter) -> list[str]:
    if parameter.default is None or index_of(parameter, parameter.default) is not None:
        return []
    wrong = f"{parameter.name}: default {parameter.default!r} is not one of its values: {describe_domain(parameter)}"
    if isinstance(parameter, Float) and not parameter.listed and is_number(parameter.default):
        end = "low" if parameter.default < parameter.low else "high"
        wrong += f"; it lies outside: write {end} = {parameter.default!r}, or another default"
    return [wrong]


def _first_not_int(values: tuple[object, ...]) -> object:
    return next(value for value in values if type(value) is not int)


def _refuse(errors: list[str]) -> None:
    if errors:
        raise SpaceError(errors)


def _shorten(values: tuple[object, ...]) -> str:
    shown = [repr(value) for value in values]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:8], "...", *shown[-2:]])
