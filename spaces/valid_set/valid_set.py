"""The valid set of a whole space: the product of the valid sets of its independent groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spaces.expressions.node import Array
from spaces.valid_set.diagram import FITS_INT64, Diagram, EmptyError, Ids, TooWideError, build, free
from spaces.valid_set.domain import Domain, FloatArray
from spaces.valid_set.order import Group, good_order, independent_groups
from spaces.valid_set.particles import Particles, estimate_particles
from spaces.valid_set.rule import Rule

Indices = npt.NDArray[np.int32]

LISTABLE_ROWS = 20_000_000
LISTABLE_CELLS = 250_000_000  # one gigabyte of value indexes
_TABLE_ROWS = 4096  # with _DECODED_AT_ONCE, keeps decoding within the processor's caches
_DECODED_AT_ONCE = 16_384
_STALLED = 20  # rounds of sampling without anything new: the set is taken to be exhausted


@dataclass(frozen=True, eq=False)
class ValidSet:
    """All valid configurations, as rows of value indexes in the declared order, listed only on request."""

    domains: tuple[Domain, ...]
    parts: tuple[Diagram | Particles, ...]

    @cached_property
    def size(self) -> int:
        """The number of valid configurations, or its estimate."""
        return math.prod(part.size for part in self.parts)

    @cached_property
    def relative_error(self) -> float:
        """The standard error of `size`, relative to it; 0 if it is exact."""
        spreads = [part.relative_error for part in self.parts if isinstance(part, Particles)]
        return math.sqrt(sum(spread**2 for spread in spreads))

    @cached_property
    def exact(self) -> bool:
        """Whether `size` is exact and samples are uniform."""
        return all(isinstance(part, Diagram) for part in self.parts)

    @property
    def listable(self) -> bool:
        """Whether all rows fit in memory."""
        cells = self.size * max(1, len(self.domains))
        return self.exact and self.size <= LISTABLE_ROWS and cells <= LISTABLE_CELLS

    def rows(self) -> Indices:
        """Return all rows, in lexicographic order, "no value" before the values."""
        radices = [domain.radix for domain in self.domains]
        if math.prod(radices) < FITS_INT64:
            return self._rows_of(self._codes_in_order(radices))
        ranks = np.arange(self.size)
        rows = self._matrix(self._unrank(ranks), len(ranks))
        return rows[np.lexsort(rows.T[::-1])]

    def _codes_in_order(self, radices: Sequence[int]) -> Ids:
        """Return every row as one number: its digits are the places of the values, the last parameter's the lowest."""
        strides = [math.prod(radices[position + 1 :]) for position in range(len(radices))]
        digits = {
            domain.position: np.append(np.arange(len(domain.values)) + domain.may_be_missing, 0) * stride
            for domain, stride in zip(self.domains, strides, strict=True)
        }
        codes: Ids = np.zeros(1, dtype=np.int64)
        for part in self.parts:
            assert isinstance(part, Diagram)
            codes = (codes[:, None] + part.ranks_of_all(digits)[None, :]).ravel()
        codes.sort()
        return codes

    def _rows_of(self, codes: Ids) -> Indices:
        rows = np.empty((len(codes), len(self.domains)), dtype=np.int32)
        tables = _tables_of_digits(self.domains)
        for first in range(0, len(codes), _DECODED_AT_ONCE):
            rest = codes[first : first + _DECODED_AT_ONCE]
            chunk = rows[first : first + _DECODED_AT_ONCE]
            for start, table in tables:
                following = rest // len(table)  # numpy divides by a number much faster than divmod does
                chunk[:, start : start + table.shape[1]] = table[rest - following * len(table)]
                rest = following
        return rows

    def sample(self, rng: np.random.Generator, n: int) -> Indices:
        """Return `n` distinct rows in random order, all of them if there are fewer."""
        if self.exact and self.size < FITS_INT64:
            ranks = rng.permutation(self.size) if n >= self.size else rng.choice(self.size, n, replace=False)
            return self._matrix(self._unrank(ranks), len(ranks))
        return self._distinct_draws(rng, n)

    def _distinct_draws(self, rng: np.random.Generator, n: int) -> Indices:
        rows = np.empty((0, len(self.domains)), dtype=np.int32)
        stalled = 0
        while len(rows) < n and stalled < _STALLED:
            columns: dict[int, Array] = {}
            for part in self.parts:
                columns.update(part.draw(rng, n))
            both = np.concatenate([rows, self._matrix(columns, n)])
            first = np.sort(np.unique(both, axis=0, return_index=True)[1])
            stalled = stalled + 1 if len(first) == len(rows) else 0
            rows = both[first]
        return rows[:n]

    def _unrank(self, ranks: Ids) -> dict[int, Array]:
        columns: dict[int, Array] = {}
        for part in self.parts:
            assert isinstance(part, Diagram)
            ranks, rank = np.divmod(ranks, part.size)
            columns.update(part.unrank(rank))
        return columns

    def _matrix(self, columns: Mapping[int, Array], n: int) -> Indices:
        rows = np.empty((n, len(self.domains)), dtype=np.int32)
        for position, column in columns.items():
            rows[:, position] = column
        return rows

    def cheapest(self, costs: Mapping[int, FloatArray]) -> Indices:
        """Return the row (p,) with the least sum of `costs[position][index]`."""
        row = np.empty(len(self.domains), dtype=np.int32)
        for part in self.parts:
            for position, index in part.cheapest(costs).items():
                row[position] = index
        return row


def _tables_of_digits(domains: Sequence[Domain]) -> list[tuple[int, Indices]]:
    """Return tables of the combinations of consecutive parameters, the last ones first, with the first's position.

    One look-up then decodes several parameters.
    """
    tables: list[tuple[int, Indices]] = []
    end = len(domains)
    while end:
        start = end - 1
        while start and math.prod(domain.radix for domain in domains[start - 1 : end]) <= _TABLE_ROWS:
            start -= 1
        grids = np.meshgrid(*(domain.indexes for domain in domains[start:end]), indexing="ij")
        tables.append((start, np.stack([grid.ravel() for grid in grids], axis=1)))
        end = start
    return tables


def valid_set(domains: Sequence[Domain], rules: Sequence[Rule]) -> ValidSet:
    """Build the valid set.

    Raises:
        EmptyError: nothing is valid.
    """
    return ValidSet(tuple(domains), tuple(_part(group) for group in independent_groups(domains, rules)))


def _part(group: Group) -> Diagram | Particles:
    if len(group.domains) == 1 and not group.rules:
        return free(group.domains[0])
    order = good_order(group)
    try:
        return build(order, group.rules)
    except TooWideError:
        return estimate_particles(order, group.rules)


__all__ = ["EmptyError", "Indices", "ValidSet", "valid_set"]
