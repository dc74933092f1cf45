"""Training samples: the rows that a model of run times is fitted to, and predictions for hidden rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.cost_model import DRAWS
from autotune.performance.regression.learners import ROUNDS
from autotune.performance.regression.table import Places, Table, Words
from autotune.performance.run_times.context import Context
from autotune.performance.run_times.ensemble_member import EnsembleMember, Kind
from autotune.performance.run_times.novelty import Novelty, folds, inside
from spaces.expressions.quantities import FloatArray

# A setting with this number of rows of its own counts more than others, and may differ from all of them.
ENOUGH = 10
_MORE = 3.0
_LEAST_ROWS, _LEAST_SHARE = 6, 0.15


@dataclass(frozen=True)
class TrainingSample:
    """The n rows that a model is fitted to.

    Attributes:
        table: The cases.
        y: Logarithms of their values, (n,).
        weights: Their weights, (n,).
        novelty: The novelty of the setting to predict.
        names: The columns to learn from.
        context: The columns of words of machines and installations.
        numbers: Columns, (n,) each, that limit the range in which a model may predict.
        kinds_of_work: Columns of the workload's words, (n,) each, which a model must have seen.
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
        """The number of rows of the setting itself."""
        return int(self.novelty.own.sum())

    @property
    def is_known_a_little(self) -> bool:
        """Whether the setting has enough rows of its own to give them more weight."""
        return self.few >= ENOUGH and not self.novelty.own.all()

    @property
    def weighted(self) -> FloatArray:
        """The weights, (n,), with those of the setting's own rows raised."""
        return self.weights * np.where(self.novelty.own & self.is_known_a_little, _MORE, 1.0)

    def at(self, places: Places) -> "TrainingSample":
        """Return the rows at the indexes `places`, (m,)."""
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
        """Fit a member of each kind, with `rounds` trees."""
        context = Context.of(self.table, self.context)
        return [
            EnsembleMember.fit(kind, self.table, self.y, weights, context, self.names, most)
            for kind, most in zip(kinds, rounds or [max(ROUNDS)] * len(kinds), strict=True)
        ]

    def can_predict(self, train: Places, test: Places) -> npt.NDArray[np.bool_]:
        """Return which of the rows `test`, (m,), a model fitted to `train` would predict without doubts."""
        numbers = [np.ones(len(self.y)), *self.numbers]
        answerable = inside([column[train] for column in numbers], [column[test] for column in numbers])
        for column in self.kinds_of_work:
            words = set(column[train].tolist())
            answerable[[word not in words for word in column[test]]] = False
        return answerable


@dataclass(frozen=True)
class HiddenPredictions:
    """The members' predictions for hidden rows, (n, kinds, rounds), NaN without a prediction; and their folds, (n,).

    `draws`, (draws, n), are those of a member that states its uncertainty, minus their mean; 0 without such a member.
    With `as_asked`, the hidden rows are as new as the setting; otherwise labels were too large to hide. With `single`,
    single rows were hidden instead of whole labels.
    """

    predictions: FloatArray
    fold: npt.NDArray[np.intp]
    draws: FloatArray
    as_asked: bool = True
    single: bool = False

    @property
    def judged(self) -> npt.NDArray[np.bool_]:
        """Which rows have a prediction, (n,)."""
        is_judged: npt.NDArray[np.bool_] = np.any(~np.isnan(self.predictions), axis=(1, 2))
        return is_judged

    def without_gaps_of(self, picks: Sequence[tuple[int, int]]) -> "HiddenPredictions":
        """Return the predictions without the rows that no member of `picks`, (kind, rounds), predicts."""
        has_prediction = np.any([~np.isnan(self.predictions[:, kind, rounds]) for kind, rounds in picks], axis=0)
        return replace(self, predictions=np.where(has_prediction[:, None, None], self.predictions, np.nan))


def predict_hidden(
    sample: TrainingSample, kinds: Sequence[Kind], rng: np.random.Generator, only_inside: bool = True
) -> HiddenPredictions:
    """Hide rows that are as new to the others as the setting is to all; return the members' predictions for them.

    Of each hidden label, as many rows stay visible as the setting has itself, at most half. With `only_inside`, rows
    that would raise doubts are not predicted. If no row remains, all are predicted; if labels are too large to hide,
    single rows are hidden.
    """
    n = len(sample.y)
    fold = folds(sample.novelty, rng)
    few = sample.few if (fold < 0).any() else 0
    predictions = np.full((n, len(kinds), len(ROUNDS)), np.nan)
    draws = np.zeros((DRAWS, n))
    for out in range(int(fold.max()) + 1):
        hidden = np.flatnonzero(fold == out)
        kept = _labels_to_keep(sample.novelty.labels, hidden, few, rng)
        test = np.setdiff1d(hidden, kept)
        train = np.setdiff1d(np.arange(n), test)
        if only_inside and len(test):
            test = test[sample.can_predict(train, test)]
        if len(test) == 0 or len(train) < max(min(_LEAST_ROWS, n - 1), _LEAST_SHARE * n):
            continue
        weights = sample.weighted
        weights[kept] *= _MORE if sample.is_known_a_little else 1.0
        table = sample.table.at(test)
        for index, member in enumerate(sample.at(train).members(kinds, weights[train])):
            if member is not None:
                predictions[test, index], drawn = member.predict(table)
                if drawn is not None:
                    draws[:, test] = drawn - drawn.mean(axis=0)
    novelty = sample.novelty
    answers = HiddenPredictions(predictions, fold, draws, novelty.is_hidden_alike, novelty.hides_single_rows)
    if answers.judged.any():
        return answers
    if only_inside:
        return predict_hidden(sample, kinds, rng, False)
    if len(set(novelty.labels.tolist())) > 1:
        # Whole labels are too large to hide, so hide single rows.
        alone = replace(novelty, labels=np.full(n, "", dtype=object), label="")
        found = predict_hidden(replace(sample, novelty=alone), kinds, rng, False)
        return replace(found, as_asked=novelty.respect == "")
    return answers


def _labels_to_keep(labels: Words, hidden: Places, few: int, rng: np.random.Generator) -> Places:
    if few == 0:
        return np.zeros(0, dtype=np.intp)
    kept = []
    for label in dict.fromkeys(labels[hidden].tolist()):
        rows = rng.permutation(hidden[labels[hidden] == label])
        kept.append(rows[: min(few, len(rows) // 2)])
    return np.concatenate(kept)
