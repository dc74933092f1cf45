"""Traits: configurations as numbers that tuning parameters usually act by, for models that learn from few runs.

An ordered parameter is a logarithmic column if its values span a factor of four (a doubling is a step), otherwise a
linear one. Whole numbers have a second column, how often two divides them, if that adds to their order: warps, cache
lines and ranks of a node come in powers of two. A choice is a column for each value, or one column for two values.
Every quantity that the constraints compute with (ranks per pool, threads of a block, bytes of a tile) is a column, too,
since a program's authors think in them. All columns run from 0 to 1.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from spaces.expressions.evaluate import values_of
from spaces.expressions.node import Node
from spaces.expressions.quantities import computing_parts
from spaces.parameters.parameter import Choice, Integer
from spaces.valid_set.domain import MIDDLE, Domain, FloatArray
from spaces.valid_set.rule import ConstraintRule, Rule
from spaces.valid_set.valid_set import Indices

_BY_LOGARITHM = 4.0
# A quantity is computed for every candidate; more than this number of them are redundant.
_MOST_QUANTITIES = 16
_ALIKE = 0.9999

_Raw = Callable[[Indices], FloatArray]


@dataclass(frozen=True, eq=False)
class _Column:
    """The computation of a column, (n,) with NaN for no value, and the range that maps to 0 to 1."""

    raw: _Raw
    low: float
    high: float
    logarithm: bool

    @classmethod
    def fit(cls, raw: _Raw, sample: Indices) -> Self | None:
        """Return the column scaled on a `sample` (n, p) of valid rows; None if it is constant."""
        values = raw(sample)
        values = values[np.isfinite(values)]
        if len(values) == 0 or values.min() == values.max():
            return None
        low, high = float(values.min()), float(values.max())
        return cls(raw, low, high, low > 0.0 and high / low >= _BY_LOGARITHM)

    def of(self, rows: Indices) -> FloatArray:
        """Return the column, (n,), of value indexes (n, p)."""
        values = self.raw(rows)
        low, high = self.low, self.high
        if self.logarithm:
            values, low, high = np.log(np.maximum(values, low / 4.0)), np.log(low), np.log(high)
        # The range comes from a sample; limit how far values beyond it may lie.
        scaled = np.clip((values - low) / (high - low), -0.5, 1.5)
        return np.where(np.isfinite(scaled), scaled, MIDDLE)


class Traits:
    """Computes the traits of value indexes; `sample`, (n, p), are valid rows to learn the ranges from."""

    def __init__(self, domains: Sequence[Domain], rules: Sequence[Rule], sample: Indices) -> None:
        raws = [raw for domain in domains for raw in _raws(domain)]
        raws += list(_quantities(rules))
        self._columns: list[_Column] = []
        kept = np.empty((len(raws), len(sample)))
        for raw in raws:
            column = _Column.fit(raw, sample)
            if column is None:
                continue
            values = column.of(sample)
            values = values - values.mean()
            values /= np.linalg.norm(values) or 1.0
            count = len(self._columns)
            if count == 0 or np.abs(kept[:count] @ values).max() <= _ALIKE:
                kept[count] = values
                self._columns.append(column)

    def of(self, rows: Indices) -> FloatArray:
        """Return the traits (n, d) of value indexes (n, p); d is at least 1."""
        if not self._columns:
            return np.zeros((len(rows), 1))
        return np.column_stack([column.of(rows) for column in self._columns])


def _raws(domain: Domain) -> Iterator[_Raw]:
    values = domain.values
    if isinstance(domain.parameter, Choice):
        # For two values that always exist, one column suffices.
        columns = len(values) if domain.may_be_missing or len(values) > 2 else 1
        yield from (_pick(domain, np.append(np.arange(len(values)) == place, False)) for place in range(columns))
    else:
        yield _pick(domain, np.append(np.array(values, dtype=float), np.nan))
    if isinstance(domain.parameter, Integer) and len(values) > 2:
        twos = np.array([_twos(int(value)) for value in values], dtype=float)
        if not (np.diff(twos) > 0).all():
            yield _pick(domain, np.append(twos, np.nan))
    if domain.may_be_missing:
        yield _pick(domain, np.append(np.zeros(len(values)), 1.0))


def _pick(domain: Domain, table: FloatArray) -> _Raw:
    column = table.astype(float)
    return lambda rows: column[rows[:, domain.position]]


def _twos(value: int) -> int:
    """Return how often two divides a whole number; 0 for 0."""
    return (value & -value).bit_length() - 1 if value else 0


def _quantities(rules: Sequence[Rule]) -> Iterator[_Raw]:
    """Yield the numbers that the constraints compute from parameters, parts before larger expressions."""
    found: dict[int, _Raw] = {}
    numbers: dict[tuple[object, ...], int] = {}
    for rule in rules:
        if isinstance(rule, ConstraintRule):
            alike = _number_parts(rule.node, numbers)
            for node in computing_parts(rule.node):
                found.setdefault(alike[node], _evaluate(node))
    yield from list(found.values())[:_MOST_QUANTITIES]


def _number_parts(root: Node, numbers: dict[tuple[object, ...], int]) -> dict[Node, int]:
    """Return a number for each part of an expression, equal for parts that compute the same."""
    alike: dict[Node, int] = {}
    for node in root.parts():
        form = (node.op, node.position, node.name, repr(node.value), *(alike[operand] for operand in node.operands))
        alike[node] = numbers.setdefault(form, len(numbers))
    return alike


def _evaluate(node: Node) -> _Raw:
    return lambda rows: values_of(node, {position: rows[:, position] for position in node.positions}, len(rows))
