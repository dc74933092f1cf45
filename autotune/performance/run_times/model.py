"""The model of run times: predicts the time of a configuration that has not run, with its uncertainty.

It mixes a sum of costs with unknown rates, if the program has such terms, a log-linear model, both with and without
boosted trees on their residuals, and a random forest. To choose the mixture and the width of intervals, it hides rows
that are as new to the other rows as the predicted setting is to all rows.

A bound is used if the model, fitted without bounds, predicts a value on its wrong side; it then counts as the mean of
the predicted values beyond it (Hutter, Hoos & Leyton-Brown, 2011). Failures are left out: they say nothing about times.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from autotune.performance.regression.cost_model import DRAWS, CostModel
from autotune.performance.regression.learners import Forest, LogLinear, Trees
from autotune.performance.regression.prediction import CONFIDENCE, WIDEST, Estimate, deviations_within
from autotune.performance.regression.table import DesignMatrix, Places, Reader, Table, Words, informative_columns
from autotune.performance.run_times.novelty import (
    Novelty,
    by_setting,
    doubts,
    doubts_of,
    folds,
    installation,
    is_like_nothing,
    novelty,
)
from autotune.records.measurement import Measured, Setting, hardware
from autotune.statistics.gaussian_process import above_bound
from autotune.statistics.one_thread import one_thread
from objectives.shapes.shape import Shape
from spaces.expressions.quantities import Columns, FloatArray, column_of

_LEAST = 6
# After a few values of its own, a setting's times are known within this factor, or not at all.
_FEW, _KNOWN_WITHIN = 3, 3.0
_ENOUGH = 10  # a setting with this number of values of its own is known as well as others
# Hide at most this many rows: more take long and do not improve the calibration.
_HIDDEN_FROM = 1_000
_LEAST_LABELS = 2  # the errors of one label do not show how labels differ
_LEAST_SHARE = 0.15  # a fit to a smaller share of the rows says little about a fit to all
_BLOCK = 16_384
# A cost model, the same with trees that correct it, a log-linear model, that with trees, and a random forest.
_MEMBERS = 5
_COSTS = 2  # the first members are cost models
_COSTS_ALONE = np.eye(_MEMBERS)[0]
_PARTS = 4  # weights are quarters: finer weights would fit noise
_HUBER = 0.2
_SURE = NormalDist().cdf(1.0)
_LEAST_OFF, _USUAL = 0.02, 0.1
# The absolute errors of a model that states its uncertainty rightly, in standard deviations.
_CALIBRATED = np.array([deviations_within(share) for share in (np.arange(100) + 0.5) / 100])
# The groups that were hidden to estimate a model's errors, in words for users.
_UNSEEN = {
    "machine": "machines",
    "installation": "builds",
    "workload": "workloads",
    "nodes": "numbers of nodes",
    "setting": "machines or workloads",
}
_SLOW, _UNKNOWN_WORK = 1.5, 2.0  # with so uncertain a level, costs do not tell times


@dataclass(frozen=True)
class Predicted:
    """The members' predictions for m cases, (m, 5), NaN for none, mixed by `weights`, (5,).

    `draws`, (draws, m), are those of the cost model around its mean; 0 without one.
    """

    members: FloatArray
    draws: FloatArray
    weights: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The expected logarithms, (m,); NaN where no member of the mixture has a prediction."""
        mean: FloatArray = (np.nan_to_num(self.members) * self._shares).sum(axis=1)
        return mean

    @property
    def apart(self) -> FloatArray:
        """The stated standard deviations, (m,), without the usual error of all cases."""
        squares = (np.nan_to_num(self.members - self.mean[:, None]) ** 2 * self._shares).sum(axis=1)
        apart: FloatArray = np.hypot(self.draws.std(axis=0) * self.weights[:_COSTS].sum(), np.sqrt(squares))
        return apart

    @property
    def _shares(self) -> FloatArray:
        """The weights of the members that have a prediction, (m, 5); NaN where none of the mixture has one."""
        weights = self.weights * ~np.isnan(self.members)
        with np.errstate(invalid="ignore"):
            shares: FloatArray = weights / weights.sum(axis=1, keepdims=True)
        return shares

    def at(self, places: Places) -> "Predicted":
        """Return the predictions for the cases at the indexes `places`."""
        return Predicted(self.members[places], self.draws[:, places], self.weights)

    def beyond(self, reference: "Predicted") -> "Predicted":
        """Return the logarithms of the ratios to other cases, or to one, in which common errors cancel."""
        return Predicted(self.members - reference.members, self.draws - reference.draws, self.weights)


