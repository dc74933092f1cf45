"""A member of the model of run times: a smooth base that extrapolates, and trees on its residuals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from autotune.performance.regression.cost_model import CostModel
from autotune.performance.regression.learners import ROUNDS, Forest, LogLinear, Trees
from autotune.performance.regression.table import Table
from autotune.performance.run_times.context import Context
from spaces.expressions.quantities import FloatArray


class Base(Protocol):
    """A model that predicts logarithms."""

    def predict(self, table: Table) -> FloatArray:
        """Return the expected logarithms, (m,); NaN for cases without a prediction."""
        ...


Fitting = Callable[[Table, FloatArray, FloatArray], Base | None]
"""Fits a base to the logarithms of values, (n,), of cases with weights, (n,)."""


@dataclass(frozen=True)
class Kind:
    """A way to fit a base; of each `family` the kind that predicts best is used.

    A kind that `knows_costs` needs no measurements and states its uncertainty. Trees are fitted to the residuals of a
    kind that is `boosted`.
    """

    family: str
    fitting: Fitting
    knows_costs: bool = False
    boosted: bool = True


def kinds(table: Table, products: bool) -> tuple[Kind, ...]:
    """Return the kinds of members, the program's cost model first if it has one."""

    def linear(table: Table, y: FloatArray, weights: FloatArray) -> Base | None:
        return LogLinear.fit(table, y, weights, products)

    simple = (Kind("log-linear", linear), Kind("forest", Forest.fit, boosted=False))
    return (Kind("cost model", CostModel.fit, knows_costs=True), *simple) if table.costs is not None else simple


@dataclass(frozen=True)
class EnsembleMember:
    """A base and the trees on its residuals; both know the columns `names` and the words of `context`."""

    base: Base
    trees: Trees
    context: Context
    names: frozenset[str]

    @classmethod
    def fit(  # noqa: PLR0913, PLR0917  what a fit is made of
        cls,
        kind: Kind,
        table: Table,
        y: FloatArray,
        weights: FloatArray,
        context: Context,
        names: frozenset[str],
        most: int = max(ROUNDS),
    ) -> "EnsembleMember | None":
        """Fit to `y`, (n,), the logarithms of values, of cases with `weights`, (n,); None if the base cannot be fitted.

        `most` is the greatest number of trees that `predict` may use.
        """
        table = table.only(names)
        base = kind.fitting(table, y, weights)
        if base is None:
            return None
        count = most if kind.boosted else 0
        residuals = y - base.predict(table) if count else np.zeros(len(y))
        known = np.flatnonzero(~np.isnan(residuals))
        trees = Trees.fit(table.at(known).columns, residuals[known], weights[known], count)
        return cls(base, trees, context, names)

    def predict(self, table: Table, rounds: tuple[int, ...] = ROUNDS) -> tuple[FloatArray, FloatArray | None]:
        """Return the expected logarithms, (m, r), with each number of trees, and the draws of the base, (draws, m).

        Logarithms are NaN for cases without a prediction; the draws are None unless the base states its uncertainty.
        """
        replaced = self.context.replace_unseen(table)
        rows = replaced.table.only(self.names)
        drawn = self.base.draws(rows) if isinstance(self.base, CostModel) else None
        base, columns = self.base.predict(rows) if drawn is None else drawn.mean(axis=0), rows.columns
        logarithms = np.column_stack(
            [base + (self.trees.predict(columns, count) if columns else 0.0) for count in rounds]
        )
        draws = None if drawn is None else replaced.average(drawn.T, len(table)).T
        return replaced.average(logarithms, len(table)), draws
