"""Samples: what a model of run times is fitted to, and what it would have said of parts had they been hidden."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.boosting import ROUNDS
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Places, Table, Words
from autotune.performance.run_times.context import Context
from autotune.performance.run_times.ensemble_member import Base, EnsembleMember, Kind
from autotune.performance.run_times.novelty import Novelty, folds, inside

# From so many rows of its own on a setting counts more, and may differ from all others.
ENOUGH = 10
_MORE = 3.0
_LEAST_ROWS, _LEAST_SHARE = 6, 0.15


@dataclass(frozen=True)
class TrainingSample:
    """Logarithms `y`, (n,), of values at the rows of a table, with weights, (n,), and what is new of the setting asked.

    `names` are those of the columns to learn from, `context` of the words of machines and installations. `numbers`,
    (n,) each, are those that a model may not be asked far outside of, `kinds_of_work`, (n,) each, the words of the
    workload, which it must have seen.
    """

    table: Table
    y: FloatArray
    weights: FloatArray
    novelty: Novelty
    names: frozenset[str]
    context: tuple[str, ...]
    numbers: tuple[FloatArray, ...]
    kinds_of_work: tuple[Words, ...]

    @property
    def few(self) -> int:
        """How many rows there are of the setting itself."""
        return int(self.novelty.own.sum())

    @property
    def is_known_a_little(self) -> bool:
        """Whether there are rows enough of the setting itself to count more than others."""
        return self.few >= ENOUGH and not self.novelty.own.all()

    @property
    def weighted(self) -> FloatArray:
        """The weights, (n,), with those of the setting's own rows raised."""
        return self.weights * np.where(self.novelty.own & self.is_known_a_little, _MORE, 1.0)

    def at(self, places: Places) -> "TrainingSample":
        """Return the rows at `places`, (m,)."""
        return replace(
            self,
            table=self.table.at(places),
            y=self.y[places],
            weights=self.weights[places],
            novelty=replace(self.novelty, labels=self.novelty.labels[places]),
            numbers=tuple(column[places] for column in self.numbers),
            kinds_of_work=tuple(column[places] for column in self.kinds_of_work),
        )

    def members(
        self, kinds: Sequence[Kind], weights: FloatArray, rounds: Sequence[int] | None = None
    ) -> list[EnsembleMember | None]:
        """Fit a member of each kind, with so many trees; of one family each starts from the one before."""
        context = Context.of(self.table, self.context)
        found: list[EnsembleMember | None] = []
        start: Base | None = None
        for kind, most in zip(kinds, rounds or [max(ROUNDS)] * len(kinds), strict=True):
            member = EnsembleMember.fitted(kind, self.table, self.y, weights, context, self.names, start, most)
            start = member.base if member is not None else start
            found.append(member)
        return found

    def answered(self, train: Places, asked: Places) -> npt.NDArray[np.bool_]:
        """Return which of the rows `asked`, (m,), a model of `train` would answer without doubts."""
        numbers = [np.ones(len(self.y)), *self.numbers]
        found = inside([column[train] for column in numbers], [column[asked] for column in numbers])
        for column in self.kinds_of_work:
            words = set(column[train].tolist())
            found[[word not in words for word in column[asked]]] = False
        return found


@dataclass(frozen=True)
class LeftOut:
    """What members said of rows when they were hidden: (n, kinds, rounds), NaN where none was asked; by fold, (n,)."""

    said: FloatArray
    fold: npt.NDArray[np.intp]

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Which rows were asked about, (n,)."""
        found: npt.NDArray[np.bool_] = np.any(~np.isnan(self.said), axis=(1, 2))
        return found


def left_out(
    sample: TrainingSample, kinds: Sequence[Kind], rng: np.random.Generator, only_inside: bool = True
) -> LeftOut:
    """Return what members say of hidden rows, which are as far from the others as the setting asked is from all.

    Each hidden label keeps as many rows as the setting has of its own, or half of its rows. With `only_inside`, rows
    that would meet doubts are not asked about; if none is left, all are, and single rows where labels are too large.
    """
    n = len(sample.y)
    fold = folds(sample.novelty.labels, sample.novelty.own, rng)
    few = sample.few if (fold < 0).any() else 0
    said = np.full((n, len(kinds), len(ROUNDS)), np.nan)
    for out in range(int(fold.max()) + 1):
        hidden = np.flatnonzero(fold == out)
        kept = _kept(sample.novelty.labels, hidden, few, rng)
        asked = np.setdiff1d(hidden, kept)
        train = np.setdiff1d(np.arange(n), asked)
        if only_inside and len(asked):
            asked = asked[sample.answered(train, asked)]
        if len(asked) == 0 or len(train) < max(min(_LEAST_ROWS, n - 1), _LEAST_SHARE * n):
            continue
        weights = sample.weighted
        weights[kept] *= _MORE if sample.is_known_a_little else 1.0
        table = sample.table.at(asked)
        for place, member in enumerate(sample.at(train).members(kinds, weights[train])):
            if member is not None:
                said[asked, place] = member.predict(table)
    found = LeftOut(said, fold)
    if found.judged.any():
        return found
    if only_inside:
        return left_out(sample, kinds, rng, False)
    if len(set(sample.novelty.labels.tolist())) > 1:
        # Too much would be hidden at once: single rows have to do.
        alone = replace(sample.novelty, labels=np.full(n, "", dtype=object), label="")
        return left_out(replace(sample, novelty=alone), kinds, rng, False)
    return found


def _kept(labels: Words, hidden: Places, few: int, rng: np.random.Generator) -> Places:
    if few == 0:
        return np.zeros(0, dtype=np.intp)
    found = []
    for label in dict.fromkeys(labels[hidden].tolist()):
        rows = rng.permutation(hidden[labels[hidden] == label])
        found.append(rows[: min(few, len(rows) // 2)])
    return np.concatenate(found)