@dataclass(frozen=True)
class _Learners:
    """The members of a mixture with `weights`, (5,); those without weight are not fitted."""

    weights: FloatArray
    bases: tuple[CostModel | None, LogLinear | None]
    trees: tuple[Trees | None, Trees | None]
    forest: Forest | None

    @classmethod
    def fit(
        cls, table: Table, y: FloatArray, row_weights: FloatArray, weights: FloatArray, seen: frozenset[str]
    ) -> "_Learners":
        """Fit to `y`, (n,), the logarithms of values, of cases with `row_weights`, (n,).

        Trees know only the columns `seen`: of a word that was never seen, linear models predict the mean over others.
        """
        known_columns = table.only(seen)
        costs = CostModel.fit(table, y, row_weights) if weights[:2].any() else None
        linear = LogLinear.fit(table, y, row_weights) if weights[2:4].any() else None

        def trees(base: CostModel | LogLinear | None, weight: float) -> Trees | None:
            if base is None or not weight:
                return None
            residuals = y - base.predict(table)
            known = np.flatnonzero(~np.isnan(residuals))
            return Trees.fit(known_columns.at(known), residuals[known], row_weights[known])

        forest = Forest.fit(known_columns, y, row_weights) if weights[4] else None
        return cls(weights, (costs, linear), (trees(costs, weights[1]), trees(linear, weights[3])), forest)

    def predict(self, table: Table) -> Predicted:
        """Return the predictions of m cases."""
        members, draws = np.full((len(table), _MEMBERS), np.nan), np.zeros((DRAWS, len(table)))
        for place, (base, trees) in enumerate(zip(self.bases, self.trees, strict=True)):
            if base is None:
                continue
            if isinstance(base, CostModel):
                draws = base.draws(table)
                mean = draws.mean(axis=0)
                draws = np.nan_to_num(draws - mean)
            else:
                mean = base.predict(table)
            members[:, 2 * place] = mean
            if trees is not None:
                members[:, 2 * place + 1] = mean + trees.predict(table)
        if self.forest is not None:
            members[:, -1] = self.forest.predict(table)
        return Predicted(members, draws, self.weights)


@dataclass(frozen=True)
class Width:
    """The width of intervals: `factor` times the root of (usual error^2 + stated deviation^2), all of logarithms.

    Split conformal, normalised (Lei et al., JASA 113, 2018).
    """

    usual: float
    factor: float

    @classmethod
    def of(cls, off: FloatArray, apart: FloatArray, labels: Words) -> "Width":
        """Calibrate by the errors, (n,), of hidden rows, the stated deviations, (n,), there, and their labels, (n,).

        The factor covers 90 % of the rows, where each label counts once: its rows are not independent, and the setting
        to predict has a label of its own. One further label has the errors of a calibrated spread, so that a few labels
        hardly change the uncertainty that a model states. (Conformal by group: Dunn, Wasserman & Ramdas, JASA 118,
        2023.)
        """
        usual = min(_USUAL, max(_LEAST_OFF, float(np.median(np.abs(off))))) if len(off) else _USUAL
        scores = np.append(np.abs(off) / np.hypot(usual, apart), _CALIBRATED)
        _, places, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
        weights = np.append(1.0 / counts[places], np.full(len(_CALIBRATED), 1.0 / len(_CALIBRATED)))
        order = np.argsort(scores)
        ends = np.cumsum(weights[order])
        return cls(usual, float(scores[order][min(int(np.searchsorted(ends / ends[-1], CONFIDENCE)), len(order) - 1)]))

    def half(self, apart: FloatArray) -> FloatArray:
        """Return half-widths, (m,), for predictions with these stated deviations, (m,)."""
        return self.factor * np.hypot(self.usual, apart)


