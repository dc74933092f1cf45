from pathlib import Path

import numpy as np
import pytest

from autotune.execution.task import Task
from launchers import Job
from spaces import Integer, Space
from tests.support.fakes import SECONDS
from tests.support.noise import normal, spikes
from tests.support.simulated import (
    SimulatedExecutor,
    Simulation,
    objective,
    simulated_study,
    study_file,
)

pytestmark = pytest.mark.full

SPACE = Space([Integer.range(name, 1, 4, default=1) for name in ("a", "b", "c")])
DEFAULT_S = 50.0
TRIALS = 12


def noisy_executor(noise, seed, quiet_s=lambda configuration: DEFAULT_S):
    factors = noise(np.random.default_rng([seed, 10**6]))
    return SimulatedExecutor(lambda configuration, _: quiet_s(configuration) * next(factors), seed)


def task(cap=None, time_limit_s=None):
    job = Job(("simulated", "{}"), Path("nowhere"), time_limit_s=time_limit_s)
    return Task(0, job, objective(), cap=cap)


@pytest.mark.parametrize("noise", [normal, spikes])
def test_useless_parameters_are_seldom_said_to_help(noise):
    claimed = 0
    for seed in range(30):
        _, verdict, _ = simulated_study(SPACE, noisy_executor(noise, seed), trials=TRIALS, seed=seed, sampler="random")
        claimed += verdict is not None and verdict.significant(SECONDS)
    # At 2.5 % each, more than three of thirty happen once in 200 times.
    assert claimed <= 3


def test_a_parameter_that_helps_by_a_fifth_is_found():
    def quiet_s(configuration):
        return DEFAULT_S / 1.2 if configuration["a"] == 4 else DEFAULT_S

    found = 0
    for seed in range(15):
        executor = noisy_executor(normal, seed, quiet_s)
        store, verdict, _ = simulated_study(SPACE, executor, trials=TRIALS, seed=seed, sampler="random")
        trials = {trial.number: trial for trial in store.trials()}
        found += verdict is not None and verdict.significant(SECONDS) and trials[verdict.winner].configuration["a"] == 4
    # In one of forty studies, twelve of 64 configurations include none of the sixteen good ones.
    assert found >= 13


def test_caps_save_time_in_a_study():
    def slow_but_default(configuration, rng):
        return (1.0 + sum(configuration.values())) * (1.0 + 0.01 * rng.standard_normal())

    spent = {}
    for caps in (True, False):
        study = study_file(trials=TRIALS, sampler="random")
        study = study.model_copy(update={"repeats": study.repeats.model_copy(update={"caps": caps})})
        simulation = Simulation.of(SPACE, SimulatedExecutor(slow_but_default, 0), study)
        simulation.tune()
        spent[caps] = simulation.executor.spent_s
    assert spent[True] < 0.8 * spent[False]
