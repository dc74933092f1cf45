"""Free values: what may change in the winner, one parameter at a time, without losing more than a tolerance.

The process of the search predicts how much worse the winner is with another value. A value is free if the upper end of
this loss stays below the tolerance, noise included, and the limits are kept. A value need not have been measured.
"""

import numpy as np

from autotune.search.acquisition import fit_model
from autotune.search.base import Rows
from autotune.search.expected_gain import DOUBT
from autotune.search.guidance.earlier_values import TOLERANCE
from autotune.search.training_data import TrainingData
from spaces import Space, Value

# The loss is below this many standard deviations in 95 % of cases.
_DEVIATIONS = 1.645
# With fewer values the model is too sure.
_LEAST = 20
# Runs near the winner work and keep the limits at least this often.
_WORKS = 0.9


def free_values(
    space: Space, rows: Rows, evidence: TrainingData, winner: Rows, noise: float
) -> dict[str, list[Value | None]]:
    """Return for each parameter the other values that cost less than `TOLERANCE`; None is "unset".

    Args:
        space: The space.
        rows: The value indexes of the trials, (n, p).
        evidence: The trials, with logarithms as values.
        winner: The value indexes of the winner, (p,).
        noise: The standard deviation of the logarithms of runs of one configuration.
    """
    model = fit_model(space, rows, evidence) if evidence.valued.sum() >= _LEAST else None
    if model is None:
        return {}
    free: dict[str, list[Value | None]] = {}
    for place, parameter in enumerate(space.parameters):
        others = np.array(
            [value for value in range(-1, len(parameter.values)) if value != winner[place]], dtype=np.int32
        )
        changed = np.repeat(winner[None, :], len(others), axis=0)
        changed[:, place] = others
        changed = changed[space.valid_indices(changed)]
        if not len(changed):
            continue
        traits = space.traits_of(np.concatenate([winner[None, :], changed]))
        places = np.arange(1, len(traits))
        loss, deviation = model.surrogate.at(traits).differences(places, np.zeros_like(places))
        kept = loss + _DEVIATIONS * DOUBT * (deviation + noise) <= np.log1p(TOLERANCE)
        kept &= model.works(traits[1:]) * np.exp(model.limits.log_chance(traits[1:])) >= _WORKS
        found = changed[kept][:, place]
        if len(found):
            free[parameter.name] = [None if value < 0 else parameter.values[value] for value in found.tolist()]
    return free
