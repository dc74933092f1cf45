"""A model of sums: a cost is the sum of terms, each at a rate that depends on words (machine, compiler, ...).

    log t = level(words) + log sum_j exp(a_j + d_j(words)) T_j

Terms can vanish, but are never negative, so it extrapolates as the sum does: to many nodes by what grows with nodes.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.table import Places, Table

_HUBER = 0.3
_RATES, _EFFECTS = (-12.0, 6.0), (-4.0, 4.0)
_ON_RATES, _ON_LEVELS = 1e-4, 0.02
_STEPS, _FURTHER_STEPS = 300, 60
_SOME = 1_500
# More words than these would be more effects than data.
_MOST_WORDS = 30
_KNOWN_SHARE = 0.5
_LEAST_ROWS = 6


@dataclass(frozen=True)
class CostTerms:
    """Rates, (p,), of the terms `names` by logarithm, the levels of q words, (q,), and their effects on terms, (q, p).

    `scales`, (p,), bring each term to the size of the cost.
    """

    names: tuple[str, ...]
    words: Features
    scales: FloatArray
    rates: FloatArray
    levels: FloatArray
    effects: FloatArray

    @classmethod
    def fitted(
        cls, table: Table, y: FloatArray, weights: FloatArray, on_effects: float, start: "CostTerms | None" = None
    ) -> "CostTerms | None":
        """Fit to `y`, (n,), the logarithms of costs, of cases with `weights`, (n,), from `start` if there is one.

        Rows with an unknown term are left out; None where too few rows are left. `on_effects` is the penalty of squared
        effects.
        """
        names = tuple(name for name, column in table.terms.items() if _is_known(column))
        if not names:
            return None
        logs = _logs(table, names)
        whole = np.flatnonzero(~np.isnan(logs).any(axis=1))
        if len(whole) < _LEAST_ROWS:
            return None
        words = _words(table.at(whole))
        logs, y, weights = logs[whole], y[whole], weights[whole]
        scales = _scales(logs, y)
        fit = _Fit(logs + scales, words.raw(table.at(whole).columns), y, weights / weights.mean(), on_effects)
        minimum = fit.minimum(start.parameters(names, words) if start is not None else fit.start())
        return cls(names, words, scales, *fit.parts(minimum))

    def parameters(self, names: tuple[str, ...], words: Features) -> FloatArray:
        """Return the parameters of this model as the start of a fit with other terms and words."""
        terms, levels = _places(names, self.names), _places(words.names, self.words.names)
        rates, effects = np.append(self.rates, 0.0)[terms], np.pad(self.effects, ((0, 1), (0, 1)))[levels][:, terms]
        return np.concatenate([rates, np.append(self.levels, 0.0)[levels], effects.ravel()])

    def predict(self, table: Table) -> FloatArray:
        """Return the logarithms, (m,), that are expected; NaN where a term is unknown."""
        shares, level = self._parts(table)
        top = shares.max(axis=1)
        logarithms: FloatArray = np.log(np.exp(shares - top[:, None]).sum(axis=1)) + top + level
        return logarithms

    def difference(self, pair: Table) -> dict[str, float]:
        """Return what each term adds to the logarithm of the first of two rows beyond the second.

        Exact: a difference of logarithms of sums, by logarithmic means (Ang & Liu, Energy 26, 2001).
        """
        shares, level = self._parts(pair)
        costs = np.exp(shares)
        first, second = costs.sum(axis=1)
        mean = (first - second) / np.log(first / second) if not np.isclose(first, second, rtol=1e-12) else first
        parts = (costs[0] - costs[1]) / mean
        return {"level": float(level[0] - level[1]), **dict(zip(self.names, parts.tolist(), strict=True))}

    def _parts(self, table: Table) -> tuple[FloatArray, FloatArray]:
        words = self.words.raw({**table.words, "": np.zeros(len(table))})
        return _logs(table, self.names) + self.scales + self.rates + words @ self.effects, words @ self.levels


@dataclass(frozen=True)
class _Fit:
    """The objective to minimise: a pseudo-Huber loss of logarithms, and penalties; `logs` (n, p), `words` (n, q)."""

    logs: FloatArray
    words: FloatArray
    y: FloatArray
    weights: FloatArray
    on_effects: float

    @property
    def zeros(self) -> FloatArray:
        p, q = self.logs.shape[1], self.words.shape[1]
        return np.zeros(p + q + p * q)

    def start(self) -> FloatArray:
        """Return the start of the search: zeros, or with many rows the minimum for some of them."""
        if len(self.y) < 2 * _SOME:
            return self.zeros
        rows = np.random.default_rng(0).permutation(len(self.y))[:_SOME]
        some = _Fit(self.logs[rows], self.words[rows], self.y[rows], self.weights[rows], self.on_effects)
        return some.minimum(some.zeros)

    def parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        p, q = self.logs.shape[1], self.words.shape[1]
        return x[:p], x[p : p + q], x[p + q :].reshape(q, p)

    def minimum(self, start: FloatArray) -> FloatArray:
        p = self.logs.shape[1]
        bounds = [_RATES] * p + [_EFFECTS] * (len(start) - p)
        steps = _STEPS if len(self.y) < 2 * _SOME else _FURTHER_STEPS
        parameters: FloatArray = minimize(
            self, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps}
        ).x
        return parameters

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        rates, levels, effects = self.parts(x)
        shares = self.logs + rates + self.words @ effects
        top = shares.max(axis=1)
        costs = np.exp(shares - top[:, None])
        sums = costs.sum(axis=1)
        off = np.log(sums) + top + self.words @ levels - self.y
        bend = np.sqrt(1.0 + (off / _HUBER) ** 2)
        slope = self.weights * off / bend
        by_term = costs / sums[:, None] * slope[:, None]
        loss = float((self.weights * _HUBER**2 * (bend - 1.0)).sum())
        loss += _ON_RATES * float(rates @ rates) + _ON_LEVELS * float(levels @ levels)
        loss += self.on_effects * float((effects**2).sum())
        gradient = [
            by_term.sum(axis=0) + 2.0 * _ON_RATES * rates,
            self.words.T @ slope + 2.0 * _ON_LEVELS * levels,
            (self.words.T @ by_term + 2.0 * self.on_effects * effects).ravel(),
        ]
        return loss, np.concatenate(gradient)


def _places(names: tuple[str, ...], among: tuple[str, ...]) -> Places:
    return np.array([among.index(name) if name in among else -1 for name in names], dtype=np.intp)


def _is_known(column: FloatArray) -> bool:
    there = ~np.isnan(column)
    return bool(there.mean() >= _KNOWN_SHARE and (column[there] > 0.0).any())


def _logs(table: Table, names: tuple[str, ...]) -> FloatArray:
    missing = np.full(len(table), np.nan)
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(np.column_stack([table.terms.get(name, missing) for name in names]))
    return logs


def _scales(logs: FloatArray, y: FloatArray) -> FloatArray:
    """Return the factors, by logarithm, that make all terms, where they are not 0, equal parts of the cost."""
    apart = np.where(np.isfinite(logs), y[:, None] - logs, np.nan)
    there = np.isfinite(apart).any(axis=0)
    scales = np.zeros(logs.shape[1])
    scales[there] = np.nanmedian(apart[:, there], axis=0) - np.log(logs.shape[1])
    return scales


def _words(table: Table) -> Features:
    """Return the columns of words that vary, in the table's order, up to `_MOST_WORDS` words in all."""
    words = Features.learnt(table.words).words
    kept, count = [], 0
    for word in words:
        if count + len(word.words) <= _MOST_WORDS:
            kept.append(word)
            count += len(word.words)
    return Features((), tuple(kept))
