"""Blends of ensemble members, chosen and calibrated by their errors on hidden rows."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from autotune.performance.regression.cost_model import DRAWS
from autotune.performance.regression.learners import ROUNDS
from autotune.performance.regression.prediction import CONFIDENCE
from autotune.performance.regression.table import Places, Table, Words
from autotune.performance.run_times.ensemble_member import EnsembleMember, Kind
from autotune.performance.run_times.sample import ENOUGH, HiddenPredictions, TrainingSample
from spaces.expressions.quantities import FloatArray

_HUBER = 0.2
_PARTS = 4  # weights are quarters: finer weights would fit noise
_LEAST_OFF, _USUAL = 0.02, 0.1
_ENOUGH, _LEAST_LABELS = 20, 4
_UNKNOWN_WORK = 2.0  # with so uncertain a level, costs predict how times change, but not times
_NORMAL = NormalDist().inv_cdf((1.0 + CONFIDENCE) / 2.0)  # the factor of a calibrated model
_CALIBRATED = np.array([NormalDist().inv_cdf((1.0 + share) / 2.0) for share in (np.arange(100) + 0.5) / 100])
_PRIOR_ROWS, _HIDDEN_PARTS, _DRAWS = 3.0, 5, 20


@dataclass(frozen=True)
class Blend:
    """Members to blend, as indexes of their kinds and numbers of trees, (k, 2), with weights, (k,).

    If the first kind `knows_costs`, its members also state their uncertainty.
    """

    picks: tuple[tuple[int, int], ...]
    weights: FloatArray
    knows_costs: bool = False

    @property
    def rounds(self) -> tuple[int, ...]:
        """The numbers of trees of the members."""
        return tuple(ROUNDS[rounds] for _, rounds in self.picks)

    def prune(self) -> "Blend":
        """Return the blend without members of weight 0."""
        kept = np.flatnonzero(self.weights)
        picks = tuple(self.picks[place] for place in kept)
        return Blend(picks, self.weights[kept], self.knows_costs and any(kind == 0 for kind, _ in picks))

    @property
    def share_of_costs(self) -> float:
        """The weight of the members that state their uncertainty, with and without trees."""
        shares = (float(weight) for (kind, _), weight in zip(self.picks, self.weights, strict=True) if kind == 0)
        return sum(shares) if self.knows_costs else 0.0

    def spread(self, predictions: FloatArray) -> FloatArray:
        """Return the weighted standard deviation, (n,), of the members' predictions, (n, k)."""
        middle = predictions @ self.weights
        spread: FloatArray = np.sqrt(((predictions - middle[:, None]) ** 2) @ self.weights)
        return spread

    def pick(self, predictions: FloatArray) -> FloatArray:
        """Pick the members' predictions, (n, k), from (n, kinds, rounds); fill missing ones with the others' mean."""
        columns = np.column_stack([predictions[:, kind, rounds] for kind, rounds in self.picks])
        return fill_missing(columns)


@dataclass(frozen=True)
class Width:
    """The width of intervals: `factor` times the root of (usual error^2 + spread^2), all of logarithms.

    Split conformal, normalised (Lei et al., JASA 113, 2018).
    """

    usual: float
    factor: float

    @classmethod
    def of(cls, off: FloatArray, apart: FloatArray, labels: Words) -> "Width":
        """Calibrate by the absolute errors, (n,), of hidden rows, the spreads, (n,), there, and their labels, (n,).

        The factor covers 90 % of the rows, where each label counts once: its rows are not independent, and the setting
        to predict has a label of its own. One further label has the errors of a calibrated spread, so that a few labels
        hardly change the uncertainty that a model states. (Conformal by group: Dunn, Wasserman & Ramdas, JASA 118,
        2023.)
        """
        usual = min(_USUAL, max(_LEAST_OFF, float(np.median(off)))) if len(off) else _USUAL
        scores = off / np.hypot(usual, apart)
        _, places, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
        weights = np.append(1.0 / counts[places], np.full(len(_CALIBRATED), 1.0 / len(_CALIBRATED)))
        return cls(usual, _quantile(np.append(scores, _CALIBRATED), weights))

    def half(self, apart: FloatArray) -> FloatArray:
        """Return half-widths, (m,), for predictions with these spreads, (m,)."""
        return self.factor * np.hypot(self.usual, apart)


