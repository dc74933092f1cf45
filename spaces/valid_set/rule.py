"""Rules prepared for computing: constraints, and the conditions under which parameters exist."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from spaces.expressions.evaluate import Columns, allows, holds
from spaces.expressions.node import Array, Node
from spaces.parameters.constraint import Constraint


class Rule(Protocol):
    """Something that every valid configuration satisfies."""

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the parameters that the rule is about."""

    def mask(self, columns: Columns) -> Array:
        """Return where the rule is satisfied; `columns` are those of `positions`, with shapes that broadcast."""


@dataclass(frozen=True, eq=False)
class ConstraintRule:
    """A constraint. It forbids where it is false, not where a parameter without a value leaves it unknown."""

    constraint: Constraint
    node: Node

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the parameters that the constraint mentions."""
        return tuple(sorted(self.node.positions))

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of the facts that the constraint mentions."""
        return tuple(sorted(_names(self.node, "fact")))

    @property
    def derived(self) -> tuple[str, ...]:
        """The names of the derived values that the constraint mentions, also in others."""
        return tuple(sorted(_names(self.node, "derived")))

    def mask(self, columns: Columns) -> Array:
        """Return where the constraint is true or unknown."""
        return allows(self.node, columns)


@dataclass(frozen=True, eq=False)
class ListedRule(ConstraintRule):
    """A constraint by a list: `places` are the positions of its k parameters, `rows` (n, k) their value indexes.

    `radices` are the numbers of states of the parameters, including "no value".
    """

    places: tuple[int, ...]
    radices: tuple[int, ...]
    rows: Array

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the parameters that the list is about."""
        return tuple(sorted(self.places))

    def mask(self, columns: Columns) -> Array:
        """Return the mask of listed combinations, by walking down the list's tree one parameter at a time."""
        node: Array = np.zeros((), dtype=np.int64)
        found: Array = np.ones((), dtype=bool)
        for position, (radix, keys) in zip(self.places, self._tree, strict=True):
            key = node * radix + (columns[position] + 1)
            node = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            found = found & (keys[node] == key)
        return found

    def project(self, positions: Collection[int]) -> "ListedRule":
        """Return the list projected on some of its parameters."""
        kept = [k for k, place in enumerate(self.places) if place in positions]
        rows = np.unique(self.rows[:, kept], axis=0)
        places, radices = tuple(self.places[k] for k in kept), tuple(self.radices[k] for k in kept)
        return ListedRule(self.constraint, self.node, places, radices, rows)

    @cached_property
    def _tree(self) -> Sequence[tuple[int, Array]]:
        """For each parameter the sorted keys of the prefixes that end with it: node * radix + value index + 1."""
        node: Array = np.zeros(len(self.rows), dtype=np.int64)
        tree = []
        for radix, column in zip(self.radices, self.rows.T.astype(np.int64), strict=True):
            keys, node = np.unique(node * radix + column + 1, return_inverse=True)
            tree.append((radix, keys))
        return tree


@dataclass(frozen=True, eq=False)
class ExistenceRule:
    """A parameter has a value where its condition holds (or, if `optional`, may be unset), and none elsewhere.

    The parameter is at `subject`. A condition that is unknown because a parameter has no value, or that cannot be
    computed, does not hold.
    """

    subject: int
    optional: bool
    node: Node

    @property
    def positions(self) -> tuple[int, ...]:
        """The conditional parameter's position and those of its condition."""
        return tuple(sorted({self.subject, *self.node.positions}))

    def active(self, columns: Columns) -> Array:
        """Return where the condition holds."""
        return holds(self.node, columns)

    def mask(self, columns: Columns) -> Array:
        """Return where the parameter has a value exactly if it exists."""
        exists = self.active(columns)
        absent = columns[self.subject] < 0
        return exists | absent if self.optional else exists ^ absent


def _names(node: Node, op: str) -> set[str]:
    return {part.name for part in node.parts() if part.op == op}
