from math import inf

import numpy as np
import pytest
from optuna.study import StudyDirection

from autotune.records.limit import Limit
from autotune.search.base import History
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.limit_models import LimitModels, limited_values
from autotune.search.optuna_adapter import values_to_minimise
from autotune.search.training_data import training_data_of
from autotune.storage.observation import Observation
from objectives.base import Metric
from spaces import Integer, Space

SQUARE = Space([Integer.range(name, 1, 30, default=1) for name in ("x", "y")])
MEMORY = Metric("memory", "B")
MOST = Limit(MEMORY, high=25.0)


def observed(configuration):
    """The fastest is x = y = 30, but memory grows with both: a limit of 25 leaves x + y <= 25."""
    x, y = configuration["x"], configuration["y"]
    return Observation(value=100.0 - x - 1.5 * y, limited=(float(x + y),))


def searched(limits, budget, seed=0):
    sampler = ValidSetSampler(SQUARE, seed=seed)
    sampler.set_limits(limits)
    tried = []
    while len(tried) < budget:
        history = History(SQUARE.indices(tried), [observed(one) for one in tried], StudyDirection.MINIMIZE)
        tried.append(sampler.propose(history))
    return tried


def test_a_search_under_a_limit_finds_the_best_that_keeps_it_and_spends_little_on_what_breaks_it():
    tried = searched((MOST,), 18)
    keeping = [one for one in tried if one["x"] + one["y"] <= 25]
    assert min(observed(one).value for one in keeping) <= observed({"x": 1, "y": 23}).value
    assert len(keeping) > len([one for one in searched((), 18) if one["x"] + one["y"] <= 25])


def test_where_nothing_keeps_the_limit_yet_what_may_keep_it_is_looked_for():
    sampler = ValidSetSampler(SQUARE)
    sampler.set_limits((Limit(MEMORY, high=4.0),))
    tried = [{"x": x, "y": y} for x, y in ((30, 30), (30, 12), (12, 30), (20, 20), (8, 30), (30, 8), (9, 9), (8, 11))]
    history = History(SQUARE.indices(tried), [observed(one) for one in tried], StudyDirection.MINIMIZE)
    proposed = sampler.propose(history)
    assert proposed["x"] + proposed["y"] < 18


@pytest.mark.parametrize(("low", "high"), [(-inf, 10.0), (10.0, inf), (9.0, 11.0)])
def test_the_chance_to_keep_a_limit_is_that_of_a_normal_variable(low, high):
    x = np.linspace(0.0, 1.0, 9)[:, None]
    observations = [Observation(value=1.0, limited=(8.0 + 4.0 * at,)) for at in x[:, 0]]
    limited = limited_values((Limit(MEMORY, low, high),), observations)
    models = LimitModels.fit(limited, x, np.ones(9), np.arange(9))
    keeps = np.exp(models.log_chance(np.array([[0.02], [0.5], [0.98]])))
    first, last = float(low <= 8.08), float(high >= 11.92)
    assert keeps[0] == pytest.approx(first if low != 9.0 else 0.0, abs=0.05)
    assert keeps[2] == pytest.approx(last, abs=0.05)
    assert 0.2 < keeps[1] <= 1.0


def test_trials_without_a_value_of_the_metric_say_nothing_of_the_limit():
    observations = [Observation(value=1.0), Observation(pending=True), Observation(), Observation(1.0, limited=(None,))]
    limited = limited_values((MOST,), observations)
    assert not limited[0].kept.any()
    models = LimitModels.fit(limited, np.zeros((4, 1)), np.ones(4), np.arange(4))
    assert models.log_chance(np.zeros((2, 1))).tolist() == [0.0, 0.0]


def test_a_metric_that_may_be_negative_is_not_taken_by_its_logarithm():
    observations = [Observation(value=1.0, limited=(value,)) for value in (-2.0, 0.0, 5.0)]
    (limited,) = limited_values((Limit(MEMORY, high=1.0),), observations)
    assert limited.kept.tolist() == [True, True, False]
    assert limited.beyond.tolist() == [0.0, 0.0, 4.0]


def test_others_samplers_are_told_that_what_breaks_a_limit_is_worse_than_what_keeps_it_and_how_much():
    rng = np.random.default_rng(0)
    observations = [
        Observation(value=9.0, limited=(20.0,)),
        Observation(value=1.0, limited=(26.0,)),
        Observation(value=1.0, limited=(40.0,)),
        Observation(value=3.0, limited=(10.0,)),
        Observation(),
    ]
    values = values_to_minimise(training_data_of(observations, StudyDirection.MINIMIZE, rng, (MOST,)))
    assert values[3] < values[0] < values[1] < values[2] <= values[4]
