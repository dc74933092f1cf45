import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from autotune.search import initial_design
from autotune.search.acquisition import log_expected_improvement
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.suggest import ask
from autotune.statistics.gaussian_process import fit
from spaces import Integer, Space

optuna.logging.set_verbosity(optuna.logging.WARNING)


def study(space, seed=0, **options):
    return optuna.create_study(sampler=ValidSetSampler(space, seed=seed, **options))


@pytest.mark.slow
def test_a_failing_region_is_avoided():
    space = Space([Integer.range("x", 0, 99, default=99), Integer.range("y", 0, 9, default=9)])
    searched = study(space)
    failures = 0
    for number in range(40):
        trial = ask(searched, space)
        if trial.params["x"] >= 50:
            searched.tell(trial, state=TrialState.FAIL)
            failures += number >= 15
        else:
            searched.tell(trial, 1.0 + abs(trial.params["x"] - 20) / 20 + trial.params["y"] / 10)
    assert failures <= 8  # of 25; at random it would be half


@pytest.mark.full
def test_it_beats_random_on_the_mean_of_many_seeds():
    space = Space([Integer.range("x", 0, 99, default=99), Integer.range("y", 0, 99, default=99)])

    def found(seed, model):
        searched = study(space, seed, model=model)
        for _ in range(30):
            trial = ask(searched, space)
            searched.tell(trial, 1 + ((trial.params["x"] - 30) / 50) ** 2 + ((trial.params["y"] - 60) / 50) ** 2)
        return searched.best_value

    guided = np.mean([found(seed, model=True) for seed in range(8)])
    random = np.mean([found(seed, model=False) for seed in range(8)])
    assert guided < random


def test_maximisation():
    space = Space([Integer.range("x", 0, 200, default=0)])
    searched = optuna.create_study(direction="maximize", sampler=ValidSetSampler(space))
    for _ in range(25):
        trial = ask(searched, space)
        searched.tell(trial, 1000.0 - (trial.params["x"] - 150) ** 2 / 100)
    assert abs(searched.best_params["x"] - 150) <= 5


def test_the_surrogate_passes_through_what_it_was_shown():
    x = np.linspace(0, 1, 9)[:, None]
    y = np.sin(6 * x[:, 0])
    mean, deviation = fit(x, y).predict(x)
    assert np.abs(mean - y).max() < 0.1
    far_mean, far_deviation = fit(x, y).predict(np.array([[3.0]]))
    assert far_deviation[0] > deviation.max()
    assert np.isfinite(far_mean).all()


def test_expected_improvement_is_that_of_the_paper():
    # At the best value itself, EI = deviation * phi(0).
    value = log_expected_improvement(np.array([1.0, 2.0]), np.array([2.0, 0.5]), 1.0)
    assert np.exp(value[0]) == pytest.approx(2.0 * 0.3989423, rel=1e-6)
    assert np.exp(value[1]) == pytest.approx(0.5 * (0.05399097 - 2.0 * 0.02275013), rel=1e-5)


def test_where_an_improvement_is_next_to_impossible_its_logarithm_still_tells():
    distances = np.linspace(0.0, 60.0, 601)
    values = log_expected_improvement(distances, np.ones(601), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) < 0.0).all()


def test_a_design_takes_the_middle_then_the_corner():
    line = np.linspace(0.0, 1.0, 11)[:, None]
    first = initial_design.rank(line, line[:1])[0]
    assert 0.5 <= line[first, 0] <= 0.9
    second = initial_design.rank(line, line[[0, first]])[0]
    gaps = np.abs(line - line[[0, first]].T).min(1)
    assert gaps[second] == gaps.max()
