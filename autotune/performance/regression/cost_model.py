"""The cost model: a run time as a sum of terms, whose rates differ from build to build and from machine to machine.

    log t = level + log sum_j exp(a_j + sum_g b_gj) S_j

S_j are the expected seconds of a term (`shapes.costs`), a_j the part of its rate that is common to all machines, and
b_gj the part of a machine, of an installation on all machines, or of a build: an installation on a machine. All are
normally distributed around 0, with standard deviations that the terms state. Without measurements the model predicts
the expected seconds; one run of a build shifts it, many runs determine it (a hierarchical model: Gelman & Hill 2007).
Most installations and builds are alike and something is wrong with a few (a BLAS without vector instructions, messages
over TCP), so their parts have heavy tails: Student's t. The same holds for the levels of workloads: some runs stop
early. The rates are those at the mode of the posterior; a Student t likelihood limits the effect of disturbed runs, and
the curvature at the mode (Laplace's approximation) gives the uncertainty.

The timers of a run, if known, are further observations, each of the sum of some terms: one run with timers is worth
several without.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from autotune.performance.regression.table import Places, Table
from objectives.shapes.costs import Costs
from spaces.expressions.quantities import FloatArray

# The shares of a rate's variance that are common to all builds, to a machine, to an installation on all machines, and
# specific to a build: an installation on a machine. Workloads have levels only.
_SHARES: Mapping[str, float] = {"": 0.25, "machine": 0.35, "installation": 0.3, "build": 0.3}
_NAMES = frozenset({*_SHARES, "workload"})
_TAILED = frozenset({"installation", "build", "workload"})
_TAIL = 2.0  # degrees of freedom of the parts of these
_WORKLOAD_LEVEL = 0.5  # a workload's time differs from its size's: the number of iterations is unknown beforehand
_NOISE, _FREEDOM = 0.12, 4.0
_NOISES, _FEW = (0.02, 0.3), 8
_SHRUNK = 5.0  # the rows of a build that count as if its noise were that of all
_SURELY = 1e6  # degrees of freedom at which Student's t is almost a normal distribution
_TIMER_NOISE, _TIMER_WEIGHT = 0.25, 0.3
# Ignore timers below this share of the run: rounding dominates them.
_LEAST_SHARE = 0.003
_STEPS, _LEAST_STEP = 30, 0.01
# Fit to this many of more rows: further rows do not determine a few rates better.
_MOST = 2_500
DRAWS = 64
"""The number of draws of the rates that estimate the uncertainty of a prediction."""


@dataclass(frozen=True)
class _Group:
    """Rows with the same label share a part of the rates, of the level, or of both.

    Attributes:
        name: The kind of the labels: machines, installations, builds or workloads; "" for rates that all rows share.
        labels: The known labels.
        start: The index of the first parameter. Each label has as many as there are `deviations`, the level last.
        deviations: The standard deviations, (p,), (1,) or (p + 1,), of rates and level before any measurement.
        has_rates: Whether it has a part of the rates.
        has_level: Whether it has a part of the level.
    """

    name: str
    labels: tuple[str, ...]
    start: int
    deviations: FloatArray
    has_rates: bool = True
    has_level: bool = True

    @property
    def width(self) -> int:
        return len(self.deviations)

    @property
    def end(self) -> int:
        return self.start + len(self.labels) * self.width

    def places(self, table: Table) -> Places:
        """Return the index of each row's label, (n,); -1 for a new one."""
        if not self.name:
            return np.zeros(len(table), dtype=np.intp)
        index = {label: place for place, label in enumerate(self.labels)}
        return np.array([index.get(str(word), -1) for word in table.groups[self.name]], dtype=np.intp)

    def of(self, parameters: FloatArray) -> FloatArray:
        """Return the group's part of parameters, (q, ...), by label, (l + 1, width, ...); the last, 0, is a new one."""
        own = parameters[self.start : self.end].reshape(len(self.labels), self.width, *parameters.shape[1:])
        return np.concatenate([own, np.zeros((1, *own.shape[1:]))])

    def rates(self, values: FloatArray) -> FloatArray | float:
        """Return the part of the rates, (..., p), of values, (..., width)."""
        return values[..., : self.width - self.has_level] if self.has_rates else 0.0

    def level(self, values: FloatArray) -> FloatArray | float:
        """Return the part of the level, (...), of values, (..., width)."""
        return values[..., -1] if self.has_level else 0.0


