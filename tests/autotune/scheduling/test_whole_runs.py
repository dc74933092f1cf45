import numpy as np
import pytest

from autotune.scheduling.whole_runs import WholeRuns


def test_a_bias_that_depends_on_the_configuration_is_learnt():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.tile([0.0, 1.0], 6), np.linspace(0.0, 1.0, 12)])
    whole = x[:, 1] + 0.01 * rng.standard_normal(12)
    short = whole - 2.0 + 0.5 * x[:, 0]
    told = WholeRuns.of(x, short, whole).forecast(np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([-1.5, -1.0]))
    assert told.mean == pytest.approx([0.5, 0.5], abs=0.05)
    assert (told.spread < 0.1).all()


def test_a_line_with_noise_is_as_unsure_as_its_errors():
    rng = np.random.default_rng(1)
    short, x = rng.uniform(0.0, 1.0, 300), np.zeros((300, 1))
    whole = 2.0 + 0.8 * short + 0.1 * rng.standard_normal(300)
    told = WholeRuns.of(x[:12], short[:12], whole[:12]).forecast(x[12:], short[12:])
    errors = np.abs(whole[12:] - told.mean) / told.spread
    assert 0.85 < (errors < 1.96).mean() <= 1.0


def test_what_no_pair_is_near_to_is_unsure():
    x = np.array([[0.0], [0.1], [0.0], [0.1], [0.05]])
    short = np.linspace(0.0, 1.0, 5)
    told = WholeRuns.of(x, short, short + 1.0).forecast(np.array([[0.05], [1.0]]), np.array([0.5, 0.5]))
    assert told.spread[0] < 0.05
    assert told.spread[1] > 0.14


def test_no_whole_run_is_foretold_to_take_no_time():
    x, short = np.zeros((6, 1)), np.log([10.0, 11.0, 12.0, 13.0, 14.0, 15.0])
    whole = np.log([1.0, 11.0, 21.0, 31.0, 41.0, 51.0])
    told = WholeRuns.of(x, short, whole).forecast(x[:1], np.log([5.0]))
    assert np.isfinite(told.mean).all()
    assert np.isfinite(told.spread).all()
