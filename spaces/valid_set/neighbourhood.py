"""Neighbours of a configuration: one parameter changed, and as few others as the rules then require."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spaces.expressions.node import Array
from spaces.valid_set.domain import NO_VALUE, Domain
from spaces.valid_set.rule import Rule
from spaces.valid_set.valid_set import Indices, ValidSet


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Finds the neighbours of valid rows of value indexes."""

    domains: tuple[Domain, ...]
    rules: tuple[Rule, ...]
    valid: ValidSet

    def of(self, row: Indices) -> Indices:
        """Return the neighbours (n, p) of the valid `row` (p,), without repeats, nearest kinds of change first.

        A neighbour has one parameter changed: an ordered one by a step up or down to the next valid value, however far;
        a choice to any other value; an unset one to any value, and back. If the change to an adjacent value is invalid,
        the other parameters are repaired at the least cost: by changing one other parameter, the least in encoded
        distance, or else by taking the nearest valid configuration.
        """
        plain: list[Indices] = []
        repaired: list[Indices] = []
        for domain in self.domains:
            valid = self._valid_changes(row, domain)
            here = int(row[domain.position])
            plain += [_change(row, domain.position, index) for index in _one_step_away(domain, here, valid)]
            for target in _adjacent(domain, here):
                if target not in valid:
                    repaired += self._repair(_change(row, domain.position, target), domain)
        rows = [*plain, *repaired]
        if not rows:
            return np.empty((0, len(row)), dtype=np.int32)
        return np.array(list({other.tobytes(): other for other in rows}.values()))

    def _valid_changes(self, row: Indices, domain: Domain) -> set[int]:
        others = domain.indexes[domain.indexes != row[domain.position]]
        return set(others[self._which_are_allowed(row, domain.position, others)].tolist())

    def _which_are_allowed(self, row: Indices, position: int, indexes: Array) -> Array:
        allowed = np.ones(len(indexes), dtype=bool)
        for rule in self._about(position):
            columns = {p: indexes if p == position else row[p : p + 1] for p in rule.positions}
            allowed &= rule.mask(columns)
        return allowed

    def _about(self, position: int) -> list[Rule]:
        return [rule for rule in self.rules if position in rule.positions]

    def _repair(self, row: Indices, domain: Domain) -> Iterator[Indices]:
        """Yield the cheapest valid row that keeps the parameter of `domain` as in `row`, if one exists."""
        broken = [rule for rule in self._about(domain.position) if not self._holds(rule, row)]
        candidates = [repair for other in self._suspects(broken, domain) for repair in self._by_one(row, other)]
        if candidates:
            yield min(candidates, key=lambda repair: repair[0])[1]
            return
        price = {d.position: np.sum((d.features - d.features[row[d.position]]) ** 2, axis=1) for d in self.domains}
        elsewhere = np.full(len(domain.features), np.inf)
        elsewhere[row[domain.position]] = 0.0
        found = self.valid.cheapest({**price, domain.position: elsewhere})
        if found[domain.position] == row[domain.position]:
            yield found

    def _suspects(self, broken: Sequence[Rule], changed: Domain) -> list[Domain]:
        """Return the parameters that could each repair all of the `broken` rules alone."""
        shared = set.intersection(*(set(rule.positions) for rule in broken)) if broken else set()
        return [self.domains[position] for position in sorted(shared - {changed.position})]

    def _by_one(self, row: Indices, other: Domain) -> Iterator[tuple[float, Indices]]:
        allowed = other.indexes[self._which_are_allowed(row, other.position, other.indexes)]
        if len(allowed):
            distance = np.sum((other.features[allowed] - other.features[row[other.position]]) ** 2, axis=1)
            nearest = int(np.argmin(distance))
            yield float(distance[nearest]), _change(row, other.position, int(allowed[nearest]))

    def _holds(self, rule: Rule, row: Indices) -> bool:
        return bool(np.all(rule.mask({p: row[p : p + 1] for p in rule.positions})))


def _change(row: Indices, position: int, index: int) -> Indices:
    changed = row.copy()
    changed[position] = index
    return changed


def _one_step_away(domain: Domain, here: int, valid: set[int]) -> list[int]:
    """Return those indexes of `valid` that are one step from `here`."""
    if not domain.ordered or here == NO_VALUE:
        return sorted(valid)
    up = sorted(index for index in valid if index > here)
    down = sorted(index for index in valid if NO_VALUE < index < here)
    return up[:1] + down[-1:] + [NO_VALUE] * (NO_VALUE in valid)


def _adjacent(domain: Domain, here: int) -> list[int]:
    """Return the indexes that a neighbour should have, even if other parameters must be repaired for it."""
    if not domain.ordered:
        return [index for index in domain.indexes.tolist() if index != here]
    if here == NO_VALUE:
        start = domain.parameter.default
        return [domain.values.index(start) if start in domain.values else 0]
    steps = [index for index in (here + 1, here - 1) if 0 <= index < len(domain.values)]
    return steps + [NO_VALUE] * domain.may_be_missing
