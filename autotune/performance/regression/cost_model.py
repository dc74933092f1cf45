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
# specific to a build: an installation on a machine.
_SHARES: Mapping[str, float] = {"": 0.25, "machine": 0.35, "installation": 0.3, "build": 0.3}
_TAILED = frozenset({"installation", "build"})
_TAIL = 2.0  # degrees of freedom of the parts of these and of workloads
_WORKLOAD_LEVEL = 0.5  # a workload's time differs from its size's: the number of iterations is unknown beforehand
_NOISE, _FREEDOM = 0.12, 4.0
_NOISES, _FEW = (0.02, 0.3), 8
_SHRUNK = 5.0  # the rows of a build that count as if its noise were that of all
_SURELY = 1e6  # degrees of freedom at which Student's t is almost a normal distribution
_TIMER_NOISE, _TIMER_WEIGHT = 0.25, 0.3
# Ignore timers below this share of the run: rounding dominates them.
_LEAST_SHARE = 0.003
_STEPS, _LEAST_STEP = 30, 0.01
# Draw this many of more rows at random: further rows do not determine a few rates better.
_MOST = 2_500
DRAWS = 64
"""The number of draws of the rates that estimate the uncertainty of a prediction."""


@dataclass(frozen=True)
class Group:
    """A grouping of rows that share effects: by machine, installation or build, as `name` says, with known `labels`."""

    name: str
    labels: tuple[str, ...]

    def places(self, words: npt.NDArray[np.object_]) -> Places:
        """Return the index of each word, (n,); -1 for a new word."""
        index = {label: place for place, label in enumerate(self.labels)}
        return np.array([index.get(str(word), -1) for word in words], dtype=np.intp)


