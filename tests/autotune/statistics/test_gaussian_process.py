import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from autotune.search import initial_design
from autotune.statistics.gaussian_process import GaussianProcess, Kernel, _Posterior, fit

seeds = st.integers(0, 2**32 - 1)


def some(seed, n=12, d=3):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return x, np.sin(5 * x[:, 0]) + 0.1 * rng.normal(size=n), rng.integers(1, 4, n).astype(float)


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_the_gradient_is_that_of_the_posterior(seed):
    x, y, runs = some(seed)
    squares = ((x[:, None, :] - x[None, :, :]) ** 2).reshape(-1, x.shape[1])
    posterior = _Posterior(squares, (y - y.mean()) / y.std(), runs)
    kernel = np.random.default_rng(seed).uniform([-1.0] * 3 + [-6.0, -1.0], [1.0] * 3 + [-1.0, 1.0])
    numeric = approx_fprime(kernel, lambda at: posterior(at)[0], 1e-6)
    assert posterior(kernel)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-3)


def test_what_has_no_influence_gets_a_long_scale():
    rng = np.random.default_rng(0)
    x = rng.random((60, 2))
    scales = fit(x, np.sin(6 * x[:, 0])).kernel.scales
    assert scales[1] > 4 * scales[0]


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_a_value_of_many_runs_is_believed_more(seed):
    x, y, _ = some(seed)
    kernel = Kernel(np.full(3, 0.7), 1.0, 0.3)
    far = y.copy()
    far[0] += 3.0
    once, often = (
        GaussianProcess.of(kernel, x, far, np.r_[runs, np.ones(11)]).predict(x[:1])[0][0] for runs in (1.0, 50.0)
    )
    assert once < often <= far[0] + 0.5


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_a_trial_that_runs_makes_its_surroundings_less_uncertain_and_promises_nothing(seed):
    x, y, runs = some(seed)
    surrogate = fit(x, y, runs)
    at = np.random.default_rng(seed + 1).random((1, 3))
    mean, deviation = surrogate.predict(at)
    after, less = surrogate.believing(at).predict(at)
    assert less[0] <= deviation[0] + 1e-9
    assert after[0] == pytest.approx(mean[0], abs=0.1 * y.std())


def test_a_design_takes_the_middle_then_the_corner():
    line = np.linspace(0.0, 1.0, 11)[:, None]
    first = initial_design.ranked(line, line[:1])[0]
    assert 0.5 <= line[first, 0] <= 0.9
    second = initial_design.ranked(line, line[[0, first]])[0]
    gaps = np.abs(line - line[[0, first]].T).min(1)
    assert gaps[second] == gaps.max()
