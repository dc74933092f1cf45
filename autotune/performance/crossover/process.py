"""A Gaussian process of costs on machines, of which only differences between machines of one case are asked.

The logarithm of a cost is what the case costs anywhere, which is free, and what the machine adds to it: always, as the
size of the case grows, and at cases like it. Each of these is partly what machines with such facts have in common, and
partly the machine's own. How much each counts is what makes the measurements likeliest. Rows that are left out are
predicted from the others without another fit, so the errors of pairs of machines are known for every pair.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from autotune.performance.crossover.cases import CaseTable
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.similarity import squared_distances
from autotune.performance.regression.table import Places

# What a case costs anywhere is free: its variance is so many times that of all costs.
_FREE = 100.0
# The variances are fitted to at most so many rows, whole cases of them, and everything to at most so many.
_FITTED_TO = 320
_ROWS = 1_600
_LEAST, _MOST = np.log(1e-5), np.log(10.0)


@dataclass(frozen=True, eq=False)
class Likeness:
    """How alike machines, (m, m), and cases, (c, c), are: pairs of both whose products are the parts of a cost."""

    parts: tuple[tuple[FloatArray, FloatArray], ...]

    @classmethod
    def of(cls, table: CaseTable) -> "Likeness":
        """Measure it by the facts of a table's machines and cases."""
        alike = _near(squared_distances(table.machine_facts))
        own = np.eye(len(table.machines))
        features = table.features()
        count = len(table.cases)
        always, case = np.ones((count, count)), np.eye(count)
        products = features @ features.T / max(1, features.shape[1])
        squares = np.diag(products)
        near = _near(np.maximum(squares[:, None] + squares[None, :] - 2.0 * products, 0.0))
        of_cases = (always, products, near) if features.shape[1] else (always,)
        return cls((*((machines, cases) for cases in of_cases for machines in (alike, own)), (own, case)))

    def between(self, one: CaseTable, other: CaseTable, variances: FloatArray) -> FloatArray:
        """Return the covariances, (n, k), of the rows of two tables of the same machines and cases."""
        cases = np.ix_(one.case, other.case)
        machines = np.ix_(one.machine, other.machine)
        parts = zip(self.parts, variances[1:], strict=True)
        same = variances[0] * (one.case[:, None] == other.case[None, :])
        return np.asarray(same + sum(weight * a[machines] * b[cases] for (a, b), weight in parts), dtype=float)


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference of two logarithms of costs that is expected, and the deviation of what is to be measured."""

    mean: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Process:
    """The process given the rows of a table; the `variances` are that of the case and those of the likeness' parts."""

    table: CaseTable
    likeness: Likeness
    variances: FloatArray
    inverse: FloatArray

    @classmethod
    def fitted(cls, table: CaseTable, rng: np.random.Generator) -> "Process":
        """Fit to a table; of a large one to cases of it at random."""
        likeness = Likeness.of(table)
        scale = float(np.var(table.costs)) or 1.0
        variances = _likeliest(table.at(_whole_cases(table, _FITTED_TO, rng)), likeness, scale)
        table = table.at(_whole_cases(table, _ROWS, rng))
        inverse = np.linalg.inv(likeness.between(table, table, variances))
        return cls(table, likeness, variances, np.asarray(inverse, dtype=float))

    @cached_property
    def weights(self) -> FloatArray:
        """How much each row's covariance with another adds to what is expected of that, (n,)."""
        return np.asarray(self.inverse @ (self.table.costs - self.table.costs.mean()), dtype=float)

    def difference(self, first: int, second: int, case: int) -> Difference:
        """Return what the first machine's cost of a case is expected to be above the second's."""
        asked = replace(
            self.table,
            machine=np.array([first, second], dtype=np.intp),
            case=np.array([case, case], dtype=np.intp),
            costs=np.zeros(2),
        )
        contrast = np.array([1.0, -1.0])
        across = self.likeness.between(self.table, asked, self.variances) @ contrast
        within = contrast @ self.likeness.between(asked, asked, self.variances) @ contrast
        variance = within - across @ self.inverse @ across
        return Difference(float(across @ self.weights), float(np.sqrt(max(variance, 1e-12))))

    def errors(self, first: int, second: int, hidden: Places, cases: Places) -> FloatArray:
        """Return the errors of the differences of two machines at those of the `cases` that both ran, in deviations.

        The rows at `hidden`, theirs among them, are predicted from the rest.
        """
        covariance = np.linalg.inv(self.inverse[np.ix_(hidden, hidden)])
        off = covariance @ self.weights[hidden]
        machine, case = self.table.machine[hidden], self.table.case[hidden]
        judged = np.isin(case, cases)
        ones, others = np.flatnonzero(judged & (machine == first)), np.flatnonzero(judged & (machine == second))
        _, left, right = np.intersect1d(case[ones], case[others], return_indices=True)
        one, other = ones[left], others[right]
        variance = covariance[one, one] + covariance[other, other] - 2.0 * covariance[one, other]
        return np.asarray((off[one] - off[other]) / np.sqrt(np.maximum(variance, 1e-12)), dtype=float)


def _near(distances: FloatArray) -> FloatArray:
    """Return how alike things at squared distances, (n, n), are: as their typical distance has it."""
    apart = distances[distances > 0.0]
    return np.asarray(np.exp(-distances / np.median(apart)), dtype=float) if len(apart) else np.ones_like(distances)


def _whole_cases(table: CaseTable, most: int, rng: np.random.Generator) -> Places:
    """Return the rows of as many whole cases, at random, as have at most so many rows."""
    cases = rng.permutation(len(table.cases))
    counts = np.bincount(table.case, minlength=len(table.cases))[cases]
    chosen = cases[(np.cumsum(counts) <= most) | (np.arange(len(cases)) == 0)]
    return np.flatnonzero(np.isin(table.case, chosen))


def _likeliest(table: CaseTable, likeness: Likeness, scale: float) -> FloatArray:
    """Return the variances that make the rows of a table likeliest."""
    unit = np.eye(len(likeness.parts) + 1)
    free = likeness.between(table, table, unit[0]) * (_FREE * scale)
    parts = [likeness.between(table, table, row) for row in unit[1:]]
    y = table.costs - table.costs.mean()

    def unlikeliness(logarithms: FloatArray) -> tuple[float, FloatArray]:
        variances = np.exp(logarithms) * scale
        covariance = free + sum(weight * part for weight, part in zip(variances, parts, strict=True))
        factor = np.linalg.cholesky(covariance)
        inverse = cho_solve((factor, True), np.eye(len(y)))
        weights = inverse @ y
        inner = inverse - np.outer(weights, weights)
        slopes = [0.5 * weight * float(np.vdot(inner, part)) for weight, part in zip(variances, parts, strict=True)]
        value = 0.5 * float(y @ weights) + float(np.log(np.diag(factor)).sum())
        # A weak prior holds what the rows say nothing of.
        return value + 0.01 * float(((logarithms + 3.0) ** 2).sum()), np.array(slopes) + 0.02 * (logarithms + 3.0)

    start = np.full(len(parts), -3.0)
    found = minimize(
        unlikeliness, start, jac=True, method="L-BFGS-B", bounds=[(_LEAST, _MOST)] * len(parts), options={"maxiter": 40}
    )
    return np.array([_FREE * scale, *(np.exp(found.x) * scale)])
