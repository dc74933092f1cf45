from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import optuna
import pytest

from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.execution.core_pool import CorePool
from autotune.records.study import State
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.standings import Standings
from autotune.storage.study_store import StudyStore
from autotune.studyfile import RepeatsSection
from autotune.tuning.loop import Ending, TuningLoop
from objectives.base import Answer, FailureKind
from tests.support.fakes import (
    SECONDS,
    ListDisplay,
    PaperExecutor,
    bowl,
    definition,
    failed,
    small_space,
    study_file,
    took,
)
from tests.support.managers import managed

SPACE = small_space()


def url(folder):
    return f"sqlite:///{folder / 'autotune.db'}"


def session(folder, executor, *, trials=12, seed=0, display=None, clock=None, repeats=None, **budget):
    store = StudyStore.create(url(folder), "paper", definition(SPACE))
    asker = Asker(store, ValidSetSampler(SPACE, seed=seed))
    manager = managed(executor, folder / "runs", pool=CorePool(range(8)), display=display)
    options = {"clock": clock} if clock else {}
    sections = {"repeats": repeats} if repeats else {}
    study = study_file(budget={"trials": trials, **budget}, **sections)
    return store, manager, TuningLoop(asker, manager, study, **options)


def without_blas(configuration):
    return {name: value for name, value in configuration.items() if name != "blas"}


def standings(store):
    return Standings.of(store.trials(), SECONDS)


def keys(launched):
    return [tuple(sorted(configuration.items())) for _, configuration in launched]


def test_what_is_the_same_in_effect_as_a_measured_trial_is_not_run(tmp_path):
    executor, display = PaperExecutor(bowl), ListDisplay()
    _, manager, runner = session(tmp_path, executor, trials=12, display=display)
    manager.factory = replace(
        manager.factory, alike=lambda one, measured, details: without_blas(one) == without_blas(measured)
    )
    runner.tune()
    ran = [tuple(without_blas(configuration).items()) for _, configuration in executor.launched]
    assert len(set(ran)) == len(ran) == 12
    assert any(line.startswith("passed over, the same in effect as trial") for line in display.lines)


def test_the_default_is_first_and_every_run_is_valid_and_new(tmp_path):
    executor = PaperExecutor(bowl)
    _, _, runner = session(tmp_path, executor, trials=25)
    assert runner.tune() is Ending.BUDGET
    assert executor.launched[0] == (0, {"np": 8})
    assert len(set(keys(executor.launched))) == len(executor.launched) == 25
    assert all(SPACE.contains(configuration) for _, configuration in executor.launched)


def test_the_search_finds_the_best_of_a_smooth_space_early(tmp_path):
    _, _, runner = session(tmp_path, PaperExecutor(bowl), trials=25)
    runner.tune()
    best = runner.status().standings.incumbent
    assert best is not None
    assert dict(best.configuration) == {"np": 4, "npool": 2, "blas": "fast"}


def test_the_same_budget_again_runs_nothing_and_a_larger_one_runs_the_rest(tmp_path):
    first = PaperExecutor(bowl)
    session(tmp_path, first, trials=12)[2].tune()
    again = PaperExecutor(bowl)
    session(tmp_path, again, trials=12)[2].tune()
    assert again.launched == []
    more = PaperExecutor(bowl)
    session(tmp_path, more, trials=16)[2].tune()
    # The default once more, so that the sessions can be compared.
    assert more.launched[0] == (0, {"np": 8})
    assert len(more.launched) == 1 + 4
    assert not set(keys(more.launched[1:])) & set(keys(first.launched))


@pytest.mark.slow
def test_an_exhausted_space_ends_the_study(tmp_path):
    executor = PaperExecutor(bowl)
    store, _, runner = session(tmp_path, executor, trials=1000)
    assert runner.tune() is Ending.EXHAUSTED
    assert len(executor.launched) == SPACE.size.value == len(store.trials())


