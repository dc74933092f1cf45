"""Importance: the share of the differences between a study's trials that each parameter explains."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

import numpy as np

from autotune.formatting import join_words, value_text
from autotune.records.study import State
from autotune.results.summary import Summary
from autotune.search.base import Rows
from autotune.search.free_values import free_values
from autotune.search.guidance.earlier_values import TOLERANCE
from autotune.search.importance import importances
from autotune.search.limit_models import LimitedValues
from autotune.search.training_data import TrainingData
from autotune.storage.damage import content_errors
from spaces import Space, Value

LEAST_VALUES = 5
"""The least number of trials with a value."""

_FEW_EACH = 4
# The most free values of a parameter that a sentence names; JSON has all.
_NAMED = 6
_MOST_SHARE = 0.5
# The computing time grows with the number of trials, and this many are enough.
_MOST = 200


@dataclass(frozen=True)
class ParameterShare:
    """The share of one parameter, from 0 to 1."""

    name: str
    share: float

    def text(self) -> str:
        """Return the parameter and its share in percent."""
        return f"{self.name} {self.share:.0%}"


@dataclass(frozen=True)
class Importance:
    """The shares of all parameters, largest first, in the differences of `metric` between `trials` trials.

    `free` has the values that one parameter of the trial `winner` may get without losing 2 %; None is "unset".
    """

    study: str
    metric: str
    trials: int
    parameters: tuple[ParameterShare, ...]
    winner: int | None = None
    free: Mapping[str, tuple[Value | None, ...]] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """Return sentences on the most important parameters and on how reliable the shares are."""
        first = self.parameters[:3]
        sentences = []
        if sum(one.share for one in first) > _MOST_SHARE:
            named = join_words([one.text() for one in first])
            sentences.append(f"most of the differences in {self.metric} are explained by {named}")
        if self.trials < _FEW_EACH * len(self.parameters):
            few = f"{self.trials} trials are few for {len(self.parameters)} parameters"
            sentences.append(f"{few}: the shares may change with more of them")
        sentences.append("Optuna's importance (fANOVA) has no interval and does not show interactions")
        if self.winner is not None:
            sentences.append(self._sentence_on_free())
        return sentences

    def _sentence_on_free(self) -> str:
        if not self.free:
            return f"no change of trial {self.winner} is sure to lose less than {TOLERANCE:.0%}"
        free = "; ".join(f"{name} to {_values_text(values)}" for name, values in self.free.items())
        return (
            f"trial {self.winner} loses less than {TOLERANCE:.0%} by one of these changes, as the model says: {free}; "
            "`autotune sweep` with --at best measures them"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"sentences": self.sentences()}


def _values_text(values: Sequence[Value | None]) -> str:
    words = [value_text(value) for value in values]
    few = join_words(words[:_NAMED])
    return few if len(words) <= _NAMED else f"{len(words)} values such as {few}"


def importance_of(summary: Summary) -> Importance | None:
    """Return the importance of the parameters; None with too few values, or if no parameter varies or no trial can win.

    A capped trial counts with its bound. Failed trials have no value and are left out.
    """
    standings = summary.standings
    measured = standings.measured
    if summary.has_decision_table or len(measured) < LEAST_VALUES:
        return None
    known = [(standings.to_log(standings.value(trial)), trial.number, trial) for trial in measured]
    capped = [trial for trial in summary.trials if trial.state is State.CAPPED]
    known += [(standings.to_log(standings.bound_of(trial)), trial.number, trial) for trial in capped]
    if len(known) > _MOST:
        ranked = sorted(known, key=lambda one: one[:2])
        known = [ranked[place] for place in np.linspace(0, len(ranked) - 1, _MOST).round().astype(int)]
    with content_errors(f"study {summary.name!r}"):
        space = Space.from_dict(summary.definition.space)
        rows = space.indices([trial.configuration for _, _, trial in known])
    shares = importances(space, rows, np.array([cost for cost, _, _ in known]))
    if not shares:
        return None
    parameters = tuple(ParameterShare(name, round(share, 4)) for name, share in shares.items())
    winner = summary.to_use
    free = {}
    if winner is not None:
        best = space.indices([winner.configuration])[0]
        free = free_values(space, *_evidence(space, summary), best, np.log1p(standings.noise))
    return Importance(
        summary.name,
        standings.metric.name,
        len(measured) + len(capped),
        parameters,
        None if winner is None else winner.number,
        {name: tuple(values) for name, values in free.items()},
    )


def _evidence(space: Space, summary: Summary) -> tuple[Rows, TrainingData]:
    """Return the value indexes of the settled trials, (n, p), and what is known of them."""
    standings = summary.standings
    known = [(trial, standings.to_log(standings.value(trial)), False) for trial in standings.measured]
    for trial in summary.trials:
        if trial.state is State.CAPPED:
            known.append((trial, standings.to_log(standings.bound_of(trial)), True))
        elif trial.state is State.FAILED:
            known.append((trial, inf, False))
    trials, costs, censored = zip(*known, strict=True)
    limits = standings.limits
    values = np.array([limits.values(trial.number) for trial in trials], dtype=float)
    evidence = TrainingData(
        np.array(costs),
        np.array([float(max(1, len(trial.runs))) for trial in trials]),
        np.array(censored),
        tuple(LimitedValues.of(limit, of) for limit, of in zip(limits.limits, values.T, strict=True)),
    )
    return space.indices([trial.configuration for trial in trials]), evidence
