"""Blends of members, and their errors: chosen and calibrated by their predictions for hidden rows."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.performance.regression.boosting import ROUNDS
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import CONFIDENCE
from autotune.performance.regression.table import Words
from autotune.performance.run_times.ensemble_member import Kind
from autotune.performance.run_times.sample import LeftOut, TrainingSample

_HUBER = 0.2
_PARTS = 4  # weights are quarters: finer ones would be noise
_LEAST_OFF = 0.02
_PRIOR_ROWS, _HIDDEN_PARTS, _DRAWS = 3.0, 5, 20


@dataclass(frozen=True)
class Blend:
    """Indices of the kinds and of the numbers of trees, (k, 2), that are blended with weights, (k,)."""

    picks: tuple[tuple[int, int], ...]
    weights: FloatArray

    @property
    def rounds(self) -> tuple[int, ...]:
        """The numbers of trees of the members."""
        return tuple(ROUNDS[rounds] for _, rounds in self.picks)

    def picked(self, said: FloatArray) -> FloatArray:
        """Return the members' predictions, (n, k), of (n, kinds, rounds); the mean of the others where one has none."""
        columns = np.column_stack([said[:, kind, rounds] for kind, rounds in self.picks])
        return filled(columns)


@dataclass(frozen=True)
class Width:
    """The width of intervals: `factor` times (usual error + spread of the members), all of logarithms.

    Split conformal, normalised (Lei et al., JASA 113, 2018).
    """

    usual: float
    factor: float

    @classmethod
    def of(cls, off: FloatArray, apart: FloatArray) -> "Width":
        """Calibrate by the absolute errors, (n,), of hidden rows, and the spreads, (n,), of the members there."""
        usual = max(_LEAST_OFF, float(np.median(off)))
        ranked = np.sort(off / (usual + apart))
        index = int(np.ceil(CONFIDENCE * (len(ranked) + 1))) - 1
        return cls(usual, float(ranked[min(index, len(ranked) - 1)]))

    def half(self, apart: FloatArray) -> FloatArray:
        """Return half widths, (m,), for the spreads, (m,), of the members."""
        return self.factor * (self.usual + apart)


def filled(said: FloatArray) -> FloatArray:
    """Return predictions of members, (n, k), with the mean of the others where a member has none."""
    missing = np.isnan(said)
    if not missing.any():
        return said
    counts = np.maximum((~missing).sum(axis=1, keepdims=True), 1)
    return np.where(missing, np.nansum(said, axis=1, keepdims=True) / counts, said)


def blended(sample: TrainingSample, kinds: Sequence[Kind], hidden: LeftOut) -> Blend:
    """Return the blend with the least error for hidden rows: by Huber's loss, weights on a grid of quarters."""
    judged = hidden.judged
    y, weights = sample.y[judged], sample.weighted[judged]
    said = hidden.said[judged]
    losses = np.average(_huber(np.nan_to_num(said - y[:, None, None])), axis=0, weights=weights)
    losses[np.isnan(said).all(axis=(0, 2))] = np.inf
    picks: dict[str, tuple[int, int]] = {}
    for index, kind in enumerate(kinds):
        rounds = int(losses[index].argmin())
        best = picks.get(kind.family)
        if np.isfinite(losses[index, rounds]) and (best is None or losses[index, rounds] < losses[best]):
            picks[kind.family] = (index, rounds)
    grid = [
        np.array(parts) / _PARTS
        for parts in itertools.product(range(_PARTS + 1), repeat=len(picks))
        if sum(parts) == _PARTS
    ]
    blends = [Blend(tuple(picks.values()), parts) for parts in grid]
    return min(blends, key=lambda blend: _loss(blend.picked(said) @ blend.weights - y, weights))


