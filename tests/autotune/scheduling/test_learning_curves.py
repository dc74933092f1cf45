import numpy as np
import pytest
from scipy.optimize import approx_fprime

from autotune.scheduling.learning_curves import LearningCurves, Points, _Posterior

MOST = 30


def curves(levels, reached, *, rate=0.2):
    """Return points and costs of curves that decay to `levels`, (t,), each seen for as many steps as it `reached`."""
    places = np.repeat(np.arange(len(levels)), reached)
    steps = np.concatenate([np.arange(1.0, count + 1.0) for count in reached])
    return Points(places, steps), np.asarray(levels)[places] + np.exp(-rate * steps)


def test_the_gradient_is_that_of_the_posterior():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(4, 2))
    points, costs = curves(rng.normal(size=4), [6, 3, 1, 9])
    posterior = _Posterior.of(x, points, (costs - costs.mean()) / costs.std(), MOST)
    for _ in range(5):
        at = posterior.centres + 0.5 * rng.standard_normal(len(posterior.centres))
        value, gradient = posterior(at)
        assert np.isfinite(value)
        assert gradient == pytest.approx(approx_fprime(at, lambda one: posterior(one)[0], 1e-6), rel=1e-3, abs=1e-3)


def test_a_curve_goes_on_to_fall_as_those_did_that_went_on():
    x = np.linspace(0.0, 1.0, 5)[:, None]
    levels = np.array([0.5, 0.3, 0.6, 0.2, 0.4])
    points, costs = curves(levels, [30, 30, 5, 30, 5])
    model = LearningCurves.of(x, points, costs, MOST)
    told = model.forecast(x[[2, 4]], np.array([6.0, 6.0]), MOST, np.array([2, 4]))
    assert told.mean == pytest.approx([0.6, 0.4], abs=0.1)
    assert (told.mean < costs[np.isin(points.trial, [2, 4]) & (points.step == 5)]).all()


def test_what_was_seen_to_the_end_is_known_and_what_was_not_begun_is_the_least_sure():
    x = np.linspace(0.0, 1.0, 4)[:, None]
    points, costs = curves([0.5, 0.3, 0.6, 0.2], [30, 30, 30, 3])
    model = LearningCurves.of(x, points, costs, MOST)
    seen = model.forecast(x[:1], np.array([30.0]), MOST, np.array([0]))
    begun = model.forecast(x[3:], np.array([4.0]), MOST, np.array([3]))
    new = model.forecast(np.array([[0.9]]), np.array([1.0]), MOST)
    assert seen.mean[0] == pytest.approx(costs[29], abs=0.02)
    assert seen.spread[0] < begun.spread[0] < new.spread[0]


def test_a_look_tells_the_more_the_later_it_is_and_never_more_than_there_is_to_know():
    x = np.linspace(0.0, 1.0, 4)[:, None]
    points, costs = curves([0.5, 0.3, 0.6, 0.2], [30, 4, 20, 3])
    model = LearningCurves.of(x, points, costs, MOST)
    looks = np.array([4.0, 8.0, 16.0, 30.0])
    told = model.forecast(np.repeat(x[3:], 4, axis=0), looks, MOST, np.repeat(3, 4))
    assert (np.diff(told.told) >= 0.0).all()
    assert (told.told <= told.spread).all()
    assert told.told[-1] > 0.8 * told.spread[-1]


def test_forecasts_hold_as_often_as_they_promise():
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(12, 2))
        levels = np.sin(4.0 * x[:, 0]) + 0.2 * rng.standard_normal(12)
        points, costs = curves(levels, [30] * 5 + [4] * 7, rate=0.1)
        model = LearningCurves.of(x, points, costs, MOST)
        told = model.forecast(x[5:], np.full(7, 5.0), MOST, np.arange(5, 12))
        held.append(np.abs(levels[5:] + np.exp(-3.0) - told.mean) < 1.96 * told.spread)
    assert np.mean(held) > 0.85