_STATED = Width(_USUAL, deviations_within(CONFIDENCE))
"""The width that trusts a cost model's own uncertainty."""


@dataclass(frozen=True)
class _Sample:
    """The n rows that a model is fitted to: their table, the logarithms of their values, (n,), and weights, (n,).

    `seen` are the columns in which the setting has no new word.
    """

    table: Table
    y: FloatArray
    weights: FloatArray
    novelty: Novelty
    seen: frozenset[str]

    def at(self, places: Places) -> "_Sample":
        """Return the rows at the indexes `places`, (m,)."""
        new = replace(self.novelty, labels=self.novelty.labels[places])
        return _Sample(self.table.at(places), self.y[places], self.weights[places], new, self.seen)

    def learners(self, weights: FloatArray) -> _Learners:
        """Fit the members of a mixture with `weights`, (5,)."""
        return _Learners.fit(self.table, self.y, self.weights, weights, self.seen)


@dataclass(frozen=True)
class _Hidden:
    """Predictions of h rows of a `sample` that were hidden from the fits, and the folds in which they were, (h,).

    With `as_asked`, they are as new as the setting; otherwise labels were too large to hide. `alike`, (h,), are the
    rows of labels of which some stayed visible, if the setting has rows itself.
    """

    sample: _Sample
    predicted: Predicted
    fold: Places
    alike: npt.NDArray[np.bool_]
    as_asked: bool

    @classmethod
    def of(cls, sample: _Sample, available: FloatArray, rng: np.random.Generator) -> "_Hidden":
        """Hide rows that are as new to the others as the setting is to all, and predict them by `available` members.

        Of each hidden label, as many rows stay visible as the setting has itself, at most half. If labels are too large
        to hide, single rows are hidden.
        """
        n, novelty = len(sample.y), sample.novelty
        fold = folds(novelty, rng)
        few = int(novelty.own.sum()) if (fold < 0).any() else 0
        members, draws = np.full((n, _MEMBERS), np.nan), np.zeros((DRAWS, n))
        alike = np.ones(n, dtype=bool)
        for out in range(int(fold.max()) + 1):
            hidden = np.flatnonzero(fold == out)
            kept = _places_to_keep(novelty.labels, hidden, few, rng)
            test = np.setdiff1d(hidden, kept)
            train = np.setdiff1d(np.arange(n), test)
            if len(test) and len(train) >= max(min(_LEAST, n - 1), _LEAST_SHARE * n):
                found = sample.at(train).learners(available).predict(sample.table.at(test))
                members[test], draws[:, test] = found.members, found.draws
                alike[test] = not few or np.isin(novelty.labels[test], novelty.labels[kept])
        judged = np.flatnonzero(~np.isnan(members).all(axis=1))
        if not len(judged) and len(set(novelty.labels.tolist())) > 1:
            single = replace(novelty, labels=np.full(n, "", dtype=object), label="")
            return replace(cls.of(replace(sample, novelty=single), available, rng), as_asked=novelty.respect == "")
        predicted = Predicted(members[judged], draws[:, judged], available)
        return cls(sample.at(judged), predicted, fold[judged], alike[judged], novelty.is_hidden_alike)

    def mixture(self) -> FloatArray:
        """Return the weights of members, (5,), with the least error on hidden rows, in quarters.

        Half of the error, by Huber's loss, is that of the order within a setting. Labels count equally. With a cost
        model, its weight is the greatest whose error is within a standard error of the least, so that with few labels
        it stays almost alone (Breiman et al. 1984); of few labels the standard error is itself uncertain.
        """
        available = self.predicted.weights
        members = np.flatnonzero(available * ~np.isnan(self.predicted.members).all(axis=0))
        parts = [one for one in itertools.product(range(_PARTS, -1, -1), repeat=len(members)) if sum(one) == _PARTS]
        grid: FloatArray = np.zeros((len(parts), len(available)))
        grid[:, members] = np.array(parts) / _PARTS
        losses = self._losses(grid)
        means = losses.mean(axis=1)
        best = int(means.argmin())
        if not available[0]:
            return np.asarray(grid[best])
        further, labels = losses - losses[best], losses.shape[1]
        if labels < 2:
            return np.asarray(_COSTS_ALONE)
        error = further.std(axis=1, ddof=1) / np.sqrt(labels)
        near = np.flatnonzero(further.mean(axis=1) <= stdtrit(labels - 1, _SURE) * error)
        return np.asarray(grid[max(near.tolist(), key=lambda place: (grid[place, 0], -means[place]))])

    def _losses(self, mixtures: FloatArray) -> FloatArray:
        """Return the mean loss of each mixture, (k, 5), on each label, (k, l).

        If nothing is new and rows were hidden singly, each row counts as a label of its own: it is as new as the rows
        of the setting that are asked for.
        """
        new = self.sample.novelty
        is_single = not new.respect and new.hides_single_rows
        words = (np.arange(len(self.sample.y)) if is_single else new.labels).astype(str)
        of, labels = (
            np.unique(groups, return_inverse=True)[1]
            for groups in (self.sample.table.groups["setting"].astype(str), words)
        )
        weights = self.sample.weights
        losses = []
        for mixture in mixtures:
            off = np.nan_to_num(replace(self.predicted, weights=mixture).mean - self.sample.y)
            within = off - (np.bincount(of, off * weights) / np.bincount(of, weights))[of]
            both = (_huber(off) + _huber(within)) / 2.0
            losses.append(np.bincount(labels, both * weights) / np.bincount(labels, weights))
        return np.round(losses, 5)

    def by(self, weights: FloatArray) -> "_Hidden":
        """Return the rows that a mixture with `weights`, (5,), predicts, as it predicts them."""
        predicted = replace(self.predicted, weights=weights)
        return replace(self, predicted=predicted)._at(np.flatnonzero(~np.isnan(predicted.mean)))

    def width(self) -> Width:
        """Return the width of intervals of values.

        Of a label with a single row nothing stays visible, so the model states a much wider uncertainty there than of a
        setting with values of its own. Such labels do not count for it.
        """
        if not self.as_asked and self.predicted.weights[:_COSTS].any():
            return _STATED
        alike = self._at(np.flatnonzero(self.alike))
        used = alike if len(set(alike.sample.novelty.labels)) >= _LEAST_LABELS else self
        return Width.of(used.predicted.mean - used.sample.y, used.predicted.apart, used.sample.novelty.labels)

    def _at(self, places: Places) -> "_Hidden":
        """Return the rows at the indexes `places`."""
        sample, predicted = self.sample.at(places), self.predicted.at(places)
        return replace(self, sample=sample, predicted=predicted, fold=self.fold[places], alike=self.alike[places])

    def ratio_width(self, rng: np.random.Generator) -> Width | None:
        """Return the width of intervals of ratios within a setting, from pairs of rows that were hidden together.

        The result is None if no two rows of a setting were hidden together.
        """
        settings, labels = self.sample.table.groups["setting"], self.sample.novelty.labels
        keys = np.array([f"{setting} {fold}" for setting, fold in zip(settings, self.fold, strict=True)])
        order = rng.permutation(len(keys))
        order = order[np.argsort(keys[order], kind="stable")]
        alike = keys[order][1:] == keys[order][:-1]
        first, second = order[1:][alike], order[:-1][alike]
        if not len(first):
            return None
        ratios = self.predicted.at(first).beyond(self.predicted.at(second))
        return Width.of(ratios.mean - (self.sample.y[first] - self.sample.y[second]), ratios.apart, labels[first])


