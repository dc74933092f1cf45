"""The Gaussian process of a study that has trials: what is expected of any valid configuration."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from autotune.records.study import State, TrialRecord
from autotune.results.summary import Summary
from autotune.search.gaussian_process import Array, GaussianProcess, fit_censored
from autotune.statistics.standings import Standings
from spaces import Space

LEAST_VALUES = 5
"""A process of fewer trials with a value would repeat what was assumed of it."""

# A process over n points costs n^3: of more trials the best, and others that are spread over the study, tell of all.
_MOST = 300
_MOST_CAPPED = 100


@dataclass(frozen=True)
class StudyProcess:
    """The process of the logarithms of a study's values, lower is better, over the traits of its `space`.

    It was fitted to trials with a value, `valued` of them, and to the bounds of `capped` ones. Failed trials are left
    out: they have no value, and where runs fail is no matter of how fast they are.
    """

    space: Space
    process: GaussianProcess
    standings: Standings
    valued: int
    capped: int

    def predicted(self, rows: "np.ndarray[Any, np.dtype[np.int32]]", confidence: float = 0.95) -> Array:
        """Return what is expected at value indexes, (n, p), in the metric's unit, with its interval: (n, 3)."""
        mean, deviation = self.process.predict(self.space.traits_of(rows))
        away = float(norm.ppf((1.0 + confidence) / 2.0))
        # The process knows the logarithm as it is minimised: that of a rate is turned.
        ends = np.stack([mean, mean - away * deviation, mean + away * deviation], axis=1)
        values: Array = np.exp(self.standings.metric.cost(1.0) * ends)
        return np.column_stack([values[:, 0], values[:, 1:].min(1), values[:, 1:].max(1)])


def study_process(summary: Summary) -> StudyProcess | None:
    """Return the process of a study; None where too few trials have a value, or its trials do not compete."""
    standings = summary.standings
    if summary.decides or len(standings.measured) < LEAST_VALUES:
        return None
    known = [(trial, standings.value(trial), False) for trial in _kept(standings.measured, _MOST)]
    bounds = [trial for trial in summary.trials if trial.state is State.CAPPED]
    known += [(trial, standings.bound(trial), True) for trial in _kept(bounds, _MOST_CAPPED)]
    space = Space.from_dict(summary.definition.space)
    traits = space.traits_of(space.indices([trial.configuration for trial, _, _ in known]))
    values = np.array([standings.to_log(value) for _, value, _ in known])
    runs = np.array([float(max(1, len(trial.measured(standings.metric.name)))) for trial, _, _ in known])
    censored = np.array([is_bound for _, _, is_bound in known])
    process = fit_censored(traits, values, runs, censored)
    return StudyProcess(space, process, standings, len(standings.measured), len(bounds))


def _kept(trials: list[TrialRecord], most: int) -> list[TrialRecord]:
    """Return at most so many trials: the first third, which are the best, and others evenly."""
    if len(trials) <= most:
        return trials
    best = most // 3
    places = np.linspace(best, len(trials) - 1, most - best).round().astype(int)
    return [*trials[:best], *(trials[place] for place in places)]
