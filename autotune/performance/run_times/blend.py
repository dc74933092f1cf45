"""Blends of members, and how far off they are: chosen and calibrated by what they said of hidden rows."""

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
    """Places of the kinds and of the numbers of trees, (k, 2), that are blended with weights, (k,)."""

    picks: tuple[tuple[int, int], ...]
    weights: FloatArray

    @property
    def rounds(self) -> tuple[int, ...]:
        """The numbers of trees of the members."""
        return tuple(ROUNDS[rounds] for _, rounds in self.picks)

    def picked(self, said: FloatArray) -> FloatArray:
        """Return what the members say, (n, k), of (n, kinds, rounds); where one cannot say, what the others do."""
        found = np.column_stack([said[:, kind, rounds] for kind, rounds in self.picks])
        return filled(found)


@dataclass(frozen=True)
class Width:
    """How wide intervals are: `factor` times the usual error plus how far members are apart, all of logarithms.

    Split conformal, normalised (Lei et al., JASA 113, 2018).
    """

    usual: float
    factor: float

    @classmethod
    def of(cls, off: FloatArray, apart: FloatArray) -> "Width":
        """Calibrate by the absolute errors, (n,), of what was hidden, and how far members were apart there, (n,)."""
        usual = max(_LEAST_OFF, float(np.median(off)))
        ranked = np.sort(off / (usual + apart))
        place = int(np.ceil(CONFIDENCE * (len(ranked) + 1))) - 1
        return cls(usual, float(ranked[min(place, len(ranked) - 1)]))

    def half(self, apart: FloatArray) -> FloatArray:
        """Return half widths, (m,), where members are so far apart, (m,)."""
        return self.factor * (self.usual + apart)


def filled(said: FloatArray) -> FloatArray:
    """Return what members say, (n, k), with the mean of the others where one cannot say."""
    missing = np.isnan(said)
    if not missing.any():
        return said
    counts = np.maximum((~missing).sum(axis=1, keepdims=True), 1)
    return np.where(missing, np.nansum(said, axis=1, keepdims=True) / counts, said)


def blended(sample: TrainingSample, kinds: Sequence[Kind], found: LeftOut) -> Blend:
    """Return the blend that is least off for rows that were hidden: by Huber's loss, weights on a grid of quarters."""
    judged = found.judged
    y, weights = sample.y[judged], sample.weighted[judged]
    said = found.said[judged]
    losses = np.average(_huber(np.nan_to_num(said - y[:, None, None])), axis=0, weights=weights)
    losses[np.isnan(said).all(axis=(0, 2))] = np.inf
    picks: dict[str, tuple[int, int]] = {}
    for place, kind in enumerate(kinds):
        rounds = int(losses[place].argmin())
        best = picks.get(kind.family)
        if np.isfinite(losses[place, rounds]) and (best is None or losses[place, rounds] < losses[best]):
            picks[kind.family] = (place, rounds)
    grid = [
        np.array(parts) / _PARTS
        for parts in itertools.product(range(_PARTS + 1), repeat=len(picks))
        if sum(parts) == _PARTS
    ]
    blends = [Blend(tuple(picks.values()), parts) for parts in grid]
    return min(blends, key=lambda one: _loss(one.picked(said) @ one.weights - y, weights))


def own_width(
    sample: TrainingSample, kinds: Sequence[Kind], found: LeftOut, blend: Blend, rng: np.random.Generator
) -> Width:
    """Return how wide intervals are for a setting of which something is known.

    Hiding a fifth of its own rows at a time tells how far off the model is there; how much the rest may still be off,
    given so few, follows from treating the other labels alike.
    """
    judged = found.judged
    said = blend.picked(found.said[judged])
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
    place = min(int(np.searchsorted(ends / ends[-1], CONFIDENCE)), len(order) - 1)
    quantile = float(ratios[order][place])
    return Width(width.usual, quantile * (float(own.sum()) + _PRIOR_ROWS * whole) / (m + _PRIOR_ROWS))


def _own_errors(
    sample: TrainingSample, kinds: Sequence[Kind], blend: Blend, width: Width, rng: np.random.Generator
) -> FloatArray:
    chosen = [kinds[kind] for kind, _ in blend.picks]
    errors = []
    for part in np.array_split(rng.permutation(np.flatnonzero(sample.novelty.own)), _HIDDEN_PARTS):
        train = np.setdiff1d(np.arange(len(sample.y)), part)
        members = sample.at(train).members(chosen, sample.weighted[train], blend.rounds)
        asked = sample.table.at(part)
        columns = [
            member.predict(asked, (rounds,))[:, 0] if member is not None else np.full(len(part), np.nan)
            for member, rounds in zip(members, blend.rounds, strict=True)
        ]
        said = filled(np.column_stack(columns))
        off = np.abs(said @ blend.weights - sample.y[part])
        errors.append(off / (width.usual + said.std(axis=1)))
    return np.concatenate(errors)


def ratio_width(
    sample: TrainingSample, found: LeftOut, blend: Blend, settings: Words, rng: np.random.Generator
) -> Width | None:
    """Return how wide intervals of ratios within a setting are, by pairs of rows that were hidden together.

    `settings`, (n,), tell which rows are of one; None if no two rows of one were hidden together.
    """
    judged = np.flatnonzero(found.judged)
    said = blend.picked(found.said[judged])
    off = said @ blend.weights - sample.y[judged]
    first, second = [], []
    keys = np.array([f"{label} {fold}" for label, fold in zip(settings[judged], found.fold[judged], strict=True)])
    order = rng.permutation(len(judged))
    order = order[np.argsort(keys[order], kind="stable")]
    alike = keys[order][1:] == keys[order][:-1]
    first, second = order[1:][alike], order[:-1][alike]
    if len(first) == 0:
        return None
    return Width.of(np.abs(off[first] - off[second]), (said[first] - said[second]).std(axis=1))


def _huber(off: FloatArray) -> FloatArray:
    found: FloatArray = _HUBER**2 * (np.sqrt(1.0 + (off / _HUBER) ** 2) - 1.0)
    return found


def _loss(off: FloatArray, weights: FloatArray) -> float:
    return round(float(np.average(_huber(off), weights=weights)), 5)