def own_width(
    sample: TrainingSample, kinds: Sequence[Kind], hidden: LeftOut, blend: Blend, rng: np.random.Generator
) -> Width:
    """Return the width of intervals for a setting with rows of its own.

    A fifth of its own rows is hidden at a time, which gives the model's errors there. How uncertain so few errors are
    follows from the other labels, treated likewise.
    """
    judged = hidden.judged
    said = blend.picked(hidden.said[judged])
    off, apart = np.abs(said @ blend.weights - sample.y[judged]), said.std(axis=1)
    width = Width.of(off, apart)
    others = off / (width.usual + apart)
    own = _own_errors(sample, kinds, blend, width, rng)
    whole, m = float(others.mean()), len(own)
    scaled, shares = [], []
    labels = sample.novelty.labels[judged]
    for label in dict.fromkeys(labels.tolist()):
        rows = others[labels == label]
        for _ in range(_DRAWS if len(rows) >= m + 3 else 0):
            drawn = rng.permutation(rows)
            scaled.append(drawn[m:] / ((drawn[:m].sum() + _PRIOR_ROWS * whole) / (m + _PRIOR_ROWS)))
            shares.append(np.full(len(rows) - m, 1.0 / (len(rows) - m)))
    if not scaled or whole == 0.0:
        return width
    ratios, weights = np.concatenate(scaled), np.concatenate(shares)
    order = np.argsort(ratios)
    ends = np.cumsum(weights[order])
    index = min(int(np.searchsorted(ends / ends[-1], CONFIDENCE)), len(order) - 1)
    quantile = float(ratios[order][index])
    return Width(width.usual, quantile * (float(own.sum()) + _PRIOR_ROWS * whole) / (m + _PRIOR_ROWS))


def _own_errors(
    sample: TrainingSample, kinds: Sequence[Kind], blend: Blend, width: Width, rng: np.random.Generator
) -> FloatArray:
    chosen = [kinds[kind] for kind, _ in blend.picks]
    errors = []
    for part in np.array_split(rng.permutation(np.flatnonzero(sample.novelty.own)), _HIDDEN_PARTS):
        train = np.setdiff1d(np.arange(len(sample.y)), part)
        members = sample.at(train).members(chosen, sample.weighted[train], blend.rounds)
        held_out = sample.table.at(part)
        columns = [
            member.predict(held_out, (rounds,))[:, 0] if member is not None else np.full(len(part), np.nan)
            for member, rounds in zip(members, blend.rounds, strict=True)
        ]
        said = filled(np.column_stack(columns))
        off = np.abs(said @ blend.weights - sample.y[part])
        errors.append(off / (width.usual + said.std(axis=1)))
    return np.concatenate(errors)


def ratio_width(
    sample: TrainingSample, hidden: LeftOut, blend: Blend, settings: Words, rng: np.random.Generator
) -> Width | None:
    """Return the width of intervals of ratios within a setting, by pairs of rows that were hidden together.

    `settings`, (n,), are the rows' settings. None if no two rows of a setting were hidden together.
    """
    judged = np.flatnonzero(hidden.judged)
    said = blend.picked(hidden.said[judged])
    off = said @ blend.weights - sample.y[judged]
    first, second = [], []
    keys = np.array([f"{label} {fold}" for label, fold in zip(settings[judged], hidden.fold[judged], strict=True)])
    order = rng.permutation(len(judged))
    order = order[np.argsort(keys[order], kind="stable")]
    alike = keys[order][1:] == keys[order][:-1]
    first, second = order[1:][alike], order[:-1][alike]
    if len(first) == 0:
        return None
    return Width.of(np.abs(off[first] - off[second]), (said[first] - said[second]).std(axis=1))


def _huber(off: FloatArray) -> FloatArray:
    losses: FloatArray = _HUBER**2 * (np.sqrt(1.0 + (off / _HUBER) ** 2) - 1.0)
    return losses


def _loss(off: FloatArray, weights: FloatArray) -> float:
    return round(float(np.average(_huber(off), weights=weights)), 5)
