"""Importance of parameters, by Optuna's fANOVA.

Hutter, Hoos & Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter Importance", ICML 2014: the share of
the variance of a random forest's prediction that each parameter explains alone. Optuna's fANOVA knows only parameters
that all trials have, so configurations are encoded as for its samplers: unset is a value. Optuna's default, PED-ANOVA,
compares the best trials with all trials; in a search that soon tries nothing but the best value of a parameter it finds
that this parameter has no importance.
"""

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import create_trial

from autotune.search.base import Rows
from autotune.search.codec import Codec
from autotune.search.mirror_study import new_storage
from spaces import Space

_NAME = "importance"


def importances(space: Space, rows: Rows, costs: NDArray[np.float64]) -> dict[str, float]:
    """Return the share of each parameter that varies, largest first; the shares add up to 1. Empty if none varies.

    Args:
        space: the space of the trials.
        rows: value indexes of the trials, (n, p).
        costs: costs of the trials, (n,).
    """
    varied = [
        parameter.name for parameter, column in zip(space.parameters, rows.T, strict=True) if len(np.unique(column)) > 1
    ]
    if not varied or np.ptp(costs) == 0.0:
        return {}
    codec = Codec(space)
    study = optuna.Study(_NAME, new_storage(_NAME))
    for row, cost in zip(rows, costs.tolist(), strict=True):
        study.add_trial(create_trial(value=cost, params=codec.encode(row), distributions=codec.distributions))
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    shares = [(name, sum(found.get(column, 0.0) for column in codec.columns_of(name))) for name in varied]
    return dict(sorted(shares, key=lambda share: (-share[1], share[0])))