@dataclass(frozen=True)
class CostModel:
    """The posterior of q parameters: their `mode`, (q,), and the Cholesky factor, (q, q), of its precision.

    The parameters are, in this order: the common rates of the terms `names`, (p,); for each of `groups` its rates,
    (l, p), and levels, (l,); and the levels of workloads. `deviations`, (p,), are the standard deviations that the
    terms state, and `level` is that of the common level. A workload has a level of its own unless the terms are
    `sized`. `sign` is -1 if the values are the inverse of the sum.
    """

    names: tuple[str, ...]
    deviations: FloatArray
    level: float
    groups: tuple[Group, ...]
    workloads: Group
    mode: FloatArray
    factor: FloatArray
    sign: float = 1.0
    sized: bool = False

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
            whole = np.sort(np.random.default_rng(0).permutation(whole)[:_MOST])
        rows, costs = table.at(whole), table.costs.at(whole)
        groups = tuple(_group(name, rows) for name in _SHARES if name)
        workloads = _group("workload", rows)
        deviations = np.array([costs.doubts[name] for name in costs.names])
        sign = -1.0 if costs.inverse else 1.0
        known = cls(
            costs.names, deviations, costs.level, groups, workloads, np.zeros(0), np.zeros((0, 0)), sign, costs.sized
        )
        fit = _Fit.of(known, rows, costs, sign * y[whole], weights[whole])
        start = fit.mode(np.zeros(len(known.priors)))
        fit = fit.with_noise_at(start)
        mode = fit.mode(start)
        factor = cholesky(fit.precision(mode), lower=True)
        return replace(known, mode=mode, factor=factor)

    @property
    def priors(self) -> FloatArray:
        """The standard deviations of all parameters before any measurement, (q,)."""
        parts = [self.deviations * np.sqrt(_SHARES[""])]
        for group in self.groups:
            share = np.sqrt(_SHARES[group.name])
            parts += [
                np.tile(self.deviations * share, len(group.labels)),
                np.full(len(group.labels), self.level * share),
            ]
        return np.concatenate([*parts, np.full(len(self.workloads.labels), self.workload_level)])

    @property
    def has_tail(self) -> npt.NDArray[np.bool_]:
        """Which parameters have heavy tails, (q,): those of installations, builds and workloads."""
        each = len(self.names) + 1
        parts = [np.zeros(len(self.names), dtype=bool)]
        parts += [np.full(each * len(group.labels), group.name in _TAILED) for group in self.groups]
        return np.concatenate([*parts, np.ones(len(self.workloads.labels), dtype=bool)])

    @property
    def workload_level(self) -> float:
        """The standard deviation of a workload's level; if its work is unknown, that of all terms together."""
        return _WORKLOAD_LEVEL if self.sized else max(_WORKLOAD_LEVEL, self.level)

    def draws(self, table: Table) -> FloatArray:
        """Return logarithms of the cases, (`DRAWS`, m), one draw of all rates each; NaN for cases with an unknown term.

        Rates of new machines and builds are drawn from their prior, so a configuration that depends on an unknown
        property of a build (messages between its nodes) is uncertain, and slower in the mean of the draws. Rates that
        measurements determine are drawn from the posterior, by their linear effect, which keeps measured sums.
        """
        assert table.costs is not None
        rng = np.random.default_rng(0)
        away = solve_triangular(self.factor.T, _pairs(rng, len(self.mode), DRAWS), lower=False)
        at = len(self.names)
        terms, levels = table.costs.logarithms + self.mode[:at], np.zeros((DRAWS, 1))
        everywhere = np.zeros(1, dtype=np.intp)
        known: list[tuple[FloatArray, Places]] = [(away[:at].T[:, None, :], everywhere)]
        new: list[tuple[FloatArray, FloatArray]] = []
        for group in self.groups:
            size, share = len(group.labels), np.sqrt(_SHARES[group.name])
            places, ends = group.places(table.groups[group.name]), at + size * (len(self.names) + 1)
            terms = terms + self._rates(self.mode, at, size)[places]
            known.append((self._rates(away, at, size).transpose(2, 0, 1), places))
            is_new = (places < 0).astype(float)[:, None]
            new.append((_pairs(rng, len(self.names), DRAWS).T * self.deviations * share, is_new))
            own = (self.mode[:, None] + away)[ends - size : ends]
            levels = levels + np.concatenate([own, _pairs(rng, 1, DRAWS) * self.level * share])[places].T
            at = ends
        own = (self.mode[:, None] + away)[at:]
        places = self.workloads.places(table.groups["workload"])
        levels = levels + np.concatenate([own, _pairs(rng, 1, DRAWS) * self.workload_level])[places].T
        sums = np.empty((DRAWS, len(table)))
        for draw in range(DRAWS):  # one at a time: all draws together would need gigabytes for many cases
            drawn = sum((rates[draw] * is_new for rates, is_new in new if is_new.any()), np.zeros(1))
            moved = sum((rates[draw][places] for rates, places in known), np.zeros(1))
            logarithms, shares = _log_sum(terms + drawn)
            sums[draw] = logarithms + (shares * moved).sum(axis=1) + levels[draw]
        return self.sign * sums

    def _rates(self, parameters: FloatArray, at: int, size: int) -> FloatArray:
        """Return the rates of a group's `size` labels, (size + 1, p, ...); the last are 0, for a new label."""
        p = len(self.names)
        rates = parameters[at : at + size * p].reshape(size, p, *parameters.shape[1:])
        return np.concatenate([rates, np.zeros((1, *rates.shape[1:]))])

    def predict(self, table: Table) -> FloatArray:
        """Return the expected logarithms, (m,): the mean of the draws."""
        means: FloatArray = self.draws(table).mean(axis=0)
        return means

    def slowness(self, table: Table) -> float:
        """Return how many times slower the cases are than with a usual build of their machine, at the mode.

        Of rates, how many times less. The result is the median over cases.
        """
        assert table.costs is not None
        own, _ = _log_sum(self._at_mode(table))
        usual, _ = _log_sum(self._at_mode(table, ("machine",)))
        at = len(self.names)
        for group in self.groups:
            at += (size := len(group.labels)) * (len(self.names) + 1)
            if group.name == "build":
                own += np.append(self.mode[at - size : at], 0.0)[group.places(table.groups["build"])]
        return float(np.exp(np.nanmedian(own - usual)))

    def _at_mode(self, table: Table, names: Collection[str] = tuple(_SHARES)) -> FloatArray:
        """Return the logarithms of the terms, (m, p), with the rates of the groups with these names, without levels."""
        assert table.costs is not None
        at = len(self.names)
        logs = table.costs.logarithms + self.mode[:at]
        for group in self.groups:
            size = len(group.labels)
            if group.name in names:
                logs = logs + self._rates(self.mode, at, size)[group.places(table.groups[group.name])]
            at += size * (len(self.names) + 1)
        return logs


