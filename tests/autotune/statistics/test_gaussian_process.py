import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from autotune.statistics.gaussian_process import (
    PRIORS,
    GaussianProcess,
    Kernel,
    MinusLogPosterior,
    Prior,
    Priors,
    fit,
    fit_kernel,
)

seeds = st.integers(0, 2**32 - 1)


def some(seed, n=12, d=3):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return x, np.sin(5 * x[:, 0]) + 0.1 * rng.normal(size=n), rng.integers(1, 4, n).astype(float)


def posterior_of(seed, sizes):
    """Return minus the logarithm of the posterior of a kernel with parts of these sizes."""
    x, y, runs = some(seed, d=sum(sizes))
    priors = Priors(PRIORS.scale, PRIORS.noise, (Prior(0.0, 1.0, -3.0, 3.0),) * len(sizes), 40)
    return MinusLogPosterior(x, sizes, (y - y.mean()) / y.std(), runs, priors)


@pytest.mark.parametrize("sizes", [(3,), (1, 2)])
@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_the_gradient_is_that_of_the_posterior(seed, sizes):
    posterior = posterior_of(seed, sizes)
    parts = len(sizes)
    low, high = [-1.0] * 3 + [-6.0] + [-1.0] * parts, [1.0] * 3 + [-1.0] + [1.0] * parts
    kernel = np.random.default_rng(seed).uniform(low, high)
    numeric = approx_fprime(kernel, lambda at: posterior(at)[0], 1e-6)
    assert posterior(kernel)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-3)


def test_parts_learn_what_their_own_columns_do():
    rng = np.random.default_rng(0)
    x = rng.random((60, 2))
    priors = Priors(PRIORS.scale, PRIORS.noise, PRIORS.signals * 2, 40)
    kernel = fit_kernel(x, np.sin(6 * x[:, 0]), np.ones(60), priors=priors, sizes=(1, 1))
    first, second = kernel.signals
    assert first > 4 * second
    assert kernel.between(x, x)[range(59), range(1, 60)] == pytest.approx(kernel.covariance_by_row(x[:-1], x[1:]))
    assert np.diag(kernel.between(x, x)) == pytest.approx(kernel.signal)


def test_what_has_no_influence_gets_a_long_scale():
    rng = np.random.default_rng(0)
    x = rng.random((60, 2))
    scales = fit(x, np.sin(6 * x[:, 0])).kernel.scales
    assert scales[1] > 4 * scales[0]


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_a_value_of_many_runs_is_believed_more(seed):
    x, y, _ = some(seed)
    kernel = Kernel(np.full(3, 0.7), (1.0,), 0.3)
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