CALIBRATED = Width(_USUAL, _NORMAL)
"""The width that trusts a cost model's own uncertainty, used without rows to calibrate by."""


@dataclass(frozen=True)
class Predicted:
    """The predictions of a blend's members for m cases, (m, k).

    `draws`, (draws, m), are those of the member that states its uncertainty. They have mean 0 and are multiplied by the
    member's weight.
    """

    blend: Blend
    predictions: FloatArray
    draws: FloatArray

    @classmethod
    def of(cls, members: Sequence[EnsembleMember | None], blend: Blend, table: Table) -> "Predicted":
        """Predict a table by the blend's `members`."""
        columns, drawn = [], np.zeros((DRAWS, len(table)))
        for member, rounds in zip(members, blend.rounds, strict=True):
            if member is None:
                columns.append(np.full(len(table), np.nan))
                continue
            expected, draws = member.predict(table, (rounds,))
            columns.append(expected[:, 0])
            if draws is not None:
                drawn = (draws - draws.mean(axis=0)) * blend.share_of_costs
        return cls(blend, fill_missing(np.column_stack(columns)), np.nan_to_num(drawn))

    @property
    def mean(self) -> FloatArray:
        """The expected logarithms, (m,)."""
        mean: FloatArray = self.predictions @ self.blend.weights
        return mean

    @property
    def apart(self) -> FloatArray:
        """The spreads of the predictions, (m,)."""
        apart: FloatArray = np.hypot(self.draws.std(axis=0), self.blend.spread(self.predictions))
        return apart

    def at(self, places: Places) -> "Predicted":
        """Return the predictions for the cases at the indexes `places`."""
        return Predicted(self.blend, self.predictions[places], self.draws[:, places])

    def beyond(self, reference: "Predicted") -> "Predicted":
        """Return the logarithms of the ratios to other cases, or to one, in which common errors cancel."""
        return Predicted(self.blend, self.predictions - reference.predictions, self.draws - reference.draws)


@dataclass(frozen=True)
class HiddenErrors:
    """A blend on hidden rows: its errors, (n,), its predictions, and the labels of the rows, (n,)."""

    off: FloatArray
    predicted: Predicted
    labels: Words

    @classmethod
    def of(cls, sample: TrainingSample, hidden: HiddenPredictions, blend: Blend) -> "HiddenErrors":
        """Evaluate the blend on the hidden rows that have predictions."""
        judged = hidden.judged
        draws = hidden.draws[:, judged] * blend.share_of_costs
        predicted = Predicted(blend, blend.pick(hidden.predictions[judged]), draws)
        return cls(predicted.mean - sample.y[judged], predicted, sample.novelty.labels[judged])


def promised_share(others: int | None) -> float:
    """Return the share of new cases that intervals can promise to contain, calibrated by leaving out `others` cases.

    Among m known cases and a new one, each is equally likely to need the widest interval.
    """
    return CONFIDENCE if others is None or others == 0 else min(CONFIDENCE, others / (others + 1))


def fill_missing(predictions: FloatArray) -> FloatArray:
    """Replace a member's missing predictions, (n, k), by the mean of the other members."""
    missing = np.isnan(predictions)
    if not missing.any():
        return predictions
    counts = (~missing).sum(axis=1, keepdims=True)
    means = np.where(counts > 0, np.nansum(predictions, axis=1, keepdims=True) / np.maximum(counts, 1), np.nan)
    return np.where(missing, means, predictions)


