"""Starts of their own: a value of a parameter that changes the start of a run, and not its pace, misleads short runs.

Of two trials with such a value short runs differ by their pace alone, and whole ones by as many times that as they are
longer. So a pair of short and whole runs tells of each other trial with that value how long its whole run would be, if
that value were what starts differ by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot

from spaces import Configuration, Space

Values = frozenset[tuple[int, int]]
"""Places of parameters, and of their values or parts of their ranges."""

# What is foretold from one pair may be off by so many standard errors.
_UNSURE = 2.0
# Of a parameter with more values than that, parts of its range take the place of values.
_VALUES = 6
_PARTS = 4


def values_of(space: Space, configurations: Mapping[int, Configuration]) -> dict[int, Values]:
    """Return the values of trials by number."""
    if not configurations:
        return {}
    rows = space.indices(list(configurations.values()))
    sizes = [len(parameter.values) for parameter in space.parameters]
    return {
        number: frozenset(
            (place, int(index) if size <= _VALUES else int(index) * _PARTS // size)
            for place, (index, size) in enumerate(zip(row, sizes, strict=True))
        )
        for number, row in zip(configurations, rows, strict=True)
    }


@dataclass(frozen=True)
class OwnStarts:
    """What pairs tell of values: the `values` of trials by number, and what their `short` and `whole` runs cost.

    A whole run is `longer` than a short one by that factor; the cost of a rate is that of a step, so there it is 1. A
    run's cost is off by a share of it, `noise`.
    """

    values: Mapping[int, Values]
    short: Mapping[int, float]
    whole: Mapping[int, float]
    longer: float
    noise: float

    def may_reach(self, number: int, cost: float) -> bool:
        """Whether the whole run of a trial may cost less than that, if one of its values has a start of its own."""
        for value in self.values[number]:
            near = min(
                (pair for pair in self.whole if value in self.values[pair]),
                key=lambda pair: abs(self.short[pair] - self.short[number]),
                default=None,
            )
            if near is None:
                continue
            foretold = self.whole[near] - self.longer * (self.short[near] - self.short[number])
            if foretold - _UNSURE * self._error(self.whole[near], near, number) < cost:
                return True
        return False

    def _error(self, whole: float, one: int, other: int) -> float:
        return self.noise * hypot(whole, self.longer * self.short[one], self.longer * self.short[other])
