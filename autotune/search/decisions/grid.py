"""The grid of a decision table: its cells, the settings that compete in them, and their traits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from autotune.search.base import Rows, fresh, keys
from autotune.statistics.gaussian_process import Array
from spaces import Choice, Configuration, Parameter, Space, Value

MOST_CONTEXTS = 2_000
"""The most contexts of a table; more are too many for a reader, and for a model of a few hundred runs."""

# With more configurations than this, the settings are a sample.
_LISTED = 20_000
# The number of rows (settings in contexts) that are predicted at a time.
_PREDICTED = 2_500
_BY_LOGARITHM = 4.0


@dataclass(frozen=True)
class Grid:
    """The valid set by context.

    Attributes:
        space: The space.
        over: The names of the parameters that the user's program decides, the contexts.
    """

    space: Space
    over: tuple[str, ...]

    @cached_property
    def columns(self) -> list[int]:
        """The positions of the contexts among the parameters."""
        names = [parameter.name for parameter in self.space.parameters]
        return [names.index(name) for name in self.over]

    @cached_property
    def others(self) -> list[int]:
        """The positions of the parameters that the table chooses."""
        return [place for place in range(len(self.space.parameters)) if place not in self.columns]

    @cached_property
    def contexts(self) -> list[dict[str, Value]]:
        """Every context that has a valid default, in the order of the values."""
        return [dict(zip(self.over, values, strict=True)) for values, _ in self._with_defaults]

    @cached_property
    def defaults(self) -> Rows:
        """The default configuration of each context, (c, p)."""
        return self.space.indices([default for _, default in self._with_defaults])

    @cached_property
    def _with_defaults(self) -> list[tuple[tuple[Value, ...], Configuration]]:
        own: list[tuple[Value, ...]] = [tuple(self.space.parameters[place].values) for place in self.columns]
        found = ((values, self._default_at(values)) for values in product(*own))
        return [(values, default) for values, default in found if default is not None]

    def _default_at(self, values: Sequence[Value]) -> Configuration | None:
        """Return the default in a context; None if no valid configuration is near it."""
        given = dict(zip(self.over, values, strict=True))
        own = {one.name: one.default for one in self.space.parameters if one.default is not None}
        wanted = {**self.space.default(), **given}
        if not self.space.contains(wanted):
            wanted = dict(self.space.nearest({**own, **given}))
        return wanted if all(wanted.get(name) == value for name, value in given.items()) else None

    @cached_property
    def _context_places(self) -> dict[bytes, int]:
        return {key: place for place, key in enumerate(keys(self.defaults[:, self.columns]))}

    def context_of(self, rows: Rows) -> NDArray[np.intp]:
        """Return the context of each of `rows`, (n,); -1 for a context that is not in the table."""
        found = (self._context_places.get(key, -1) for key in keys(rows[:, self.columns]))
        return np.fromiter(found, dtype=np.intp, count=len(rows))

    def settings(self, rng: np.random.Generator, tried: Rows) -> Rows:
        """Return rows with the competing settings, each in some context: all settings, or the tried ones and a sample.

        Tried settings, in their order, alternate with random ones. So the first few contain known and new settings,
        however many have been tried, and no setting is left out for ever.
        """
        if self.space.listable and self.space.size.value <= _LISTED:
            more = rng.permutation(self.space.all_indices())
        else:
            more = self.space.sample_indices(rng, _PREDICTED)
        known, more = self.distinct(tried), self.distinct(more)
        turns = np.concatenate([np.arange(len(known)), np.arange(len(more))])
        return self.distinct(np.concatenate([known, more])[np.argsort(turns, kind="stable")])

    def distinct(self, rows: Rows) -> Rows:
        """Return the first row of each setting."""
        first: dict[bytes, int] = {}
        for place, key in enumerate(keys(rows[:, self.others])):
            first.setdefault(key, place)
        kept: Rows = rows[list(first.values())]
        return kept

    def across(self, settings: Rows, most: int = _PREDICTED, used: NDArray[np.bool_] | None = None) -> Rows:
        """Return the settings in every context where they are valid, (m, p).

        Args:
            settings: Rows with the settings.
            most: About the most rows; of more settings only the first ones are used.
            used: The contexts to use, (c,); by default all.
        """
        defaults = self.defaults if used is None else self.defaults[used]
        parts: list[Rows] = [defaults]
        count = len(defaults)
        for start in range(0, len(settings), 8):
            if count >= most:
                break
            rows = np.repeat(settings[start : start + 8], len(defaults), axis=0)
            rows[:, self.columns] = np.tile(defaults[:, self.columns], (len(rows) // len(defaults), 1))
            parts.append(rows[self.space.valid_indices(rows)])
            count += len(parts[-1])
        joined = np.concatenate(parts)
        return fresh(joined, joined[:0])

    def setting_keys(self, rows: Rows) -> list[bytes]:
        """Return the key of each row's setting, which does not depend on the context."""
        return keys(rows[:, self.others])

    def context_traits(self, rows: Rows) -> Array:
        """Return the traits of the contexts of rows, numbers from 0 to 1, (n, d)."""
        traits = [_traits(self.space.parameters[place])[rows[:, place]] for place in self.columns]
        joined: Array = np.concatenate(traits, axis=1)
        return joined

    def configurations(self, rows: Rows) -> list[Configuration]:
        """Return the settings of rows as values, without their contexts."""
        return [setting_of(one, self.over) for one in self.space.decode(rows)]


def setting_of(configuration: Configuration, over: Iterable[str]) -> dict[str, Value]:
    """Return a configuration without its contexts."""
    given = set(over)
    return {name: value for name, value in configuration.items() if name not in given}


def point_traits(points: Sequence[float] | Array) -> Array:
    """Return points as logarithms, (n,); others than positive ones lie one doubling below the least of these."""
    values = np.asarray(points, dtype=float)
    positive = values[values > 0.0]
    least = float(positive.min()) / 2.0 if len(positive) else 1.0
    logarithms: Array = np.log2(np.maximum(values, least))
    return logarithms


def number(value: Value) -> float | None:
    """Return a numeric value as a float; None for other values."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _traits(parameter: Parameter) -> Array:
    """Return the traits of each value, (v, d): the logarithm of a number, a column for each word."""
    values = parameter.values
    if isinstance(parameter, Choice) or any(number(value) is None for value in values):
        return np.eye(len(values))
    numbers = np.array([float(value) for value in values])
    if numbers.min() > 0.0 and numbers.max() / numbers.min() >= _BY_LOGARITHM:
        numbers = np.log(numbers)
    span = float(numbers.max() - numbers.min()) or 1.0
    traits: Array = ((numbers - numbers.min()) / span)[:, None]
    return traits