def eligible_kinds(sample: TrainingSample, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """Return the kinds that may predict the setting.

    A cost model is used alone, without trees, unless rows as new as the setting can be hidden, and either the setting
    has ten values or enough labels can be hidden: otherwise residuals elsewhere say too little about the setting. This
    does not apply to costs that do not know the amount of work.
    """
    novelty = sample.novelty
    labels = len(set(novelty.labels[~novelty.own].tolist()))
    can_be_judged = novelty.is_hidden_alike and (novelty.alike >= ENOUGH or labels >= _LEAST_LABELS)
    return kinds if can_be_judged or not _is_trusted(sample, kinds) else (replace(kinds[0], boosted=False),)


def _is_trusted(sample: TrainingSample, kinds: Sequence[Kind]) -> bool:
    costs = sample.table.costs
    return kinds[0].knows_costs and costs is not None and costs.level < _UNKNOWN_WORK


def fit_blend(sample: TrainingSample, kinds: Sequence[Kind], hidden: HiddenPredictions) -> Blend:
    """Return the blend with the least error on hidden rows, by Huber's loss, with weights in quarters.

    Half of the loss judges the order within a setting, by errors minus their mean there. Labels count equally. With a
    cost model, the blend has the greatest weight of it whose loss is within one standard error of the least: with few
    labels the cost model stays almost alone (Breiman et al. 1984). It stays alone if no rows as new as those to predict
    were hidden.
    """
    judged = hidden.judged
    knows_costs = kinds[0].knows_costs
    alone = Blend(((0, 0),), np.ones(1), knows_costs)
    is_untestable = _is_trusted(sample, kinds) and not hidden.as_asked
    if knows_costs and (len(kinds) == 1 or is_untestable or judged.sum() < _ENOUGH):
        return alone
    y, predictions = sample.y[judged], hidden.predictions[judged]
    by_label = _ByLabel.of(sample, np.flatnonzero(judged))
    losses = np.array(
        [[by_label.losses(column - y).mean() for column in predictions[:, index].T] for index in range(len(kinds))]
    )
    picks: dict[str, tuple[int, int]] = {}
    for index, kind in enumerate(kinds):
        rounds = int(losses[index].argmin())
        best = picks.get(kind.family)
        if np.isfinite(losses[index, rounds]) and (best is None or losses[index, rounds] < losses[best]):
            picks[kind.family] = (index, rounds)
    picked = list(dict.fromkeys([(0, 0), *picks.values()] if knows_costs else picks.values()))
    grid = [
        np.array(parts) / _PARTS
        for parts in itertools.product(range(_PARTS + 1), repeat=len(picked))
        if sum(parts) == _PARTS
    ]
    blends = [Blend(tuple(picked), parts, knows_costs) for parts in grid]
    found = np.array([by_label.losses(blend.pick(predictions) @ blend.weights - y) for blend in blends])
    means = found.mean(axis=1)
    chosen = int(means.argmin())
    if knows_costs:
        further = found - found[chosen]
        error = further.std(axis=1, ddof=1) / np.sqrt(found.shape[1]) if found.shape[1] > 1 else np.inf
        near = np.flatnonzero(further.mean(axis=1) <= error)
        chosen = max(near.tolist(), key=lambda place: (grid[place][0], -means[place]))
    return blends[chosen].prune()


@dataclass(frozen=True)
class _ByLabel:
    """Losses of n hidden rows by label: their weights, (n,), and the indexes of their settings and labels, (n,)."""

    weights: FloatArray
    settings: Places
    labels: Places

    @classmethod
    def of(cls, sample: TrainingSample, judged: Places) -> "_ByLabel":
        settings, labels = (
            np.unique(words[judged].astype(str), return_inverse=True)[1]
            for words in (_settings(sample), sample.novelty.labels)
        )
        return cls(sample.weighted[judged], settings, labels)

    def losses(self, off: FloatArray) -> FloatArray:
        """Return the mean loss of the errors, (n,), of each label, (l,)."""
        if np.isnan(off).all():
            return np.full(int(self.labels.max()) + 1, np.inf)
        off = np.nan_to_num(off)
        middles = np.bincount(self.settings, off * self.weights) / np.bincount(self.settings, self.weights)
        both = (_huber(off) + _huber(off - middles[self.settings])) / 2.0
        losses: FloatArray = np.bincount(self.labels, both * self.weights) / np.bincount(self.labels, self.weights)
        return np.round(losses, 5)


def own_width(
    sample: TrainingSample, kinds: Sequence[Kind], hidden: HiddenPredictions, blend: Blend, rng: np.random.Generator
) -> Width:
    """Return the width of intervals for a setting with rows of its own.

    A fifth of its rows is hidden at a time to get the model's errors there. The same procedure on the other labels
    shows how uncertain so few errors are.
    """
    seen = HiddenErrors.of(sample, hidden, blend)
    width = Width.of(np.abs(seen.off), seen.predicted.apart, seen.labels)
    others = np.abs(seen.off) / np.hypot(width.usual, seen.predicted.apart)
    own = _own_errors(sample, kinds, blend, width, rng)
    whole, m = float(others.mean()), len(own)
    scaled, shares = [], []
    for label in dict.fromkeys(seen.labels.tolist()):
        rows = others[seen.labels == label]
        for _ in range(_DRAWS if len(rows) >= m + 3 else 0):
            drawn = rng.permutation(rows)
            scaled.append(drawn[m:] / ((drawn[:m].sum() + _PRIOR_ROWS * whole) / (m + _PRIOR_ROWS)))
            shares.append(np.full(len(rows) - m, 1.0 / (len(rows) - m)))
    if not scaled or whole == 0.0:
        return width
    quantile = _quantile(np.concatenate(scaled), np.concatenate(shares))
    return Width(width.usual, quantile * (float(own.sum()) + _PRIOR_ROWS * whole) / (m + _PRIOR_ROWS))


def _own_errors(
    sample: TrainingSample, kinds: Sequence[Kind], blend: Blend, width: Width, rng: np.random.Generator
) -> FloatArray:
    chosen = [kinds[kind] for kind, _ in blend.picks]
    errors = []
    for part in np.array_split(rng.permutation(np.flatnonzero(sample.novelty.own)), _HIDDEN_PARTS):
        train = np.setdiff1d(np.arange(len(sample.y)), part)
        members = sample.at(train).members(chosen, sample.weighted[train], blend.rounds)
        prediction = Predicted.of(members, blend, sample.table.at(part))
        off = np.abs(prediction.mean - sample.y[part])
        errors.append(off / np.hypot(width.usual, prediction.apart))
    return np.concatenate(errors)


def ratio_width(
    sample: TrainingSample, hidden: HiddenPredictions, blend: Blend, rng: np.random.Generator
) -> Width | None:
    """Return the width of intervals of ratios within a setting, from pairs of rows that were hidden together.

    The result is None if no two rows of a setting were hidden together.
    """
    seen = HiddenErrors.of(sample, hidden, blend)
    folds, settings = hidden.fold[hidden.judged], _settings(sample)[hidden.judged]
    keys = np.array([f"{label} {fold}" for label, fold in zip(settings, folds, strict=True)])
    order = rng.permutation(len(keys))
    order = order[np.argsort(keys[order], kind="stable")]
    alike = keys[order][1:] == keys[order][:-1]
    first, second = order[1:][alike], order[:-1][alike]
    if len(first) == 0:
        return None
    ratios = seen.predicted.at(first).beyond(seen.predicted.at(second))
    return Width.of(np.abs(seen.off[first] - seen.off[second]), ratios.apart, seen.labels[first])


def _settings(sample: TrainingSample) -> Words:
    """Return the build, workload and nodes of each row, (n,); rows with equal labels compete with each other."""
    groups = sample.table.groups
    nodes = sample.table.numbers.get("nodes", np.zeros(len(sample.y)))
    return np.array(
        [
            f"{build} {work} {node}"
            for build, work, node in zip(groups["build"], groups["workload"], nodes, strict=True)
        ],
        dtype=object,
    )


def _quantile(values: FloatArray, weights: FloatArray) -> float:
    """Return the value with 90 % of the weight at or below it."""
    order = np.argsort(values)
    ends = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(ends / ends[-1], CONFIDENCE)), len(order) - 1)])


def _huber(off: FloatArray) -> FloatArray:
    losses: FloatArray = _HUBER**2 * (np.sqrt(1.0 + (off / _HUBER) ** 2) - 1.0)
    return losses
