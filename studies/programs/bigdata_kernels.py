"""Principal components, clusters and a separating plane of rows that are spread over ranks, for `bigdata.py`.

Each rank has its own rows, and every rank gets the result. Ranks communicate only by sums. The methods are those of
pbdR's package kazaam, which CORAL-2's suite runs.
"""

from dataclasses import dataclass

import numpy as np
from bigdata_blas import Matrix
from bigdata_rows import Labels, Rows


def covariance(rows: Rows, centre: str = "before") -> Matrix:
    """Return the covariance matrix of the columns, (p, p), its lower half.

    The mean is subtracted `before` the product, which needs a copy of the rows, or `after` it, which loses digits if
    the mean is much larger than the deviation.
    """
    mean, gram = rows.mean(), np.zeros((rows.columns, rows.columns))
    for part in rows.blocks():
        rows.blas.gram(rows.x[part] - mean if centre == "before" else rows.x[part], gram)
    rows.together(gram)
    if centre == "after":
        gram -= rows.total * np.outer(mean, mean)
    return gram / (rows.total - 1)


def deviations(rows: Rows, centre: str = "before") -> Matrix:
    """Return the standard deviations along the principal components, (p,), the largest first."""
    values = np.linalg.eigvalsh(covariance(rows, centre))
    return np.sqrt(np.maximum(values[::-1], 0.0))


def decomposition_error(rows: Rows) -> float:
    """Return the root mean square difference between the rows and U S V', their singular value decomposition.

    V and S are those of x'x, and U is x V / S.
    """
    gram = np.zeros((rows.columns, rows.columns))
    rows.blas.gram(rows.x, gram)
    rows.together(gram)
    squares, v = np.linalg.eigh(gram)
    s = np.sqrt(squares)
    u = rows.blas.times(rows.x, np.ascontiguousarray(v.T)) / s
    lost = np.array([np.square(rows.blas.times(u * s, v) - rows.x).sum()])
    rows.together(lost)
    return float(np.sqrt(lost[0] / (rows.total * rows.columns)))


@dataclass(frozen=True)
class Clusters:
    """Centres, (k, p); the centre of each row of this rank, (n,); and the sum of squared distances of all rows."""

    centres: Matrix
    labels: Labels
    squares: float


def clusters(rows: Rows, centres: Matrix, iterations: int, how: str = "product") -> Clusters:
    """Return clusters by Lloyd's method from `centres`, (k, p), until they converge or `iterations` are done.

    The rows of a cluster are summed by a `product` with a matrix of zeros and ones, or by `select`ing them.
    """
    for _ in range(iterations):
        before, centres = centres, _move_centres(rows, centres, how)
        if np.allclose(centres, before, rtol=1e-8, atol=0.0):
            break
    labels, squares = np.empty(len(rows.x), dtype=np.int64), np.zeros(1)
    for part in rows.blocks():
        scores = _scores(rows, part, centres)
        labels[part] = scores.argmin(axis=1)
        squares += np.square(rows.x[part]).sum() + scores.min(axis=1).sum()
    rows.together(squares)
    return Clusters(centres, labels, float(squares[0]))


def _scores(rows: Rows, part: slice, centres: Matrix) -> Matrix:
    """Return the squared distance of each row from each centre, minus the square of the row, (n, k)."""
    return np.square(centres).sum(axis=1) - 2.0 * rows.blas.times(rows.x[part], centres)


def _move_centres(rows: Rows, centres: Matrix, how: str) -> Matrix:
    """Return the mean of the rows nearest to each centre; a centre without rows stays."""
    k, columns = centres.shape
    # The last column counts.
    sums = np.zeros((k, columns + 1))
    for part in rows.blocks():
        labels = _scores(rows, part, centres).argmin(axis=1)
        sums[:, columns] += np.bincount(labels, minlength=k)
        if how == "product":
            sums[:, :columns] += rows.blas.sums(np.eye(k)[labels], rows.x[part])
        else:
            for cluster in range(k):
                sums[cluster, :columns] += rows.x[part][labels == cluster].sum(axis=0)
    rows.together(sums)
    counts = sums[:, columns:]
    return np.where(counts > 0.0, sums[:, :columns] / np.maximum(counts, 1.0), centres)


