"""Shapes: the terms whose sum a run time is, as expressions over parameters and facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from objectives.shapes.costs import Costs
from spaces.expressions.names import names_of
from spaces.expressions.quantities import Columns, FloatArray, computed_columns

UNKNOWN_WORK = 5.0
"""The level of a shape that says how a time changes, not how long it is: a factor of 150 up or down."""


@dataclass(frozen=True)
class Term:
    """A part of a run time: `share` times the value of an expression, at a rate that is not known exactly.

    `doubt` is the standard deviation of the logarithm of that rate. `name` is what explanations call the term.
    """

    name: str
    expression: str
    share: float = 1.0
    doubt: float = 1.0


@dataclass(frozen=True)
class Shape:
    """The terms of a run time, or of its `inverse`, where work a second is measured.

    `level` is the standard deviation of the logarithm of all of it together.

    Terms may name what `derived` compute, and `counts`, which may name those before them: values that are 1 where a
    configuration leaves them unset.
    """

    terms: tuple[Term, ...]
    level: float = UNKNOWN_WORK
    derived: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)
    inverse: bool = False

    def costs(self, columns: Columns) -> Costs:
        """Return the cost of cases, by their `columns`, (n,) each; a term that is known nowhere counts as nothing."""
        nothing = np.zeros(len(next(iter(columns.values()), ())))
        known = self.term_values(columns)
        seconds = {term.name: known.get(term.name, nothing) for term in self.terms}
        return Costs(seconds, self.doubts, self.level, reads=self.reads, inverse=self.inverse)

    @property
    def reads(self) -> frozenset[str]:
        """The names that the terms mention, and those that these are computed from."""
        computed = {**self.derived, **self.counts}
        names = {name for term in self.terms for name in names_of(term.expression)}
        while more := {other for name in names & computed.keys() for other in names_of(computed[name])} - names:
            names |= more
        return frozenset(names)

    def term_values(self, columns: Columns) -> dict[str, FloatArray]:
        """Return the terms, (n,) each and not negative, at `columns`, (n,) each; NaN where one is not known.

        A term that is known nowhere is left out.
        """
        known: Columns = columns
        for name, text in self.counts.items():
            count = computed_columns({name: text}, self.derived, {**columns, **known})
            known = {**known, **{name: np.where(np.isnan(column), 1.0, column) for name, column in count.items()}}
        texts = {term.name: term.expression for term in self.terms}
        values = computed_columns(texts, self.derived, known)
        shares = {term.name: term.share for term in self.terms}
        return {name: shares[name] * np.maximum(column, 0.0) for name, column in values.items() if _is_known(column)}

    @property
    def doubts(self) -> dict[str, float]:
        """The doubts of the terms, by name."""
        return {term.name: term.doubt for term in self.terms}


def _is_known(column: npt.NDArray[np.float64]) -> bool:
    return not bool(np.isnan(column).all())
