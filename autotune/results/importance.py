"""Importance: what share of the differences between a study's trials each parameter explains."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from autotune.formatting import listed
from autotune.records.study import State
from autotune.results.summary import Summary
from autotune.search.importance import importances
from spaces import Space

LEAST_VALUES = 5
"""Trials with a value below which there is no importance."""

_FEW_EACH = 4
# The time grows with the number of trials; so many say enough.
_MOST = 200


@dataclass(frozen=True)
class ParameterShare:
    """The share of the importance, from 0 to 1, that one parameter has."""

    name: str
    share: float

    def text(self) -> str:
        """Return the parameter and its share in percent."""
        return f"{self.name} {self.share:.0%}"


@dataclass(frozen=True)
class Importance:
    """The shares of the parameters, largest first, in the differences of `metric` between `trials` trials."""

    study: str
    metric: str
    trials: int
    parameters: tuple[ParameterShare, ...]

    def sentences(self) -> list[str]:
        """Say what matters, and how far to trust it."""
        named = listed([one.text() for one in self.parameters[:3]])
        sentences = [f"most of the differences in {self.metric} are explained by {named}"]
        if self.trials < _FEW_EACH * len(self.parameters):
            few = f"{self.trials} trials are few for {len(self.parameters)} parameters"
            sentences.append(f"{few}: the shares may change with more of them")
        sentences.append("Optuna's importance (fANOVA) has no interval, and does not tell of interactions")
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"sentences": self.sentences()}


def importance_of(summary: Summary) -> Importance | None:
    """Return what matters in a study; None with too few values, if no parameter varies, or if no trial can win.

    A capped trial counts with its bound. Failed ones are left out: they have no value.
    """
    standings = summary.standings
    measured = standings.measured
    if summary.has_decision_table or len(measured) < LEAST_VALUES:
        return None
    known = [(standings.to_log(standings.value(trial)), trial.number, trial) for trial in measured]
    capped = [trial for trial in summary.trials if trial.state is State.CAPPED]
    known += [(standings.to_log(standings.bound(trial)), trial.number, trial) for trial in capped]
    if len(known) > _MOST:
        ranked = sorted(known, key=lambda one: one[:2])
        known = [ranked[place] for place in np.linspace(0, len(ranked) - 1, _MOST).round().astype(int)]
    space = Space.from_dict(summary.definition.space)
    rows = space.indices([trial.configuration for _, _, trial in known])
    shares = importances(space, rows, np.array([cost for cost, _, _ in known]))
    if not shares:
        return None
    parameters = tuple(ParameterShare(name, round(share, 4)) for name, share in shares.items())
    return Importance(summary.name, standings.metric.name, len(measured) + len(capped), parameters)
