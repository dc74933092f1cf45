"""Scores of trainings that stopped at different steps, so that a model learns from every rung.

Values of different steps are never compared. From the last rung down, the line through the values that others had at a
step, and their final ones, gives the final value that is expected of a training paused there. So the order within a
rung is kept. The score is the rank as a normal deviate: trainings that diverged would leave no room for the differences
between good ones.
"""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from autotune.storage.observation import Observation

# With fewer trainings that went further, only their mean gain is used, since a line would follow single values.
_LEAST_FOR_LINE = 3
# Above 0, so that trainings of a rung keep their order though those that went further crossed.
_LEAST_SLOPE = 0.05


def training_scores(observations: Sequence[Observation], sign: float) -> NDArray[np.float64]:
    """Return the scores to minimise, (n,), of trainings with values; `sign` is -1 if the metric is maximised."""
    curves = [np.array(observation.curve or _as_curve(observation), dtype=np.float64) for observation in observations]
    if all((curve[:, 1] > 0.0).all() for curve in curves):
        for curve in curves:
            curve[:, 1] = np.log(curve[:, 1])
    last = sign * np.array([curve[-1, 1] for curve in curves])
    # A training that ended by itself would not have become better.
    stops = np.array([curve[-1, 0] if one.partial else np.inf for one, curve in zip(observations, curves, strict=True)])
    final = last.copy()
    for stop in np.unique(stops[np.isfinite(stops)])[::-1]:
        here = stops == stop
        then = sign * np.array([_value_at(curve, stop) for curve in curves])
        beyond = (stops > stop) & np.isfinite(then)
        if beyond.any():
            final[here] = _continue(then[beyond], final[beyond], last[here])
    scores: NDArray[np.float64] = scipy.special.ndtri((scipy.stats.rankdata(final) - 0.5) / len(final))
    return scores


def _as_curve(observation: Observation) -> list[tuple[float, float]]:
    """Return the curve of a training whose result alone is stored."""
    value = observation.bound if observation.value is None else observation.value
    return [(np.inf, np.nan if value is None else value)]


def _value_at(curve: NDArray[np.float64], step: float) -> float:
    place = int(np.searchsorted(curve[:, 0], step, side="right"))
    return float(curve[place - 1, 1]) if place else np.nan


def _continue(
    then: NDArray[np.float64], final: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the final values expected of `values` at a step, given those of others `then` and their `final` ones."""
    away = then - then.mean()
    squares = float(away @ away)
    slope = 1.0
    if len(then) >= _LEAST_FOR_LINE and squares > 0.0:
        slope = float(np.clip(away @ final / squares, _LEAST_SLOPE, 1.0))
    expected: NDArray[np.float64] = final.mean() + slope * (values - then.mean())
    return expected
