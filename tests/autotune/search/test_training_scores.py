from dataclasses import replace

import numpy as np
import pytest
from optuna.study import StudyDirection

from autotune.search.base import History
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.training_data import are_ratios, training_data_of
from autotune.search.training_scores import training_scores
from autotune.storage.observation import Observation
from spaces import Integer, Space


def training(*values, paused=False):
    """Return a training that had these best values after its steps."""
    return Observation(value=values[-1], partial=paused, curve=tuple(enumerate(values, start=1)))


def ranks(observations, sign=1.0):
    return np.argsort(np.argsort(training_scores(observations, sign))).tolist()


COMPLETE = [training(8.0, 6.0, 5.0), training(9.0, 7.0, 5.5), training(10.0, 8.0, 6.0)]


def test_the_order_within_a_rung_is_kept():
    paused = [training(value, paused=True) for value in (12.0, 8.5, 11.0, 30.0)]
    scores = training_scores([*COMPLETE, *paused], 1.0)[len(COMPLETE) :]
    assert np.argsort(scores).tolist() == [1, 2, 0, 3]


def test_the_order_is_kept_though_the_trainings_that_went_further_crossed():
    crossed = [training(8.0, 6.0), training(9.0, 5.5), training(10.0, 5.0)]
    paused = [training(value, paused=True) for value in (12.0, 8.5, 30.0)]
    scores = training_scores([*crossed, *paused], 1.0)[len(crossed) :]
    assert np.argsort(scores).tolist() == [1, 0, 2]


def test_a_training_is_compared_at_the_step_where_it_stopped():
    # After a step it was ahead of all that were trained further, though each of them ended with a better value.
    assert ranks([*COMPLETE, training(7.0, paused=True)])[-1] == 0
    # After two steps it was behind all of them.
    assert ranks([*COMPLETE, training(8.8, 8.5, paused=True)])[-1] == len(COMPLETE)


def test_a_maximised_metric_gives_the_same_scores():
    observations = [*COMPLETE, training(9.5, paused=True), training(20.0, 6.0, paused=True)]
    mirrored = [
        replace(one, value=-one.value, curve=tuple((step, -value) for step, value in one.curve)) for one in observations
    ]
    # Negative values do not enter as logarithms.
    shifted = [
        replace(one, value=one.value - 50.0, curve=tuple((step, value - 50.0) for step, value in one.curve))
        for one in observations
    ]
    assert training_scores(mirrored, -1.0) == pytest.approx(training_scores(shifted, 1.0))


def test_what_failed_or_runs_has_no_score():
    observations = [*COMPLETE, Observation(), Observation(pending=True), training(9.5, paused=True)]
    found = training_data_of(observations, StudyDirection.MINIMIZE, np.random.default_rng(0))
    assert (found.values[3], found.ranked) == (np.inf, True)
    assert np.isnan(found.values[4])
    assert np.isfinite(found.values[[0, 1, 2, 5]]).all()
    assert not are_ratios(observations)


def test_without_a_paused_training_values_are_compared_by_ratio():
    found = training_data_of(COMPLETE, StudyDirection.MINIMIZE, np.random.default_rng(0))
    assert found.values == pytest.approx(np.log([5.0, 5.5, 6.0]))
    assert not found.ranked


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_search_learns_from_paused_trainings(sign):
    space = Space([Integer.range("x", 0, 99, default=99)])
    direction = StudyDirection.MINIMIZE if sign > 0 else StudyDirection.MAXIMIZE
    # Four trainings far from the optimum were trained to the end; all that is known of it comes from the first step.
    known = [
        (x, training(*(sign * (1.0 + abs(x - 30) / 100 + 1.0 / step) for step in (1, 2, 3)))) for x in (99, 95, 90, 85)
    ]
    known += [(x, training(sign * (2.0 + abs(x - 30) / 100), paused=True)) for x in range(0, 80, 8)]
    rows = space.indices([{"x": x} for x, _ in known])
    proposal = ValidSetSampler(space).propose(History(rows, [one for _, one in known], direction))
    assert abs(proposal["x"] - 30) <= 8