@dataclass(frozen=True)
class CostModel:
    """The posterior of q parameters: their `mode`, (q,), and the Cholesky factor, (q, q), of its precision.

    The parameters are those of the `groups` in turn. `sign` is -1 if the values are the inverse of the sum.
    """

    groups: tuple[_Group, ...]
    mode: FloatArray
    factor: FloatArray
    sign: float = 1.0

    @classmethod
    def fit(cls, table: Table, y: FloatArray, weights: FloatArray) -> "CostModel | None":
        """Fit to `y`, (n,), the logarithms of values, of cases with `weights`, (n,); n may be 0.

        Rows with an unknown term are left out. The result is None if the table has no costs.
        """
        if table.costs is None:
            return None
        logs = table.costs.logarithms
        whole = np.flatnonzero(~np.isnan(logs).any(axis=1) & np.isfinite(logs).any(axis=1))
        if len(whole) > _MOST:
            whole = whole[_balanced(table.at(whole), _MOST)]
        rows, costs = table.at(whole), table.costs.at(whole)
        sign = -1.0 if costs.inverse else 1.0
        groups = _groups(rows, costs)
        fit = _Fit.of(groups, rows, costs, sign * y[whole], weights[whole])
        start = fit.mode(np.zeros(len(fit.priors)))
        fit = fit.with_noise_at(start)
        mode = fit.mode(start)
        return cls(groups, mode, cholesky(fit.precision(mode), lower=True), sign)

    def draws(self, table: Table) -> FloatArray:
        """Return logarithms of the cases, (`DRAWS`, m), one draw of all rates each; NaN for cases with an unknown term.

        Rates of new machines and builds are drawn from their prior, so a configuration that depends on an unknown
        property of a build (messages between its nodes) is uncertain, and slower in the mean of the draws. Rates that
        measurements determine are drawn from the posterior, by their linear effect, which keeps measured sums.
        """
        assert table.costs is not None
        rng = np.random.default_rng(0)
        away = solve_triangular(self.factor.T, _pairs(rng, len(self.mode), DRAWS), lower=False)
        terms, levels = self._at_mode(table)
        parts: list[tuple[_Group, Places, FloatArray, FloatArray | None]] = []
        for group in self.groups:
            places, known = group.places(table), np.moveaxis(group.of(away), -1, 0).copy()
            new = np.zeros_like(known)
            new[:, -1] = _pairs(rng, group.width, DRAWS).T * group.deviations
            parts.append((group, places, known, new if (places < 0).any() else None))
        sums = np.empty((DRAWS, len(table)))
        for draw in range(DRAWS):  # one at a time: all draws together would need gigabytes for many cases
            drawn, moved, level = terms, np.zeros((len(table), 1)), levels
            for group, places, known, unknown in parts:
                own = known[draw, places]
                moved, level = moved + group.rates(own), level + group.level(own)
                if unknown is not None:
                    fresh = unknown[draw, places]
                    drawn, level = drawn + group.rates(fresh), level + group.level(fresh)
            logarithms, shares = _log_sum(drawn)
            sums[draw] = logarithms + (shares * moved).sum(axis=1) + level
        return self.sign * sums

    def predict(self, table: Table) -> FloatArray:
        """Return the expected logarithms, (m,): the mean of the draws."""
        means: FloatArray = self.draws(table).mean(axis=0)
        return means

    def slowness(self, table: Table) -> float:
        """Return how many times slower the cases are than with a usual build of their machine, at the mode.

        Of rates, how many times less. The result is the median over cases.
        """
        own, usual, own_level = (self._at_mode(table, names) for names in (_NAMES, {"", "machine"}, {"build"}))
        return float(np.exp(np.nanmedian(_log_sum(own[0])[0] + own_level[1] - _log_sum(usual[0])[0])))

    def _at_mode(self, table: Table, names: Collection[str] = _NAMES) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of the terms, (m, p), and the levels, (m,), by the groups with these names."""
        assert table.costs is not None
        logs, levels = table.costs.logarithms, np.zeros(len(table))
        for group in (one for one in self.groups if one.name in names):
            own = group.of(self.mode)[group.places(table)]
            logs, levels = logs + group.rates(own), levels + group.level(own)
        return logs, levels


def _groups(table: Table, costs: Costs) -> tuple[_Group, ...]:
    """Return the groups of a fit. The level of a workload covers its work, too, unless the terms are `sized`."""
    rates = np.array([costs.doubts[name] for name in costs.names])
    groups = [_Group("", ("",), 0, rates * np.sqrt(_SHARES[""]), has_level=False)]
    for name, share in _SHARES.items():
        if name:
            deviations = np.append(rates, costs.level) * np.sqrt(share)
            groups.append(_Group(name, _labels(table, name), groups[-1].end, deviations))
    level = _WORKLOAD_LEVEL if costs.sized else max(_WORKLOAD_LEVEL, costs.level)
    own = _Group("workload", _labels(table, "workload"), groups[-1].end, np.array([level]), has_rates=False)
    return (*groups, own)


def _balanced(table: Table, count: int) -> Places:
    """Return the indexes of `count` rows, spread evenly over machines, installations, builds and workloads.

    A machine with few rows keeps all of them: nothing else shows how it differs from others.
    """
    order = np.random.default_rng(0).permutation(len(table))
    # The place of each row among those of its label: the first rows of every label come first.
    names = sorted(_NAMES - {""})
    places = np.empty((len(names), len(table)), dtype=np.intp)
    for name, own in zip(names, places, strict=True):
        _, labels, counts = np.unique(table.groups[name][order].astype(str), return_inverse=True, return_counts=True)
        own[np.argsort(labels, kind="stable")] = np.concatenate([np.arange(rows) for rows in counts])
    return np.sort(order[np.lexsort(np.sort(places, axis=0)[::-1])[:count]])


def _labels(table: Table, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(word) for word in table.groups[name]))


@dataclass(frozen=True)
class _Fit:
    """The n observations of a fit with q parameters.

    Attributes:
        logs: Logarithms of the terms, (n, p); -inf for terms that an observation does not contain.
        y: Logarithms of the observed values, (n,).
        weights: The weights of the observations, (n,).
        noise: The scale of each observation's noise, (n,).
        groups: The groups.
        starts: The index of the first parameter of each row's label in each group, (n, g).
        freedom: The degrees of freedom of the Student t likelihood.
    """

    logs: FloatArray
    y: FloatArray
    weights: FloatArray
    noise: FloatArray
    groups: tuple[_Group, ...]
    starts: Places
    freedom: float

    @classmethod
    def of(cls, groups: tuple[_Group, ...], table: Table, costs: Costs, y: FloatArray, weights: FloatArray) -> "_Fit":
        """Return the observations of rows with values and, if known, timers of sums of some terms."""
        starts = np.column_stack([group.start + group.places(table) * group.width for group in groups])
        parts = [(costs.logarithms, np.arange(len(y)), y, weights, np.full(len(y), _NOISE))]
        for timer, names in costs.timers.items():
            seconds = table.timers.get(timer)
            if seconds is None:
                continue
            with np.errstate(invalid="ignore"):
                is_told = seconds > _LEAST_SHARE * np.exp(y)
            rows = np.flatnonzero(is_told if costs.timed is None else is_told & costs.timed)
            logs = np.where(np.isin(np.array(costs.names), names), costs.logarithms[rows], -np.inf)
            has_terms = np.isfinite(logs).any(axis=1)
            rows, logs = rows[has_terms], logs[has_terms]
            noise = np.full(len(rows), _TIMER_NOISE)
            parts.append((logs, rows, np.log(seconds[rows]), weights[rows] * _TIMER_WEIGHT, noise))
        logs, rows, observed, shares, noise = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        # Use a normal likelihood for few runs: they do not show which of them was disturbed.
        freedom = _FREEDOM if len(y) >= _FEW else _SURELY
        return cls(logs, observed, shares, noise, groups, starts[rows], freedom)

    @cached_property
    def priors(self) -> FloatArray:
        """The standard deviations of all parameters before any measurement, (q,)."""
        return np.concatenate([np.tile(group.deviations, len(group.labels)) for group in self.groups])

    @cached_property
    def has_tail(self) -> npt.NDArray[np.bool_]:
        """Which parameters have heavy tails, (q,)."""
        return np.concatenate([np.full(group.end - group.start, group.name in _TAILED) for group in self.groups])

    def with_noise_at(self, mode: FloatArray) -> "_Fit":
        """Return the observations with the noise that a first fit leaves in each build, which may be 3 % or 30 %."""
        _, off = self._shares(mode)
        runs = self.noise == _NOISE
        if runs.sum() < _FEW:
            return self
        left = 1.4826 * float(np.median(np.abs(off[runs]))) * np.sqrt(runs.sum() / max(1.0, runs.sum() - self._rank))
        noise, builds = self.noise.copy(), self.starts[:, -2]  # workloads are last
        for build in np.unique(builds[runs]):
            own = runs & (builds == build)
            count, usual = int(own.sum()), 1.4826 * float(np.median(np.abs(off[own])))
            noise[own] = np.sqrt((count * usual**2 + _SHRUNK * left**2) / (count + _SHRUNK))
        return replace(self, noise=np.where(runs, np.clip(noise, *_NOISES), self.noise))

    @property
    def _rank(self) -> float:
        """The approximate number of parameters that the observations determine."""
        return min(len(self.y) / 2.0, float(self.logs.shape[1]))

    def mode(self, start: FloatArray) -> FloatArray:
        """Return the parameters, (q,), of the greatest posterior density, starting at `start`.

        Uses reweighted Gauss-Newton steps, damped if they increase the loss (Levenberg & Marquardt).
        """
        x, loss, damping = start, self.loss(start), 0.0
        for _ in range(_STEPS if len(self.y) else 0):
            precision, gradient = self._curvature(x)
            damped = precision + damping * np.diag(self.priors**-2)
            further = x - cho_solve(cho_factor(damped), gradient)
            found = self.loss(further)
            if found > loss:
                damping = max(1.0, 4.0 * damping)
                continue
            done = loss - found < _LEAST_STEP
            x, loss, damping = further, found, damping / 4.0 if damping > 1.0 else 0.0
            if done:
                break
        return x

    def loss(self, x: FloatArray) -> float:
        """Return minus the logarithm of the posterior density at x, (q,), up to a constant."""
        _, off = self._shares(x)
        likelihood = self.weights * (self.freedom + 1.0) / 2.0 * np.log1p((off / self.noise) ** 2 / self.freedom)
        squares = (x / self.priors) ** 2
        tails = (_TAIL + 1.0) * np.log1p(squares / _TAIL)
        return float(likelihood.sum() + 0.5 * np.where(self.has_tail, tails, squares).sum())

    def precision(self, mode: FloatArray) -> FloatArray:
        """Return the precision of the posterior at its mode, (q, q), by the Gauss-Newton approximation."""
        return self._curvature(mode)[0]

    def _curvature(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the precision, (q, q), and the gradient, (q,), at x."""
        shares, off = self._shares(x)
        design = np.column_stack([shares, np.ones(len(off))])
        weights = self.weights * (self.freedom + 1.0) / (self.freedom + (off / self.noise) ** 2) / self.noise**2
        squares = (x / self.priors) ** 2
        prior = np.where(self.has_tail, (_TAIL + 1.0) / (_TAIL + squares), 1.0) / self.priors**2
        precision, gradient = np.diag(prior), x * prior
        for rows, into, of in self._blocks:
            weighted = design[rows] * weights[rows, None]
            precision[np.ix_(into, into)] += (design[rows].T @ weighted)[np.ix_(of, of)]
            gradient[into] += (weighted.T @ off[rows])[of]
        return precision, gradient

    @cached_property
    def _blocks(self) -> list[tuple[Places, Places, Places]]:
        """The rows with equal labels: their indexes, their parameters, and the column of the design of each of these.

        All rates of a row have the same column, its share of the term, and all its levels have the last one.
        """
        p = self.logs.shape[1]
        keys, places = np.unique(self.starts, axis=0, return_inverse=True)
        columns = [np.arange(p + 1)[p * (not one.has_rates) : p + one.has_level] for one in self.groups]
        of = np.concatenate(columns)
        return [
            (
                np.flatnonzero(places.reshape(-1) == at),
                np.concatenate([start + np.arange(len(own)) for start, own in zip(key, columns, strict=True)]),
                of,
            )
            for at, key in enumerate(keys)
        ]

    def _shares(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the share of each term, (n, p), and the residuals of the model, (n,)."""
        terms, levels = self.logs, np.zeros(len(self.y))
        for group, starts in zip(self.groups, self.starts.T, strict=True):
            own = x[starts[:, None] + np.arange(group.width)]
            terms, levels = terms + group.rates(own), levels + group.level(own)
        sums, shares = _log_sum(terms)
        return shares, sums + levels - self.y


def _log_sum(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the sum of terms, (n,), and their shares, (n, p), from their logarithms, (n, p)."""
    top = logs.max(axis=1)
    costs = np.exp(logs - top[:, None])
    sums = costs.sum(axis=1)
    return np.log(sums) + top, costs / sums[:, None]


def _pairs(rng: np.random.Generator, rows: int, count: int) -> FloatArray:
    """Return standard normal draws, (`rows`, `count`), in pairs of opposite sign, so that their mean is exact."""
    half = rng.standard_normal((rows, count // 2))
    return np.hstack([half, -half])
