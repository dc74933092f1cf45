"""Rules made ready for computing: constraints, and the conditions under which parameters exist."""

from dataclasses import dataclass
from typing import Protocol

from spaces.constraint import Constraint
from spaces.evaluate import Columns, holds
from spaces.node import Array, Node


class Rule(Protocol):
    """Something that every valid configuration satisfies."""

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the parameters that the rule is about."""

    def mask(self, columns: Columns) -> Array:
        """Return where the rule is satisfied; `columns` are those of `positions`, with shapes that broadcast."""


@dataclass(frozen=True, eq=False)
class ConstraintRule:
    """A constraint. `missable` are the needed positions that may be without a value: there it does not apply."""

    constraint: Constraint
    node: Node
    missable: tuple[int, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the parameters that the constraint mentions."""
        return tuple(sorted(self.node.positions))

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of the facts that the constraint mentions."""
        return tuple(sorted(_facts(self.node)))

    def mask(self, columns: Columns) -> Array:
        """Return where the constraint is satisfied or does not apply."""
        satisfied = holds(self.node, columns)
        for position in self.missable:
            satisfied = satisfied | (columns[position] < 0)
        return satisfied


@dataclass(frozen=True, eq=False)
class ExistenceRule:
    """The parameter at `subject` has a value where its condition holds (or is unset, if `optional`), none elsewhere.

    A condition that mentions a parameter without a value, or cannot be computed, does not hold.
    """

    subject: int
    optional: bool
    node: Node
    missable: tuple[int, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The conditional parameter's position and those of its condition."""
        return tuple(sorted({self.subject, *self.node.positions}))

    def active(self, columns: Columns) -> Array:
        """Return where the condition holds."""
        exists = holds(self.node, columns)
        for position in self.missable:
            exists = exists & (columns[position] >= 0)
        return exists

    def mask(self, columns: Columns) -> Array:
        """Return where the parameter has a value exactly if it exists."""
        exists = self.active(columns)
        absent = columns[self.subject] < 0
        return exists | absent if self.optional else exists ^ absent


def _facts(node: Node) -> set[str]:
    own = {node.name} if node.op == "fact" else set()
    return own.union(*(_facts(operand) for operand in node.operands))