def rand_index(rows: Rows, found: Clusters) -> float:
    """Return the share of all pairs of rows on which classes and clusters agree: same or different."""
    table = np.zeros((rows.kinds, len(found.centres)))
    np.add.at(table, (rows.classes, found.labels), 1.0)
    rows.together(table)
    pairs = rows.total * (rows.total - 1) / 2.0
    both, classes, groups = (
        float((counts * (counts - 1.0)).sum() / 2.0) for counts in (table, table.sum(axis=1), table.sum(axis=0))
    )
    return (pairs + 2.0 * both - classes - groups) / pairs


@dataclass(frozen=True)
class Plane:
    """A plane between two classes: the weights of the columns and the intercept, (p + 1,), and its cost."""

    weights: Matrix
    cost: float


def plane(rows: Rows, evaluations: int, at_once: int = 1) -> Plane:
    """Return the plane of a linear support vector machine after `evaluations` of its cost.

    The cost is the mean hinge loss and the squared weights over twice the number of rows. It is minimised by the
    simplex method of J. A. Nelder and R. Mead (1965, doi:10.1093/comjnl/7.4.308), which needs no derivative:
    reflection 1, expansion 2, contraction 1/2, from zero and a step of 0.1 along each weight. `at_once` of these first
    points are computed in one pass over the rows.
    """
    points = np.zeros((rows.columns + 2, rows.columns + 1))
    points[1:][np.diag_indices(rows.columns + 1)] = 0.1
    costs = _costs(rows, points, at_once)
    left = evaluations - len(points)
    while left > 0:
        worst, best = int(costs.argmax()), int(costs.argmin())
        second = float(np.partition(costs, -2)[-2])
        middle = (points.sum(axis=0) - points[worst]) / (len(points) - 1)
        candidates = [middle + (middle - points[worst])]
        found = [_cost(rows, candidates[0])]
        if found[0] < costs[best]:
            candidates.append(middle + 2.0 * (middle - points[worst]))
        elif found[0] >= second:
            towards = candidates[0] if found[0] < costs[worst] else points[worst]
            candidates.append(0.5 * (middle + towards))
        left -= len(candidates)
        if len(candidates) > 1:
            found.append(_cost(rows, candidates[1]))
        better = int(np.argmin(found))
        if found[better] < costs[worst]:
            points[worst], costs[worst] = candidates[better], found[better]
        else:
            points = points[best] + 0.5 * (points - points[best])
            costs = _costs(rows, points, at_once)
            left -= len(points)
    best = int(costs.argmin())
    return Plane(points[best], float(costs[best]))


def accuracy(rows: Rows, weights: Matrix) -> float:
    """Return the share of all rows that are on the right side of a plane."""
    sides = rows.blas.times(rows.x, weights[None, :-1])[:, 0] + weights[-1]
    right = np.array([float(((sides > 0.0) == (rows.classes > 0)).sum())])
    rows.together(right)
    return float(right[0] / rows.total)


def _cost(rows: Rows, point: Matrix) -> float:
    return float(_costs(rows, point[None, :], 1)[0])


def _costs(rows: Rows, points: Matrix, at_once: int) -> Matrix:
    """Return the cost of each point, (k,)."""
    costs = np.zeros(len(points))
    signs = np.where(rows.classes > 0, 1.0, -1.0)[:, None]
    for first in range(0, len(points), at_once):
        some = slice(first, first + at_once)
        weights, intercepts = np.ascontiguousarray(points[some, :-1]), points[some, -1]
        for part in rows.blocks():
            sides = rows.blas.times(rows.x[part], weights) + intercepts
            costs[some] += np.maximum(0.0, 1.0 - signs[part] * sides).sum(axis=0)
    rows.together(costs)
    return (costs + 0.5 * np.square(points).sum(axis=1)) / rows.total
