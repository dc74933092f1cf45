"""Shapes: the terms whose sum a run time is, as expressions over parameters and facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from objectives.shapes.costs import Costs
from spaces.expressions.names import names_of
from spaces.expressions.quantities import Columns, FloatArray, compute_columns

HARDWARE = frozenset(
    {
        *("cpu_flops", "memory_bandwidth_bytes_per_s", "network_bandwidth_bytes_per_s", "network_latency_s"),
        *("gpu_memory_bytes", "gpu_bandwidth_bytes_per_s", "gpu_flops_fp16", "gpu_flops_fp32", "gpu_flops_fp64"),
    }
)
"""Facts of a machine's description that only terms may name, since runs need none of them."""

UNKNOWN_WORK = 5.0
"""The level of a shape that predicts how a time changes, not how long it is: a factor of 150 up or down."""


@dataclass(frozen=True)
class Term:
    """A part of a run time: `share` times the value of an expression, at a rate that is not known exactly.

    Args:
        name: Its name in explanations.
        expression: The expression.
        share: The factor.
        doubt: The standard deviation of the logarithm of its rate.
    """

    name: str
    expression: str
    share: float = 1.0
    doubt: float = 1.0


@dataclass(frozen=True)
class Shape:
    """The terms of a run time.

    Args:
        terms: The terms; they may use the names of `derived` and `counts`.
        level: The standard deviation of the logarithm of the whole sum.
        derived: Expressions by name.
        counts: Expressions by name that are 1 where a configuration leaves them unset; they may use those before them.
        inverse: The sum is the seconds per unit of work, and work per second is measured.
    """

    terms: tuple[Term, ...]
    level: float = UNKNOWN_WORK
    derived: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)
    inverse: bool = False

    def costs(self, columns: Columns) -> Costs:
        """Return the costs of cases, by their `columns`, (n,) each; a term that no case has counts as 0."""
        nothing = np.zeros(len(next(iter(columns.values()), ())))
        known = self.term_values(columns)
        seconds = {term.name: known.get(term.name, nothing) for term in self.terms}
        return Costs(seconds, self.doubts, self.level, reads=self.reads, inverse=self.inverse)

    @property
    def reads(self) -> frozenset[str]:
        """The names that the terms use, and those that these are computed from."""
        computed = {**self.derived, **self.counts}
        names = {name for term in self.terms for name in names_of(term.expression)}
        while more := {other for name in names & computed.keys() for other in names_of(computed[name])} - names:
            names |= more
        return frozenset(names)

    def term_values(self, columns: Columns) -> dict[str, FloatArray]:
        """Return the terms at `columns`, (n,) each: not negative, NaN where unknown, without terms that no case has."""
        known: Columns = columns
        for name, text in self.counts.items():
            count = compute_columns({name: text}, self.derived, {**columns, **known})
            known = {**known, **{name: np.where(np.isnan(column), 1.0, column) for name, column in count.items()}}
        texts = {term.name: term.expression for term in self.terms}
        values = compute_columns(texts, self.derived, known)
        shares = {term.name: term.share for term in self.terms}
        return {name: shares[name] * np.maximum(column, 0.0) for name, column in values.items() if _is_known(column)}

    @property
    def doubts(self) -> dict[str, float]:
        """The doubts of the terms, by name."""
        return {term.name: term.doubt for term in self.terms}


def _is_known(column: npt.NDArray[np.float64]) -> bool:
    return not bool(np.isnan(column).all())
