import numpy as np
import pytest

from autotune.execution.segments import best_until, curve_of
from autotune.records.study import State
from autotune.scheduling.curve_outlook import CurveOutlook, Frozen, fair_rates
from autotune.scheduling.learning_curves import Forecast
from autotune.statistics.standings import Standings
from autotune.tuning.loop import Ending
from objectives.base import FailureKind
from spaces import Integer, Space
from tests.support.training import SCORE, TrainingExecutor, training_session, training_study

RULE = {"rule": "freeze-thaw"}
BEST = {"batch": 8, "rate": pytest.approx(0.01)}


def steps_of(trained):
    return sum(last - first for _, first, last in trained)


def rates(mean, spread, told, *, best=0.0, leg=1.0, rest=0.0):
    shape = np.broadcast_arrays(*map(np.atleast_1d, (mean, spread, told, leg, rest)))
    mean, spread, told, leg, rest = (np.array(one, dtype=float) for one in shape)
    return fair_rates(Forecast(mean, spread, told), best, leg, rest)


def test_a_leg_to_the_end_is_worth_its_expected_improvement_by_step():
    assert rates(0.0, 1.0, 0.999, leg=4.0)[0] == pytest.approx(0.3989 / 4, rel=0.05)


def test_more_to_know_and_more_to_hope_for_is_worth_more():
    assert (np.diff(rates(0.5, [1.0, 2.0, 4.0], [0.5, 1.0, 2.0], rest=20.0)) > 0).all()
    assert (np.diff(rates([2.0, 1.0, 0.0], 1.0, 0.5, rest=20.0)) > 0).all()


def test_who_may_give_up_after_a_leg_that_tells_much_pays_more_for_it():
    blind, telling = rates(1.0, 1.0, [0.01, 0.9], leg=1.0, rest=20.0)
    assert telling > 2 * blind


def test_the_best_is_found_with_a_fraction_of_the_steps(tmp_path):
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(30, **RULE))
    assert runner.tune() is Ending.BUDGET
    trials = store.trials()
    assert executor.trained[0] == (0, 0, 27)
    assert dict(Standings.of(trials, SCORE).ranking[0].configuration) == BEST
    assert steps_of(executor.trained) < 30 * 27 / 4
    # Nobody was trained over the same steps twice, and none is left open.
    assert steps_of(executor.trained) == sum(trial.runs[-1].steps for trial in trials)
    assert all(trial.settled for trial in trials)
    assert any(trial.state is State.PAUSED for trial in trials)
    assert not list((tmp_path / "runs" / "checkpoints").glob("*/*"))


def test_the_best_that_was_seen_is_trained_to_its_end(tmp_path):
    store, _, runner = training_session(tmp_path, TrainingExecutor(), training_study(15, **RULE))
    runner.tune()
    trials = store.trials()
    seen = [best_until(curve_of(trial.runs[-1].outcome), 27, SCORE) for trial in trials]
    assert Standings.of(trials, SCORE).ranking[0].number == max(range(len(seen)), key=seen.__getitem__)


def session(folder, executor):
    folder.mkdir(exist_ok=True)
    return training_session(folder, executor, training_study(20, **RULE), kept=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return what a study trains that nothing interrupts."""
    executor = TrainingExecutor()
    session(tmp_path_factory.mktemp("whole"), executor)[2].tune()
    return executor.trained


@pytest.mark.slow
@pytest.mark.parametrize("at_most", [0, 1, 5, 30])
def test_an_interrupted_study_ends_as_if_it_had_not_been(tmp_path, whole, at_most):
    first, second = TrainingExecutor(at_most=at_most), TrainingExecutor()
    with pytest.raises(KeyboardInterrupt):
        session(tmp_path / "cut", first)[2].tune()
    session(tmp_path / "cut", second)[2].tune()
    assert first.trained + second.trained == whole


def test_several_workers_and_more_trials_later_leave_nothing_open(tmp_path):
    for trials in (10, 20):
        executor = TrainingExecutor()
        study = training_study(trials, **RULE)
        store, _, runner = training_session(tmp_path, executor, study, workers=4, kept=True)
        runner.tune()
        assert len(store.trials()) == trials
        assert all(trial.settled for trial in store.trials())


def test_few_trials_are_enough(tmp_path):
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(3, **RULE))
    runner.tune()
    assert all(trial.settled for trial in store.trials())


def test_who_fails_and_who_ends_by_itself_is_not_trained_further(tmp_path):
    executor = TrainingExecutor(
        fails=lambda configuration, step: configuration["batch"] == 8,
        ends=lambda configuration: 2 if configuration["batch"] == 16 else 27,
    )
    store, _, runner = training_session(tmp_path, executor, training_study(40, **RULE))
    runner.tune()
    for trial in store.trials():
        if trial.configuration["batch"] == 8:
            assert trial.failure.failure is FailureKind.OUT_OF_MEMORY
        elif trial.configuration["batch"] == 16:
            assert max(step for step, _ in curve_of(trial.runs[-1].outcome)) <= 2
    assert max(last for number, _, last in executor.trained if number) == 27


def test_where_all_costs_are_above_zero_none_is_foretold_that_is_not():
    # They fall by as much from rung to rung, and would go on to fall below 0.
    space = Space([Integer.range("a", 0, 7, default=0)])
    costs = ((3.0, 1.5 + 0.01 * number, 0.02 + 0.01 * number) for number in range(8))
    rungs = zip(costs, (3, 3, 3, 3, 2, 2, 1, 1), strict=True)
    curves = [
        Frozen(number, {"a": number}, (1, 3, 9)[:reached], fell[:reached], over=False)
        for number, (fell, reached) in enumerate(rungs)
    ]
    told = CurveOutlook(space, (1, 3, 9, 27), curves).trials
    assert all(0.0 < one.cost <= curves[number].costs[-1] for number, one in told.items())