def _places_to_keep(labels: Words, hidden: Places, few: int, rng: np.random.Generator) -> Places:
    kept = [np.zeros(0, dtype=np.intp)]
    for label in dict.fromkeys(labels[hidden].tolist()) if few else ():
        rows = rng.permutation(hidden[labels[hidden] == label])
        kept.append(rows[: min(few, len(rows) // 2)])
    return np.concatenate(kept)


def _huber(off: FloatArray) -> FloatArray:
    losses: FloatArray = _HUBER**2 * (np.sqrt(1.0 + (off / _HUBER) ** 2) - 1.0)
    return losses


@dataclass(frozen=True)
class RunTimes:
    """The expected times of a program in one setting.

    Its main attributes: `doubts` are sentences on how the setting lies outside the measurements; with `abstains` it
    lies too far outside to predict a time; `grounds` says what the model was fitted on; intervals contain a `share` of
    values; `own` is the number of measured values of the setting, in the respect in which it is new.
    """

    setting: Setting
    reader: Reader
    names: frozenset[str]
    known: Columns
    reads: frozenset[str]
    learners: _Learners
    width: Width
    ratio_width: Width | None
    doubts: tuple[str, ...]
    abstains: bool
    grounds: str
    own: int
    share: float = CONFIDENCE

    @classmethod
    def fit(
        cls, measured: Sequence[Measured], rules: Sequence[str], setting: Setting, shape: Shape | None = None
    ) -> "RunTimes | None":
        """Fit to the measurements of the setting's program by its metric, for a space with `rules` and a `shape`.

        The result is None with fewer than six values, unless the program's costs are known.
        """
        with one_thread():
            return cls._fitted(measured, rules, setting, shape)

    @classmethod
    def _fitted(
        cls, measured: Sequence[Measured], rules: Sequence[str], setting: Setting, shape: Shape | None
    ) -> "RunTimes | None":
        setting, *known = _by_hardware([setting, *(row.setting for row in measured)])
        rows = [replace(row, setting=one) for row, one in zip(measured, known, strict=True) if _is_of(row, setting)]
        values = [row for row in rows if row.value is not None]
        reader = Reader(setting.program, tuple(rules), shape)
        if len(values) < _LEAST:
            return cls._of_costs(values, reader, setting)
        return _fit(values, [row for row in rows if row.value is None], reader, setting)

    @classmethod
    def _of_costs(cls, values: Sequence[Measured], reader: Reader, setting: Setting) -> "RunTimes | None":
        """Return the model from the program's costs alone, with rates adjusted to a few values."""
        asked = _table_of_setting(reader, setting)
        if asked.costs is None:
            return None
        cases = DesignMatrix.from_measurements(values)
        table = _read(reader, values, cases) if values else asked.at(np.zeros(0, dtype=np.intp))
        count = f"{len(values)} of its values {'is' if len(values) == 1 else 'are'} known"
        doubt = f"only {count}" if values else "nothing of the program was measured"
        return cls(
            setting=setting,
            reader=reader,
            names=frozenset(asked.columns),
            known=cases.configuration,
            reads=asked.costs.reads,
            learners=_Learners.fit(table, _logs(values), _weights(values), _COSTS_ALONE, frozenset()),
            width=_STATED,
            ratio_width=_STATED,
            doubts=(f"{doubt}: predicted from what is known of its costs",),
            abstains=False,
            grounds=f"what is known of the costs of {setting.program}{f'; {count}' if values else ''}",
            own=int(novelty([row.setting for row in values], setting).own.sum()),
        )

    @property
    def rests_on_costs(self) -> bool:
        """Whether it predicts by the program's costs alone."""
        return not self.learners.weights[1:].any()

    @property
    def widest(self) -> float:
        """The factor between the ends of an interval beyond which a value counts as not known."""
        return _KNOWN_WITHIN if self.own >= _FEW else WIDEST

    @property
    def varied(self) -> frozenset[str]:
        """The parameters whose effect it predicts: those of the costs and, unless it rests on these, those that varied.

        "Unset" does not count as a value: a table may lack the column.
        """
        if self.rests_on_costs:
            return self.reads
        stated = {name: {str(value) for value in column.tolist()} for name, column in self.known.items()}
        return self.reads | {name for name, values in stated.items() if len(values - {"None", "nan"}) > 1}

    @property
    def without_measurements(self) -> "RunTimes | None":
        """The model by what is known of the program's costs before any measurement; None if nothing is known."""
        return self._of_costs((), self.reader, self.setting) if self.known else None

    def estimate(self, cases: DesignMatrix) -> Estimate:
        """Return the expected logarithms of the metric for cases of the setting, (n,)."""
        parts = list(self._predict(cases))
        means, halves = [part.mean for part in parts], [self.width.half(part.apart) for part in parts]
        return Estimate(np.concatenate(means), np.concatenate(halves), self.share, self.widest)

    def off(self, cases: DesignMatrix) -> FloatArray | None:
        """Return directions in which the logarithms of cases, (n,), may err together, (k, n), in standard deviations.

        The result is None without a cost model in the mixture, which alone knows the common errors of configurations.
        """
        weight = float(self.learners.weights[:_COSTS].sum())
        if not weight:
            return None
        draws = weight * np.hstack([part.draws for part in self._predict(cases)])
        scaled: FloatArray = draws * (self.width.factor / deviations_within(self.share) / np.sqrt(len(draws)))
        return scaled

    def ratio(self, cases: DesignMatrix, reference: DesignMatrix) -> Estimate:
        """Return the logarithms, (n,), of the ratio of each case to the reference, one case of the setting.

        Errors that all cases of the setting share cancel, so the intervals are narrower than those of the values.
        """
        (other,) = self._predict(reference)
        means, halves = [], []
        for part in self._predict(cases):
            both = part.beyond(other)
            # Without pairs to calibrate by, treat the two errors as independent.
            width = self.ratio_width or Width(self.width.usual, np.sqrt(2.0) * self.width.factor)
            means.append(both.mean)
            halves.append(width.half(both.apart))
        return Estimate(np.concatenate(means), np.concatenate(halves), self.share)

    def doubts_of(self, cases: DesignMatrix) -> tuple[str, ...]:
        """Return sentences on parameters of cases that lie outside the measurements."""
        return doubts_of(self.known, cases)

    def _predict(self, cases: DesignMatrix) -> Iterator[Predicted]:
        """Yield the predictions of cases, in blocks: all draws of many cases would need gigabytes."""
        table = _table(self.reader, [self.setting] * len(cases), cases).only(self.names)
        for start in range(0, max(1, len(table)), _BLOCK):
            yield self.learners.predict(table.at(np.arange(start, min(start + _BLOCK, len(table)))))


def _fit(rows: list[Measured], others: Sequence[Measured], reader: Reader, setting: Setting) -> RunTimes:
    """Fit a model to `rows` with values; of the `others` without one, it uses those that have a bound."""
    cases = DesignMatrix.from_measurements(rows)
    table, asked = _read(reader, rows, cases), _table_of_setting(reader, setting)
    costs = table.costs if asked.costs is not None else None
    unseen = tuple(
        name
        for name, column in table.words.items()
        if name not in cases.configuration and asked.words.get(name, (None,))[0] not in column.tolist()
    )
    names = informative_columns(table, frozenset(cases.machine) - {"nodes"} - set(cases.configuration))
    if _facts_distinguish_workloads(rows):
        names -= {"workload"}
    new = novelty([row.setting for row in rows], setting)
    sample = _Sample(replace(table, costs=costs).only(names), _logs(rows), _weights(rows), new, names - set(unseen))
    rng = np.random.default_rng(0)
    places = _places_to_hide(new, rng)
    part = sample if len(places) == len(rows) else sample.at(places)
    available = np.ones(_MEMBERS)
    knows_work = costs is not None and costs.level < _UNKNOWN_WORK
    if costs is None:
        available[:_COSTS] = 0.0
    elif knows_work and not new.is_hidden_alike:
        # Residuals elsewhere say nothing of the setting that can be checked.
        available = _COSTS_ALONE
    hidden = _Hidden.of(part, available, rng)
    may_mix = len(hidden.sample.y) and (hidden.as_asked or not knows_work)
    weights = hidden.mixture() if may_mix or costs is None else _COSTS_ALONE
    judged = hidden.by(weights)
    learners = sample.learners(weights)
    share = CONFIDENCE if new.own.sum() >= _ENOUGH else promised_share(new.others)
    model = RunTimes(
        setting=setting,
        reader=reader,
        names=names,
        known=cases.configuration,
        reads=costs.reads if costs is not None else frozenset(),
        learners=learners,
        width=judged.width(),
        ratio_width=judged.ratio_width(rng),
        doubts=(*doubts(rows, setting, unseen), *(_slowness(learners.bases[0], sample, asked) if knows_work else ())),
        abstains=is_like_nothing(rows, setting),
        grounds=_grounds(rows, weights, hidden, new, share),
        own=int(new.own.sum()),
        share=share,
    )
    return _with_bounds(model, sample, rows, [row for row in others if (row.bound or 0.0) > 0.0])


def _places_to_hide(new: Novelty, rng: np.random.Generator) -> Places:
    """Return the rows from which to hide: all, or the setting's own and as many others as the limit allows."""
    n = len(new.labels)
    if n <= _HIDDEN_FROM:
        return np.arange(n)
    own = np.flatnonzero(new.own)[: _HIDDEN_FROM // 2]
    others = rng.permutation(np.setdiff1d(np.arange(n), own))[: _HIDDEN_FROM - len(own)]
    return np.union1d(own, others)


def _slowness(costs: CostModel | None, sample: _Sample, asked: Table) -> Iterator[str]:
    """Yield a sentence if the setting's build looks much slower than others of its machine, by its own values."""
    own = np.flatnonzero(sample.table.groups["build"] == asked.groups["build"][0])
    slow = costs.slowness(sample.table.at(own)) if costs is not None and len(own) else 1.0
    if slow > _SLOW:
        yield (
            f"this build looks {slow:.1f} times slower than usual ones: look at its BLAS, and at how its MPI sends "
            "messages between nodes"
        )


def _with_bounds(model: RunTimes, sample: _Sample, rows: list[Measured], bounds: list[Measured]) -> RunTimes:
    if not bounds:
        return model
    cases = DesignMatrix.from_measurements(bounds)
    predicted = model.learners.predict(_read(model.reader, bounds, cases).only(model.names))
    mean, half = predicted.mean, model.width.half(predicted.apart)
    sign = model.setting.metric.cost(1.0)
    limit = np.log([row.bound or np.nan for row in bounds])
    wrong = np.flatnonzero(sign * mean < sign * limit)
    if not len(wrong):
        return model
    beyond, _ = above_bound(sign * mean[wrong], half[wrong] / deviations_within(CONFIDENCE), sign * limit[wrong])
    more = [bounds[place] for place in wrong]
    table = _read(model.reader, [*rows, *more], DesignMatrix.from_measurements([*rows, *more]))
    table = replace(table, costs=table.costs if sample.table.costs is not None else None).only(model.names)
    weights = np.append(sample.weights, _weights(more))
    y = np.append(sample.y, sign * beyond)
    learners = _Learners.fit(table, y, weights, model.learners.weights, sample.seen)
    said = f"; {len(wrong)} of {len(bounds)} bounds were above what it predicted without them, and count"
    return replace(model, learners=learners, grounds=model.grounds + said)


def _grounds(rows: Sequence[Measured], weights: FloatArray, hidden: _Hidden, new: Novelty, share: float) -> str:
    machines = len({row.setting.machine for row in rows})
    builds = len(set(by_setting([row.setting for row in rows], installation)))
    costs = " and on what is known of its costs" if weights[:_COSTS].any() else ""
    tested = "measurements" if hidden.sample.novelty.hides_single_rows else _UNSEEN[new.by]
    judged = f"tested on {tested} left out of the fit" if len(hidden.sample.y) else "too little is known to test it"
    words = _UNSEEN[new.respect or "setting"]
    promise = f"; other {words} known: {new.others}, so an interval is to hold {share:.0%}"
    where = f"{machines} machine{'s' * (machines != 1)}, {builds} build{'s' * (builds != 1)}"
    what = f"{len(rows)} measurements of {rows[0].setting.program} on {where}"
    return f"fitted on {what}{costs}, {judged}{promise * (share < CONFIDENCE)}"


def promised_share(others: int | None) -> float:
    """Return the share of new cases that intervals can promise to contain, calibrated by leaving out `others` cases.

    Among m known cases and a new one, each is equally likely to need the widest interval.
    """
    return min(CONFIDENCE, others / (others + 1)) if others else CONFIDENCE


def _by_hardware(settings: Sequence[Setting]) -> list[Setting]:
    """Return settings, (n,), with machines named without their installation: builds share a machine's rates."""
    return by_setting(settings, lambda one: replace(one, machine=hardware(one.machine, one.machine_facts)))


def _is_of(row: Measured, setting: Setting) -> bool:
    known = row.setting
    is_same = known.program == setting.program and known.metric.compares_with(setting.metric)
    return is_same and not row.failed and (row.value is None or row.value > 0.0)


def _read(reader: Reader, rows: Sequence[Measured], cases: DesignMatrix) -> Table:
    timers = dict.fromkeys(name for row in rows for name in row.parts)
    table = _table(reader, [row.setting for row in rows], cases)
    seconds = {name: np.array([row.parts.get(name, np.nan) for row in rows], dtype=float) for name in timers}
    return replace(table, timers=seconds)


def _table(reader: Reader, settings: Sequence[Setting], cases: DesignMatrix) -> Table:
    """Return the table of cases in `settings`, (n,)."""
    labels = {
        "machine": lambda one: one.machine,
        "installation": lambda one: str(installation(one) or one.machine),
        "build": lambda one: f"{one.machine} {installation(one)}",
        "workload": lambda one: one.workload,
        "setting": lambda one: f"{one.place} {installation(one)} {one.workload}",
    }
    groups = {name: column_of(by_setting(settings, label)) for name, label in labels.items()}
    return replace(reader.read(cases, {name: groups[name] for name in ("machine", "workload")}), groups=groups)


def _table_of_setting(reader: Reader, setting: Setting) -> Table:
    """Return the setting as a case without a configuration; it has costs if its facts suffice to compute them."""
    table = _table(reader, [setting], DesignMatrix.from_measurements([Measured(setting, {})]))
    if table.costs is None or table.costs.inverse != (setting.metric.direction == "maximize"):
        return replace(table, costs=None)
    # The costs of a program are in seconds, or in work per second; a shape has no unit.
    is_known = reader.shape is not None or setting.metric.unit.rpartition("/")[2] == "s"
    return table if is_known else replace(table, costs=None)


def _logs(rows: Sequence[Measured]) -> FloatArray:
    return np.log([row.value or np.nan for row in rows])


def _weights(rows: Sequence[Measured]) -> FloatArray:
    """Return the weights of rows, (n,): one half for a single run, nearly 1 for many."""
    return np.array([row.runs / (row.runs + 1.0) for row in rows], dtype=float)


def _facts_distinguish_workloads(rows: Sequence[Measured]) -> bool:
    """Return whether the facts of workloads distinguish them as well as their names do."""
    workloads = {row.setting.workload: tuple(sorted(row.setting.workload_facts.items())) for row in rows}
    return len(set(workloads.values())) == len(workloads)