@pytest.mark.slow
def test_interrupted_at_any_launch_the_study_ends_as_if_it_had_not_been(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    undisturbed, _, runner = session(whole, PaperExecutor(bowl), trials=10)
    runner.tune()
    expected = [(t.number, t.configuration, set(t.measured("wall_s"))) for t in undisturbed.trials()]
    for stop in range(10):
        folder = tmp_path / str(stop)
        folder.mkdir()
        first = PaperExecutor(bowl, at_most=stop)
        with pytest.raises(KeyboardInterrupt):
            session(folder, first, trials=10)[2].tune()
        second = PaperExecutor(bowl)
        store, _, runner = session(folder, second, trials=10)
        runner.tune()
        assert len(first.launched) + len(second.launched) == 10 + (stop > 0)
        assert len(store.runs()) == 10 + (stop > 0)
        assert [(t.number, t.configuration, set(t.measured("wall_s"))) for t in store.trials()] == expected


def test_failures_do_not_end_a_study_and_are_counted_by_kind(tmp_path):
    def model(configuration):
        if configuration.get("npool", 1) > 2:
            return failed(FailureKind.OUT_OF_MEMORY, "not enough memory")
        return bowl(configuration)

    display = ListDisplay()
    store, _, runner = session(tmp_path, PaperExecutor(model), trials=20, display=display)
    runner.tune()
    trials = store.trials()
    assert len(trials) == 20
    count = sum(not trial.complete for trial in trials)
    assert runner.status().standings.counts == {"out of memory": count}
    assert any("not enough memory" in line for line in display.lines)


def test_only_infrastructure_errors_are_run_again(tmp_path):
    told: list[str] = []

    def flaky(configuration):
        told.append("run")
        if len(told) == 2:
            return failed(FailureKind.INFRASTRUCTURE_ERROR, "the node went away")
        return bowl(configuration)

    executor = PaperExecutor(flaky)
    store, _, runner = session(tmp_path, executor, trials=5)
    runner.tune()
    assert [number for number, _ in executor.launched] == [0, 1, 1, 2, 3, 4]
    assert all(trial.complete for trial in store.trials())


def test_a_run_that_the_machine_failed_is_left_for_another_session(tmp_path):
    broken = []

    def flaky(configuration):
        broken.append(configuration)
        return failed(FailureKind.INFRASTRUCTURE_ERROR, "disk full") if 2 <= len(broken) <= 4 else bowl(configuration)

    executor = PaperExecutor(flaky)
    store, _, runner = session(tmp_path, executor, trials=5)
    runner.tune()
    assert [trial.number for trial in store.trials() if trial.state is State.RUNNING] == [1]
    again = PaperExecutor(bowl)
    store, _, runner = session(tmp_path, again, trials=5)
    runner.tune()
    assert [number for number, _ in again.launched] == [0, 1]
    assert all(trial.complete for trial in store.trials())


def test_the_default_configuration_stays_the_baseline_when_its_first_number_was_lost(tmp_path):
    store, _, runner = session(tmp_path, PaperExecutor(bowl), trials=6)
    optuna.load_study(study_name="paper", storage=url(tmp_path)).ask()  # it has no parameters
    runner.tune()
    default = standings(store).baseline
    assert default is not None
    assert default.number == 1
    assert dict(default.configuration) == {"np": 8}
    assert len(store.trials()) == 6


def test_the_default_runs_alone_and_its_answer_is_everybodys_reference(tmp_path):
    class Checking(PaperExecutor):
        def submit(self, task):
            if task.key > 0:
                assert task.reference == Answer("energy", -1.0, 1e-6)
            super().submit(task)

    def answered(configuration):
        return replace(bowl(configuration), answer=Answer("energy", -1.0, 1e-6))

    executor = Checking(answered)
    _, _, runner = session(tmp_path, executor, trials=6, workers=4)
    runner.tune()
    assert len(executor.launched) == 6


def test_a_study_whose_default_cannot_be_run_and_whose_others_fail_stops_early_and_says_why(tmp_path):
    def model(configuration):
        kind = FailureKind.INFRASTRUCTURE_ERROR if configuration == {"np": 8} else FailureKind.APPLICATION_ERROR
        return failed(kind, "pseudopotential not found")

    executor = PaperExecutor(model)
    _, _, runner = session(tmp_path, executor, trials=50, give_up_after=4)
    with pytest.raises(NothingWorkedError, match="4 times: pseudopotential not found"):
        runner.tune()
    assert len({number for number, _ in executor.launched}) == 1 + 4


def test_a_broken_machine_stops_the_study_and_not_the_configurations(tmp_path):
    executor = PaperExecutor(lambda _: failed(FailureKind.INFRASTRUCTURE_ERROR, "No space left on device"))
    _, _, runner = session(tmp_path, executor, trials=50)
    with pytest.raises(CannotRunHereError, match="No space left on device"):
        runner.tune()


def test_no_new_trial_after_the_timeout(tmp_path):
    now = iter(range(100))
    executor = PaperExecutor(bowl)
    _, _, runner = session(tmp_path, executor, trials=50, timeout_s=5, clock=lambda: next(now))
    assert runner.tune() is Ending.TIMEOUT
    assert len(executor.launched) == 4


def test_side_by_side_trials_have_cores_of_their_own(tmp_path):
    class Checking(PaperExecutor):
        def submit(self, task):
            used = [cpu for other, _ in self._ended for cpu in other.job.resources.cpus]
            assert not set(used) & set(task.job.resources.cpus)
            assert len(task.job.resources.cpus) == task.job.resources.cores
            super().submit(task)

    executor = Checking(bowl)
    _, _, runner = session(tmp_path, executor, trials=20, workers=3)
    runner.tune()
    assert sorted(number for number, _ in executor.launched) == list(range(20))


# Repeats, caps and blocks: the paper's runs, with noise that is the same in every test.
REPEATS = RepeatsSection(warm_up_runs=1, baseline_runs=3, baseline_every=5, max_runs=6)


def noisy(seconds, spread=0.05, seed=0):
    rng = np.random.default_rng(seed)
    return lambda configuration: took(seconds(configuration) * float(np.exp(rng.normal(0.0, spread))))


def steep(configuration):
    """Return a time that depends on np alone: 8 is the default, 4 the best."""
    return 1.0 + 0.5 * abs(configuration["np"] - 4)


def test_a_warm_up_is_short_and_no_measurement(tmp_path):
    class Watching(PaperExecutor):
        limits: ClassVar = []

        def submit(self, task):
            self.limits.append(task.job.time_limit_s)
            super().submit(task)

    executor = Watching(lambda _: took(1.0) if len(Watching.limits) > 1 else failed(FailureKind.TIMED_OUT))
    store, _, runner = session(tmp_path, executor, trials=2, repeats=REPEATS)
    runner.tune()
    assert executor.limits[0] == 60.0
    assert executor.limits[1] is None
    assert [str(run.series) for run in store.runs()[:4]] == ["warm-up", "", "", ""]
    assert store.trials()[0].complete


def test_a_run_that_has_lost_is_stopped_and_leaves_a_bound(tmp_path):
    executor = PaperExecutor(noisy(steep, 0.02))
    store, _, runner = session(tmp_path, executor, trials=25, repeats=REPEATS)
    runner.tune()
    found = standings(store)
    stopped = [trial for trial in store.trials() if trial.state is State.CAPPED]
    assert len(stopped) > 5
    best = found.value(found.incumbent)
    for trial in stopped:
        assert found.bound_of(trial) < steep(trial.configuration) * 1.1
        assert found.bound_of(trial) > best
    assert found.counts == {"capped": len(stopped)}


def test_a_drifting_machine_is_noticed_and_does_not_choose_the_winner(tmp_path):
    made = []

    def drifting(configuration):
        # The machine gets slower by 40 % on the way; what runs late is not worse for that.
        made.append(configuration)
        return took(steep(configuration) * (1.0 + 0.4 * (len(made) > 30)) * (1.0 + 0.01 * (len(made) % 3)))

    store, _, runner = session(tmp_path, PaperExecutor(drifting), trials=25, repeats=REPEATS)
    runner.tune()
    found = standings(store)
    # The default opens each block, so that the blocks can be compared.
    assert {run.block for run in store.trials()[0].runs} == {run.block for run in store.runs()}
    assert found.effects.drifts
    assert found.incumbent.configuration["np"] == 4


@pytest.mark.slow
def test_an_interrupted_race_goes_on_with_the_runs_that_ended(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    for stop in range(3, 30, 9):
        folder = tmp_path / str(stop)
        folder.mkdir()
        first = PaperExecutor(noisy(steep, 0.1), at_most=stop)
        with pytest.raises(KeyboardInterrupt):
            session(folder, first, trials=20, repeats=REPEATS)[2].tune()
        before = session(folder, PaperExecutor(bowl))[0].runs()
        store, _, runner = session(folder, PaperExecutor(noisy(steep, 0.1, seed=1)), trials=20, repeats=REPEATS)
        runner.tune()
        assert store.runs()[: len(before)] == before
        assert len(store.trials()) == 20
        assert all(trial.settled for trial in store.trials())


def test_a_repeat_that_fails_for_good_fails_the_trial_but_not_a_proven_default(tmp_path):
    seen = Counter()

    def flaky(configuration):
        key = tuple(sorted(configuration.items()))
        seen[key] += 1
        if seen[key] == 2 and configuration != {"np": 8}:
            return failed(FailureKind.APPLICATION_ERROR, "crashed")
        if configuration == {"np": 8} and seen[key] > 4:
            return failed(FailureKind.APPLICATION_ERROR, "crashed")
        return took(1.0)

    repeats = REPEATS.model_copy(update={"min_runs": 2, "caps": False})
    store, _, runner = session(tmp_path, PaperExecutor(flaky), trials=6, repeats=repeats)
    runner.tune()
    states = [trial.state for trial in store.trials()]
    assert states == [State.COMPLETE] + [State.FAILED] * 5


def test_side_by_side_no_configuration_runs_twice_at_once(tmp_path):
    class Checking(PaperExecutor):
        def submit(self, task):
            assert task.key not in {other.key for other, _ in self._ended}
            super().submit(task)

    store, _, runner = session(tmp_path, Checking(noisy(steep, 0.1)), trials=20, workers=3, repeats=REPEATS)
    runner.tune()
    assert all(trial.settled for trial in store.trials())
