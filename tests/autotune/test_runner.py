from dataclasses import replace

import pytest

from autotune.confirm import confirm
from autotune.cores import CorePool
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.records import baseline, incumbent
from autotune.runner import Bench, Ending, StudyRunner
from autotune.search.sampler import ValidSetSampler
from autotune.search.store import StudyStore
from autotune.studyfile import BudgetSection, VerdictSection
from objectives.base import Answer, FailureKind
from tests.autotune.fakes import (
    SECONDS,
    ListDisplay,
    PaperExecutor,
    PaperObjective,
    bowl,
    definition,
    failed,
    small_space,
    took,
)

SPACE = small_space()


def url(folder):
    return f"sqlite:///{folder / 'autotune.db'}"


def session(folder, executor, *, trials=12, seed=0, display=None, clock=None, **budget):
    store = StudyStore.create(url(folder), "paper", definition(SPACE))
    store.use(ValidSetSampler(SPACE, seed=seed))
    bench = Bench(PaperObjective(), executor, CorePool(range(8)), folder / "runs", display or ListDisplay())
    options = {"clock": clock} if clock else {}
    return store, bench, StudyRunner(store, SPACE, bench, BudgetSection(trials=trials, **budget), **options)


def keys(launched):
    return [tuple(sorted(configuration.items())) for _, configuration in launched]


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
    best = runner.status().best
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
    assert len(more.launched) == 4
    assert not set(keys(more.launched)) & set(keys(first.launched))


def test_an_exhausted_space_ends_the_study(tmp_path):
    executor = PaperExecutor(bowl)
    store, _, runner = session(tmp_path, executor, trials=1000)
    assert runner.tune() is Ending.EXHAUSTED
    assert len(executor.launched) == SPACE.size.value == len(store.trials())


def test_interrupted_at_any_launch_the_study_ends_as_if_it_had_not_been(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    undisturbed, _, runner = session(whole, PaperExecutor(bowl), trials=10)
    runner.tune()
    expected = [(t.number, t.configuration, t.value(SECONDS)) for t in undisturbed.trials()]
    for stop in range(10):
        folder = tmp_path / str(stop)
        folder.mkdir()
        first = PaperExecutor(bowl, at_most=stop)
        with pytest.raises(KeyboardInterrupt):
            session(folder, first, trials=10)[2].tune()
        second = PaperExecutor(bowl)
        store, _, runner = session(folder, second, trials=10)
        runner.tune()
        assert len(first.launched) + len(second.launched) == 10
        assert [(t.number, t.configuration, t.value(SECONDS)) for t in store.trials()] == expected


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
    assert runner.status().failures == {"out of memory": count}
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
    assert [trial.number for trial in store.trials() if trial.outcome is None] == [1]
    again = PaperExecutor(bowl)
    store, _, runner = session(tmp_path, again, trials=5)
    runner.tune()
    assert [number for number, _ in again.launched] == [1]
    assert all(trial.complete for trial in store.trials())


def test_the_default_configuration_stays_the_baseline_when_its_first_number_was_lost(tmp_path):
    store, _, _ = session(tmp_path, PaperExecutor(bowl))
    store.ask(SPACE)
    store, _, runner = session(tmp_path, PaperExecutor(bowl), trials=6)
    runner.tune()
    default = baseline(store.trials())
    assert default is not None
    assert default.number == 1
    assert dict(default.configuration) == {"np": 8}
    assert len(store.trials()) == 6


def test_the_default_runs_alone_and_its_answer_is_everybodys_reference(tmp_path):
    class Checking(PaperExecutor):
        def submit(self, task):
            if task.number > 0:
                assert task.reference == Answer("energy", -1.0, 1e-6)
            super().submit(task)

    def answered(configuration):
        return replace(bowl(configuration), answer=Answer("energy", -1.0, 1e-6))

    executor = Checking(answered)
    _, _, runner = session(tmp_path, executor, trials=6, workers=4)
    runner.tune()
    assert len(executor.launched) == 6


def test_a_study_whose_every_run_fails_stops_early_and_says_why(tmp_path):
    executor = PaperExecutor(lambda _: failed(FailureKind.APPLICATION_ERROR, "pseudopotential not found"))
    _, _, runner = session(tmp_path, executor, trials=50, give_up_after=4)
    with pytest.raises(NothingWorkedError, match="4 times: pseudopotential not found"):
        runner.tune()
    assert len(executor.launched) == 4


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


def test_the_winner_is_confirmed_once_and_resumes_after_an_interruption(tmp_path):
    executor = PaperExecutor(bowl, at_most=12 + 5)
    store, bench, runner = session(tmp_path, executor, trials=12)
    runner.tune()
    with pytest.raises(KeyboardInterrupt):
        confirm(store, bench, VerdictSection(pairs=4), seed=0)
    again = PaperExecutor(bowl)
    store, bench, _ = session(tmp_path, again, trials=12)
    verdict = confirm(store, bench, VerdictSection(pairs=4), seed=0)
    assert verdict is not None
    assert len(verdict.pairs) == 4
    assert len(again.launched) == 4
    assert verdict.significant(SECONDS)
    assert confirm(store, bench, VerdictSection(pairs=4), seed=0) == verdict
    assert len(again.launched) == 4


def test_there_is_nothing_to_confirm_when_the_default_is_best(tmp_path):
    model = {8: 1.0}
    store, bench, runner = session(
        tmp_path, PaperExecutor(lambda c: took(model.get(c["np"] + len(c) - 1, 2.0))), trials=6
    )
    runner.tune()
    best = incumbent(store.trials(), SECONDS)
    assert best is not None
    assert best.number == 0
    assert confirm(store, bench, VerdictSection(), seed=0) is None


def test_a_machine_that_fails_while_confirming_stops_it_and_stores_nothing(tmp_path):
    store, bench, runner = session(tmp_path, PaperExecutor(bowl), trials=12)
    runner.tune()
    full = PaperExecutor(lambda _: failed(FailureKind.INFRASTRUCTURE_ERROR, "disk full"))
    with pytest.raises(CannotRunHereError, match="disk full"):
        confirm(store, replace(bench, executor=full), VerdictSection(pairs=4), seed=0)
    verdict = confirm(store, bench, VerdictSection(pairs=4), seed=0)
    assert verdict is not None
    assert len(verdict.pairs) == 4


def test_a_winner_that_cannot_be_repeated_gets_no_verdict(tmp_path):
    store, bench, runner = session(tmp_path, PaperExecutor(bowl), trials=12)
    runner.tune()
    broken = PaperExecutor(lambda _: failed(FailureKind.APPLICATION_ERROR, "not this time"))
    bench = Bench(PaperObjective(), broken, CorePool(range(8)), tmp_path / "runs", ListDisplay())
    verdict = confirm(store, bench, VerdictSection(pairs=4), seed=0)
    assert verdict is not None
    assert not verdict.known
    assert "not this time" in verdict.sentence(SECONDS)
