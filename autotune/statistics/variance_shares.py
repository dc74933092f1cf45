"""Shares of a function's variance that parameters explain alone and in pairs, with intervals from draws of it.

Functional ANOVA: f(x) = f0 + sum of f_i(x_i) + sum of f_ij(x_i, x_j) + a rest, by least squares over a sample of
configurations, the pairs after the parameters alone: the effect of a pair is orthogonal to all that parameters do alone
(Hooker, "Generalized functional ANOVA diagnostics for high-dimensional functions of dependent variables", J. Comput.
Graph. Stat. 16, 2007). The share of an effect is its covariance with f over the variance of f (Li et al., "Global
sensitivity analysis for systems with independent and/or correlated inputs", J. Phys. Chem. A 114, 2010). Where
parameters are independent these are Sobol' indices; where constraints tie them they still add up to what all effects
explain together. A covariance below zero, which only tied parameters have, counts as none.

Each draw of the function gives each share once: their mean is the share, their quantiles its interval. Squares are
never below zero, so that the interval of an effect that is not there would not reach zero. It begins at zero where the
effect itself may be none: where that lies in the ellipsoid that holds as many of the drawn effects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

CONFIDENCE = 0.95

# Smaller shares cannot be told from none, and are not worth a thought.
_NOTHING = 0.005
# A fit of more columns than this share of the points would follow the rest.
_COLUMNS = 1 / 3
_RIDGE = 1e-6
_TINY = 1e-9


@dataclass(frozen=True)
class VarianceShare:
    """The share of the variance, from 0 to 1, that the parameters `of` explain: one alone, or two beyond that.

    `low` and `high` are the ends of its interval.
    """

    of: tuple[int, ...]
    share: float
    low: float
    high: float


def variance_shares(bases: Sequence[Array], draws: Array) -> tuple[list[VarianceShare], VarianceShare]:
    """Return the share of each parameter and of each pair, and what none of them explains, whose `of` is empty.

    `bases` has for each parameter the columns, (n, k), that its effects are sums of, over n configurations; `draws`,
    (n, s), has s functions there. The shares are between 0 and 1, and add up to 1 with the rest. Where there are too
    many pairs for n configurations, those of the parameters with the largest shares are told.
    """
    centred = draws - draws.mean(0)
    squares = (centred**2).sum(0)
    squares = np.where(squares > 0.0, squares, 1.0)
    factors = [_orthonormal(basis) for basis in bases]
    joined = np.hstack([np.empty((len(draws), 0)), *factors])
    alone = _Effects.fitted({(place,): basis for place, basis in enumerate(factors)}, centred, squares)
    told = sorted(np.argsort(-alone.shares.mean(1), kind="stable")[: _most_paired(len(draws))])
    products = _products(factors, told, _orthonormal(joined))
    effects = alone.joined(_Effects.fitted(products, centred, squares))
    # What is counted as none may leave the others more than there is.
    shares = effects.shares / np.maximum(effects.shares.sum(0), 1.0)
    told_shares = [
        _share(of, one, may_be_none=_may_be_none(effects.coefficients[place]))
        for place, (of, one) in enumerate(zip(effects.of, shares, strict=True))
    ]
    return told_shares, _share((), np.maximum(1.0 - shares.sum(0), 0.0))


@dataclass(frozen=True)
class _Effects:
    """Effects of the parameters `of`: `shares`, (effects, s), and `coefficients` of each, (k, s), in units of f."""

    of: list[tuple[int, ...]]
    shares: Array
    coefficients: list[Array]

    @classmethod
    def fitted(cls, columns: dict[tuple[int, ...], Array], values: Array, squares: Array) -> "_Effects":
        """Fit all `columns`, (n, k) each, together to the centred `values`, (n, s), of which `squares` are the sums."""
        if not columns:
            return cls([], np.zeros((0, values.shape[1])), [])
        joined = np.hstack(list(columns.values()))
        met = joined.T @ values
        found = np.linalg.solve(joined.T @ joined + _RIDGE * np.eye(joined.shape[1]), met)
        places = np.cumsum([0, *(one.shape[1] for one in columns.values())])
        ends = list(pairwise(places))
        shares = np.array([(found[first:last] * met[first:last]).sum(0) / squares for first, last in ends])
        coefficients: list[Array] = [found[first:last] / np.sqrt(squares) for first, last in ends]
        return cls(list(columns), np.maximum(shares, 0.0), coefficients)

    def joined(self, other: "_Effects") -> "_Effects":
        """Return these effects and those."""
        shares = np.concatenate([self.shares, other.shares])
        return _Effects(self.of + other.of, shares, self.coefficients + other.coefficients)


def _orthonormal(columns: Array) -> Array:
    """Return an orthonormal basis, (n, r), of what centred columns, (n, k), span."""
    left, sizes, _ = np.linalg.svd(columns - columns.mean(0), full_matrices=False)
    kept: Array = left[:, sizes > _TINY * max(1.0, sizes.max(initial=0.0))]
    return kept


def _most_paired(points: int) -> int:
    """Return of how many parameters all pairs can be told, each by one column at least."""
    return int((1.0 + np.sqrt(1.0 + 8.0 * _COLUMNS * points)) / 2.0)


def _products(factors: Sequence[Array], told: Sequence[int], known: Array) -> dict[tuple[int, ...], Array]:
    """Return for each pair its columns: products beyond what is `known`, (n, r), of no more columns than fit."""
    points = len(known)
    pairs = [(int(one), int(other)) for one, other in combinations(told, 2)]
    widest = max((factors[place].shape[1] for place in told), default=0)
    sizes = [factor.shape[1] for factor in factors]
    width = next(
        (
            width
            for width in range(widest, 0, -1)
            if sum(min(width, sizes[one]) * min(width, sizes[other]) for one, other in pairs) <= _COLUMNS * points
        ),
        1,
    )
    products: dict[tuple[int, ...], Array] = {}
    for one, other in pairs:
        left, right = factors[one][:, :width], factors[other][:, :width]
        columns = (left[:, :, None] * right[:, None, :]).reshape(points, -1) * np.sqrt(points)
        columns = columns - columns.mean(0)
        beyond = columns - known @ (known.T @ columns)
        norms = np.sqrt((beyond**2).sum(0))
        # A product that is known already, as that of tied parameters, would be rounding made large.
        kept = norms > np.sqrt(_RIDGE)
        products[one, other] = beyond[:, kept] / norms[kept]
    return products


def _may_be_none(coefficients: Array) -> bool:
    """Whether no effect at all lies in the ellipsoid that holds most of the drawn `coefficients`, (k, s)."""
    if not len(coefficients):
        return True
    middle = coefficients.mean(1, keepdims=True)
    covariance = np.cov(coefficients).reshape(len(coefficients), -1)
    precision = np.linalg.inv(covariance + _TINY * (np.trace(covariance) + _TINY) * np.eye(len(coefficients)))
    away = coefficients - middle
    far = np.einsum("is,ij,js->s", away, precision, away)
    return bool((middle.T @ precision @ middle)[0, 0] <= np.quantile(far, CONFIDENCE))


def _share(of: tuple[int, ...], drawn: Array, *, may_be_none: bool = False) -> VarianceShare:
    share = float(drawn.mean())
    low, high = (float(end) for end in np.quantile(drawn, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0]))
    low = 0.0 if may_be_none or low < _NOTHING else low
    return VarianceShare(of, share, min(low, share), max(high, share))