@dataclass(frozen=True)
class _Fit:
    """The n observations of a fit with q parameters.

    Attributes:
        logs: Logarithms of the terms, (n, p); -inf for terms that an observation does not contain.
        y: Logarithms of the observed values, (n,).
        weights: The weights of the observations, (n,).
        noise: The scale of each observation's noise, (n,).
        rates: For each row and each of its groups, (n, g), the index of the group's first rate.
        levels: The indexes of each row's levels, (n, l).
        priors: Standard deviations of the parameters, (q,).
        has_tail: Which parameters have heavy tails, (q,).
        freedom: The degrees of freedom of the Student t likelihood.
    """

    logs: FloatArray
    y: FloatArray
    weights: FloatArray
    noise: FloatArray
    rates: Places
    levels: Places
    priors: FloatArray
    has_tail: npt.NDArray[np.bool_]
    freedom: float = _FREEDOM

    @classmethod
    def of(cls, model: CostModel, table: Table, costs: Costs, y: FloatArray, weights: FloatArray) -> "_Fit":
        logs, p, at = costs.logarithms, len(costs.names), len(costs.names)
        rates, levels = [np.zeros(len(y), dtype=np.intp)], []
        for group in model.groups:
            places = group.places(table.groups[group.name])
            rates.append(at + places * p)
            levels.append(at + len(group.labels) * p + places)
            at += len(group.labels) * (p + 1)
        levels.append(at + model.workloads.places(table.groups["workload"]))
        # Use a normal likelihood for few runs: they do not show which of them was disturbed.
        freedom = _FREEDOM if len(y) >= _FEW else _SURELY
        whole = cls(
            logs,
            y,
            weights,
            np.full(len(y), _NOISE),
            np.column_stack(rates),
            np.column_stack(levels),
            model.priors,
            model.has_tail,
            freedom,
        )
        return whole._with_timers(table, costs)

    def _with_timers(self, table: Table, costs: Costs) -> "_Fit":
        """Add the rows' timers as observations of the sums of their terms."""
        parts = [(self.logs, np.arange(len(self.y)), self.y, self.weights, self.noise)]
        for timer, names in costs.timers.items():
            seconds = table.timers.get(timer)
            if seconds is None:
                continue
            with np.errstate(invalid="ignore"):
                is_told = seconds > _LEAST_SHARE * np.exp(self.y)
            rows = np.flatnonzero(is_told if costs.timed is None else is_told & costs.timed)
            held = np.isin(np.array(costs.names), names)
            logs = np.where(held, self.logs[rows], -np.inf)
            rows, logs = rows[np.isfinite(logs).any(axis=1)], logs[np.isfinite(logs).any(axis=1)]
            parts.append(
                (
                    logs,
                    rows,
                    np.log(seconds[rows]),
                    self.weights[rows] * _TIMER_WEIGHT,
                    np.full(len(rows), _TIMER_NOISE),
                )
            )
        logs, rows, y, weights, noise = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return replace(
            self, logs=logs, y=y, weights=weights, noise=noise, rates=self.rates[rows], levels=self.levels[rows]
        )

    def with_noise_at(self, mode: FloatArray) -> "_Fit":
        """Return the observations with the noise that a first fit leaves in each build, which may be 3 % or 30 %."""
        _, off = self._shares(mode)
        runs = self.noise == _NOISE
        if runs.sum() < _FEW:
            return self
        left = 1.4826 * float(np.median(np.abs(off[runs]))) * np.sqrt(runs.sum() / max(1.0, runs.sum() - self._rank))
        noise, builds = self.noise.copy(), self.rates[:, -1]
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
        """The rows with equal groups: their indexes, their parameters, and the column of the design of each of these.

        All rates of a row have the same column, its share of the term, and all its levels have the last one.
        """
        p = self.logs.shape[1]
        keys, places = np.unique(np.column_stack([self.rates, self.levels]), axis=0, return_inverse=True)
        count = self.rates.shape[1]
        of = np.concatenate([np.tile(np.arange(p), count), np.full(self.levels.shape[1], p)])
        return [
            (
                np.flatnonzero(places.reshape(-1) == at),
                np.append((key[:count, None] + np.arange(p)).ravel(), key[count:]),
                of,
            )
            for at, key in enumerate(keys)
        ]

    def _shares(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the share of each term, (n, p), and the residuals of the model, (n,)."""
        terms = self.logs.copy()
        for starts in self.rates.T:
            terms += x[starts[:, None] + np.arange(self.logs.shape[1])]
        top = terms.max(axis=1)
        costs = np.exp(terms - top[:, None])
        sums = costs.sum(axis=1)
        off = np.log(sums) + top + x[self.levels].sum(axis=1) - self.y
        return costs / sums[:, None], off


def _group(name: str, table: Table) -> Group:
    return Group(name, tuple(dict.fromkeys(str(word) for word in table.groups[name])))


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
