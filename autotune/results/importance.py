"""Importance: the share of the differences between a study's trials that each parameter explains."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from autotune.formatting import join_words
from autotune.records.study import State
from autotune.results.summary import Summary
from autotune.search.importance import importances
from autotune.storage.damage import content_errors
from spaces import Space

LEAST_VALUES = 5
"""The least number of trials with a value."""

_FEW_EACH = 4
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
    """The shares of all parameters, largest first, in the differences of `metric` between `trials` trials."""

    study: str
    metric: str
    trials: int
    parameters: tuple[ParameterShare, ...]

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
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"sentences": self.sentences()}


def importance_of(summary: Summary) -> Importance | None:
    """Return the importance of the parameters; None with too few values, or if no parameter varies or no trial can win.

    A capped trial counts with its bound. Failed trials have no value and are left out.
    """
    standings = summary.standings
    measured = standings.measured
    if summary.has_decision_table or len(measured) < LEAST_VALUES:
        return None
    known = [(standings.to_log(standings.undisturbed_value(trial)), trial.number, trial) for trial in measured]
    capped = [trial for trial in summary.trials if trial.state is State.CAPPED]
    known += [(standings.to_log(standings.undisturbed_value(trial)), trial.number, trial) for trial in capped]
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
    return Importance(summary.name, standings.metric.name, len(measured) + len(capped), parameters)
