from pathlib import Path

import numpy as np
import pytest

from autotune.execution.capping import Cap
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.statistics.pace import Pace
from autotune.statistics.standings import Standings
from launchers import Job
from objectives.base import FailureKind
from spaces import Integer, Space
from tests.support.fakes import SECONDS
from tests.support.noise import normal, spikes
from tests.support.simulated import (
    SimulatedExecutor,
    Simulation,
    objective,
    run_for,
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


def even_pace(elapsed_s):
    return Pace(tuple((step, elapsed_s * step / 10) for step in range(1, 11)), elapsed_s, elapsed_s)


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


def test_a_capped_run_costs_less_and_one_that_tells_its_pace_still_less():
    by_time = Cap(SECONDS, bound=20.0, elapsed_s=20.0)
    by_pace = Cap(SECONDS, bound=20.0, elapsed_s=20.0, pace=even_pace(16.0))
    whole, capped, paced = run_for(task(), 60.0), run_for(task(by_time), 60.0), run_for(task(by_pace), 60.0, steps=10)
    assert whole.metrics == {SECONDS.name: 60.0}
    assert capped.bound == paced.bound == 20.0
    assert (whole.usage.elapsed_s, capped.usage.elapsed_s, paced.usage.elapsed_s) == (60.0, 20.0, 18.0)


def test_a_run_within_its_cap_is_measured():
    assert run_for(task(Cap(SECONDS, 20.0, 20.0, even_pace(16.0))), 19.0, steps=10).metrics == {SECONDS.name: 19.0}


def test_a_run_beyond_its_own_time_limit_has_failed():
    outcome = run_for(task(Cap(SECONDS, 20.0, 20.0), time_limit_s=10.0), 60.0)
    assert outcome.failure is FailureKind.TIMED_OUT
    assert outcome.usage.elapsed_s == 10.0


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


def test_a_configuration_that_fails_is_no_winner():
    def value_of(configuration, rng):
        if configuration["a"] == 4:
            return Outcome(failure=FailureKind.APPLICATION_ERROR, message="no")
        return DEFAULT_S / configuration["a"] * (1.0 + 0.01 * rng.standard_normal())

    store, verdict, _ = simulated_study(SPACE, SimulatedExecutor(value_of, 0), trials=TRIALS, seed=0, sampler="random")
    assert verdict is not None
    assert store.trials()[verdict.winner].configuration["a"] == 3


def test_a_study_that_is_resumed_loses_nothing():
    study = study_file(trials=TRIALS, sampler="random")
    simulation = Simulation.of(SPACE, noisy_executor(normal, 0), study)
    simulation.tune(6)
    before = simulation.store.runs()
    simulation.tune(TRIALS)
    runs, trials = simulation.store.runs(), simulation.store.trials()
    assert runs[: len(before)] == before
    assert len(runs) == simulation.executor.runs
    assert sum(run.outcome.usage.elapsed_s for run in runs) == pytest.approx(simulation.executor.spent_s)
    assert len(trials) == len({tuple(trial.configuration.values()) for trial in trials}) == TRIALS
    assert all(trial.settled for trial in trials)
    counted = [run for run in runs if run.series.is_tuning]
    assert sum(len(trial.runs) for trial in trials) == len(counted)
    blocks = [run.block for run in counted]
    assert blocks == sorted(blocks)
    runs_of = Standings.of(trials, SECONDS).effects.runs
    assert {number: len(runs) for number, runs in runs_of.items()} == {
        trial.number: len(trial.runs) for trial in trials if trial.complete
    }
