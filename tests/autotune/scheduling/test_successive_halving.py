from collections import Counter
from dataclasses import replace

import pytest

from autotune.comparison.confirm import confirm
from autotune.errors import NothingWorkedError
from autotune.execution.segments import CURVE, Segment, SegmentWatch, join_segments
from autotune.records.outcome import Outcome
from autotune.records.study import ENDED, State
from autotune.results.summary import summarise
from autotune.scheduling.checkpoints import Checkpoints
from autotune.scheduling.hyperband import Bracket, brackets
from autotune.scheduling.successive_halving import extend_brackets
from autotune.statistics.standings import Standings
from autotune.storage.readable_study import BRACKETS
from autotune.studyfile import StoppingSection
from autotune.tuning.loop import Ending
from launchers import STDERR, STDOUT
from objectives.base import REMARK, FailureKind, Progress
from tests.support import training
from tests.support.fakes import definition
from tests.support.training import (
    SCORE,
    SPACE,
    PaperTraining,
    TrainingExecutor,
    learned,
    training_session,
    training_study,
)


def steps_of(trained):
    return sum(last - first for _, first, last in trained)


def test_hyperband_trains_as_its_table_says_and_continues_from_checkpoints(tmp_path):
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(50))
    assert runner.tune() in {Ending.BUDGET, Ending.EXHAUSTED}
    trials = store.trials()
    # The space has 40 configurations: the default, and 39 of 49 in two brackets of 20 and one of 9.
    assert len(trials) == 40
    reached = Counter(trial.runs[-1].steps for trial in trials[1:21])
    assert reached == {1: 14, 3: 4, 9: 1, 27: 1}
    # Nobody was trained over the same steps twice.
    assert steps_of(executor.trained) == sum(trial.runs[-1].steps for trial in trials)
    assert all(trial.settled for trial in trials)
    assert not list((tmp_path / "runs" / "checkpoints").glob("*/*"))


@pytest.mark.parametrize("workers", [1, 4])
def test_the_default_waits_at_its_first_rung_until_another_trial_is_complete(tmp_path, workers):
    executor = TrainingExecutor()
    _, _, runner = training_session(tmp_path, executor, training_study(40), workers=workers, model=False)
    runner.tune()
    of_default = [place for place, (number, _, _) in enumerate(executor.trained) if number == 0]
    assert [executor.trained[place] for place in of_default] == [(0, 0, 1), (0, 1, 27)]
    first = next(place for place, (number, _, last) in enumerate(executor.trained) if number and last == 27)
    assert of_default[0] == 0
    assert first < of_default[1] <= first + workers


@pytest.mark.parametrize("rule", ["hyperband", "asha", "median", "none"])
def test_the_default_is_trained_to_its_end_if_no_other_trial_is(tmp_path, rule):
    executor = TrainingExecutor(fails=lambda configuration, step: configuration != SPACE.default())
    store, _, runner = training_session(tmp_path, executor, training_study(4, rule=rule), model=False)
    runner.tune()
    assert Standings.of(store.trials(), SCORE).ranking == store.trials()[:1]


def test_after_a_time_out_only_the_default_is_trained_on(tmp_path):
    executor, study = TrainingExecutor(), training_study(40)
    study = study.model_copy(update={"budget": study.budget.model_copy(update={"timeout_s": 1.0})})
    store, _, runner = training_session(tmp_path, executor, study, model=False)
    runner._clock = lambda: 2.0 * any(last == 27 for _, _, last in executor.trained)
    assert runner.tune() is Ending.TIMEOUT
    assert [number for number, _, last in executor.trained if last == 27][1:] == [0]
    assert Standings.of(store.trials(), SCORE).baseline is not None


def test_a_default_that_is_not_trained_to_its_end_is_not_said_to_have_failed(tmp_path):
    whole = TrainingExecutor()
    training_session(tmp_path / "a", whole, training_study(40), model=False)[2].tune()
    executor = TrainingExecutor(at_most=whole.trained.index((0, 1, 27)))
    store, _, runner = training_session(tmp_path / "b", executor, training_study(40), model=False)
    with pytest.raises(KeyboardInterrupt):
        runner.tune()
    found = summarise(store)
    assert "The default configuration is not trained to its end yet" in found.best_text()
    assert found.next_step("`autotune study`") == "Train the default to its end: `autotune study` goes on."


@pytest.mark.slow
def test_the_best_is_found_with_a_fraction_of_the_steps(tmp_path):
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(40), model=False)
    runner.tune()
    best = Standings.of(store.trials(), SCORE).ranking[0]
    assert dict(best.configuration) == {"batch": 8, "rate": pytest.approx(0.01)}
    assert steps_of(executor.trained) < 40 * 27 / 3


def test_what_is_read_from_storage_is_what_the_session_knew(tmp_path):
    store, _, runner = training_session(tmp_path, TrainingExecutor(), training_study(12), kept=True)
    runner.tune()
    known = {trial.number: trial for trial in store.trials()}
    for number, trial in runner._trials.items():
        assert known[number].state is trial.state
        assert [run.outcome.metrics for run in known[number].runs] == [run.outcome.metrics for run in trial.runs]
    standings = Standings.of(known.values(), SCORE)
    for trial in standings.ranking:
        assert standings.value(trial) == pytest.approx(learned(trial.configuration, 27))


def test_a_paused_trial_has_no_value_to_compare(tmp_path):
    store, _, runner = training_session(tmp_path, TrainingExecutor(), training_study(20))
    runner.tune()
    standings = Standings.of(store.trials(), SCORE)
    assert {trial.runs[-1].steps for trial in standings.ranking} == {27}
    assert any(trial.state is State.PAUSED for trial in standings.trials.values())
    frozen = store._study.get_trials(deepcopy=False)
    assert all(trial.value is None for trial in frozen if standings.trials[trial.number].state is State.PAUSED)


def test_the_search_gets_the_own_values_of_a_paused_trial(tmp_path):
    store, _, runner = training_session(tmp_path, TrainingExecutor(), training_study(40))
    runner.tune()
    paused = [trial for trial in store.trials() if trial.state is State.PAUSED]
    assert sum(trial.complete for trial in store.trials()) >= 4
    for trial in paused:
        seen = runner._observations()[trial.number]
        assert seen.partial
        assert seen.value == pytest.approx(learned(trial.configuration, trial.runs[-1].steps))
        assert [step for step, _ in seen.curve] == list(range(1, trial.runs[-1].steps + 1))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Return the result of an uninterrupted study: its brackets, the segments trained, and the configurations."""
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path_factory.mktemp("whole"), executor, training_study(30))
    runner.tune()
    return store.attribute(BRACKETS), executor.trained, [trial.configuration for trial in store.trials()]


@pytest.mark.slow
@pytest.mark.parametrize("at_most", [0, 1, 5, 30])
def test_an_interrupted_study_ends_with_the_same_brackets_and_repeats_nothing(tmp_path, uninterrupted, at_most):
    first, second = TrainingExecutor(at_most=at_most), TrainingExecutor()
    store, _, runner = training_session(tmp_path / "b", first, training_study(30), kept=True)
    with pytest.raises(KeyboardInterrupt):
        runner.tune()
    store, _, runner = training_session(tmp_path / "b", second, training_study(30), kept=True)
    runner.tune()
    configurations = [trial.configuration for trial in store.trials()]
    assert (store.attribute(BRACKETS), first.trained + second.trained, configurations) == uninterrupted


@pytest.fixture(autouse=True)
def folders(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()


def test_the_curve_of_a_killed_run_is_looked_for_in_the_file_that_its_job_reports_progress_in(tmp_path, monkeypatch):
    class InStderr(PaperTraining):
        def job(self, configuration, context):
            return replace(super().job(configuration, context), progress_file=STDERR)

        def progress_reader(self):
            return lambda line: Progress(1, {SCORE.name: float(line)})

    monkeypatch.setattr(training, "PaperTraining", InStderr)
    store, _, runner = training_session(tmp_path, TrainingExecutor(at_most=0), training_study(4), kept=True)
    with pytest.raises(KeyboardInterrupt):
        runner.tune()
    (folder,) = (tmp_path / "runs").glob("00000*")
    for stream, text in ((STDOUT, "0.5"), (STDERR, "0.25")):
        (folder / stream).write_text(text)
    lost = Checkpoints(tmp_path / "runs", store.mark).note_start(0, folder.name, InStderr(), SCORE)
    assert lost == ((1, 0.25),)


def test_more_trials_leave_the_brackets_as_they_were(tmp_path):
    store, _, runner = training_session(tmp_path, TrainingExecutor(), training_study(10), kept=True)
    runner.tune()
    before = store.attribute(BRACKETS)["brackets"]
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(20), kept=True)
    runner.tune()
    assert store.attribute(BRACKETS)["brackets"][: len(before)] == before
    assert {number for number, _, _ in executor.trained} == set(range(10, 20))


def test_several_workers_get_the_rungs_filled_too(tmp_path):
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(28), workers=4, model=False)
    runner.tune()
    assert all(trial.settled for trial in store.trials())
    assert 27 in {trial.runs[-1].steps for trial in store.trials()[1:]}


def test_asha_does_not_wait(tmp_path):
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(28, rule="asha"), model=False)
    runner.tune()
    order = [(first, last) for _, first, last in executor.trained[1:]]
    assert (1, 3) in order[:5]
    assert 27 in {trial.runs[-1].steps for trial in store.trials()[1:]}


def test_the_median_rule_stops_who_falls_behind(tmp_path):
    executor = TrainingExecutor()
    store, _, runner = training_session(tmp_path, executor, training_study(20, rule="median", min_steps=3), model=False)
    runner.tune()
    stopped = [trial for trial in store.trials() if trial.state is State.PAUSED]
    assert stopped
    assert all(trial.runs[-1].outcome.details["stopped"] >= 3 for trial in stopped)
    assert steps_of(executor.trained) < 20 * 27


def test_without_a_rule_everybody_is_trained_to_the_end(tmp_path):
    executor = TrainingExecutor()
    _, _, runner = training_session(tmp_path, executor, training_study(6, rule="none"))
    runner.tune()
    assert [(first, last) for _, first, last in executor.trained] == [(0, 27)] * 6


def test_who_runs_out_of_memory_is_not_trained_further(tmp_path):
    executor = TrainingExecutor(fails=lambda configuration, step: configuration["batch"] == 8)
    store, _, runner = training_session(tmp_path, executor, training_study(40), model=False)
    runner.tune()
    failed = [trial for trial in store.trials() if trial.state is State.FAILED]
    assert {trial.configuration["batch"] for trial in failed} == {8}
    assert {trial.failure.failure for trial in failed} == {FailureKind.OUT_OF_MEMORY}
    assert Standings.of(store.trials(), SCORE).ranking[0].configuration["batch"] == 16


def test_a_training_without_a_step_has_failed(tmp_path):
    executor = TrainingExecutor(ends=lambda configuration: 0 if configuration["batch"] == 8 else 27)
    store, _, runner = training_session(tmp_path, executor, training_study(40), model=False)
    runner.tune()
    failed = [trial for trial in store.trials() if trial.state is State.FAILED]
    assert {trial.configuration["batch"] for trial in failed} == {8}
    assert {trial.failure.failure for trial in failed} == {FailureKind.INVALID_RESULT}


class Losing(TrainingExecutor):
    """Loses the segment of the first promoted trial in every try."""

    def __init__(self):
        super().__init__()
        self.lost = None

    def _outcome(self, key, segment, configuration):
        if key != 0 and segment.steps > 1 and self.lost in {None, key}:
            self.lost = key
            return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code="x", message="the node went away")
        return super()._outcome(key, segment, configuration)


@pytest.mark.parametrize("rule", ["hyperband", "asha"])
def test_who_is_promoted_and_lost_by_the_machine_goes_on_from_its_checkpoint_in_another_session(tmp_path, rule):
    study, losing, executor = training_study(12, rule=rule), Losing(), TrainingExecutor()
    store, _, runner = training_session(tmp_path, losing, study, kept=True)
    runner.tune()
    lost = store.trials()[losing.lost]
    assert (lost.state, lost.settled, lost.runs[-1].steps) == (State.PAUSED, False, 1)
    assert list((tmp_path / "runs" / "checkpoints").glob(f"*/{losing.lost:05d}/*"))
    store, _, runner = training_session(tmp_path, executor, study, kept=True)
    runner.tune()
    # With the others by now another one may be better.
    assert rule != "hyperband" or (losing.lost, 1) in {(number, first) for number, first, _ in executor.trained}
    assert all(trial.settled for trial in store.trials())


def test_who_ends_by_itself_is_complete(tmp_path):
    executor = TrainingExecutor(ends=lambda configuration: 2)
    store, _, runner = training_session(tmp_path, executor, training_study(12), model=False)
    runner.tune()
    assert max(last for _, _, last in executor.trained) == 2
    winners = [trial for trial in store.trials() if trial.complete]
    assert winners
    assert all(trial.runs[-1].outcome.details[ENDED] == 2 for trial in winners if trial.runs[-1].steps > 2)


def segment(steps=9, **floors):
    return Segment(steps, 27, SCORE, {int(step[1:]): value for step, value in floors.items()})


def test_a_program_that_goes_too_far_is_stopped_and_what_it_did_there_does_not_count():
    watch = SegmentWatch(segment(2))
    assert not watch(Progress(2, {"score": 0.2}))
    assert watch(Progress(3, {"score": 0.9}))
    outcome = Outcome(metrics={"score": 0.9}, details={CURVE: [[1, 0.1], [2, 0.2], [3, 0.9]]})
    assert join_segments(None, outcome, segment(2)).metrics["score"] == 0.2


def test_the_best_so_far_is_held_against_a_floor():
    watch = SegmentWatch(segment(9, s2=0.5, s3=0.5))
    assert not watch(Progress(1, {"score": 0.6}))
    assert not watch(Progress(2, {"score": 0.1}))
    behind = SegmentWatch(segment(9, s2=0.5))
    assert behind(Progress(2, {"score": 0.4}))
    assert behind.behind == 2


def test_a_step_that_is_told_by_several_lines_is_judged_when_its_metric_is():
    watch = SegmentWatch(segment(9, s2=0.5))
    assert not watch(Progress(1, {"score": 0.1}))
    assert not watch(Progress(2, {"loss": 0.3}))
    assert not watch(Progress(2, {"score": 0.6}))
    behind = SegmentWatch(segment(9, s2=0.5))
    assert not behind(Progress(1, {"score": 0.1}))
    assert not behind(Progress(2, {"loss": 0.3}))
    assert behind(Progress(3, {"loss": 0.3}))
    assert behind.behind == 2


def test_a_curve_goes_on_where_the_last_leg_left_it():
    first = Outcome(metrics={"score": 0.5}, details={CURVE: [[1, 0.5], [2, 0.4]]})
    second = Outcome(metrics={"score": 0.3}, details={CURVE: [[3, 0.3], [4, 0.2]]})
    found = join_segments(first, second, segment(4))
    assert found.metrics["score"] == 0.5
    assert [step for step, _ in found.details[CURVE]] == [1, 2, 3, 4]
    assert ENDED not in found.details
    assert join_segments(first, second, segment(9)).details[ENDED] == 4


def test_brackets_are_extended_for_what_is_missing():
    rules = StoppingSection(max_steps=27)
    known = brackets(27, 1, 3)
    assert extend_brackets(known, 49, rules) == extend_brackets(known, 20, rules) == known
    assert extend_brackets(known, 60, rules)[: len(known)] == known
    assert sum(bracket.sizes[0] for bracket in extend_brackets(known, 60, rules)) == 60
    assert extend_brackets((), 7, StoppingSection(max_steps=27, rule="none")) == (Bracket((7,), (27,)),)


def test_metrics_beside_the_best_are_those_of_its_step_and_times_add_up():
    first = Outcome(metrics={"score": 0.9, "loss": 0.1, "elapsed_s": 2.0}, details={CURVE: [[1, 0.9]]})
    second = Outcome(
        metrics={"score": 0.5, "loss": 0.7, "elapsed_s": 3.0}, details={CURVE: [[2, 0.5]], REMARK: "overfits"}
    )
    both = join_segments(first, second, segment(2))
    assert both.metrics == {"score": 0.9, "loss": 0.1, "elapsed_s": 5.0}
    assert REMARK not in both.details


def test_a_metric_that_comes_at_some_steps_only_does_not_end_a_trial():
    outcome = Outcome(metrics={"score": 0.5}, details={CURVE: [[5, 0.5]], "last_step": 9})
    assert ENDED not in join_segments(None, outcome, segment(9)).details
    early = Outcome(metrics={"score": 0.5}, details={CURVE: [[5, 0.5]], "last_step": 7})
    assert join_segments(None, early, segment(9)).details[ENDED] == 7


def test_what_was_best_before_is_held_against_a_floor_too():
    ahead = SegmentWatch(Segment(9, 27, SCORE, {3: 0.5}, best=0.6))
    assert not ahead(Progress(3, {"score": 0.1}))


def test_a_default_that_fails_before_any_other_has_worked_ends_the_study_at_once(tmp_path):
    executor = TrainingExecutor(fails=lambda configuration, step: configuration["batch"] == 64)
    store, _, runner = training_session(tmp_path, executor, training_study(30), model=False)
    with pytest.raises(NothingWorkedError, match="the default configuration failed"):
        runner.tune()
    assert len(store.runs()) == 1


@pytest.mark.slow
def test_nothing_stays_open_when_the_space_is_exhausted(tmp_path):
    store, _, runner = training_session(tmp_path, TrainingExecutor(), training_study(60, rule="asha"), model=False)
    assert runner.tune() is Ending.EXHAUSTED
    assert all(trial.settled for trial in store.trials())


def test_a_study_trained_to_another_end_cannot_be_continued():
    def known(**stopping):
        return definition(SPACE, metrics=(SCORE,), study={"stopping": stopping or None})

    assert known(max_steps=9).differences(known(max_steps=9, eta=4)) == []
    assert "max_steps 9 there, 27 here" in known(max_steps=9).differences(known(max_steps=27))[0]
    assert "max_steps 9 there, nothing here" in known(max_steps=9).differences(known())[0]


def test_comparisons_draw_other_random_numbers_than_tuning_and_each_other(tmp_path):
    executor = TrainingExecutor()
    study = training_study(8)
    store, manager, runner = training_session(tmp_path, executor, study, model=False)
    runner.tune()
    seeds = []
    submit = executor.submit

    def listening(task):
        seeds.append(task.job.argv[2])
        submit(task)

    executor.submit = listening
    confirm(store, manager, study)
    assert "0" not in seeds
    used = Counter(seeds)
    runs = {(run.series, run.round) for run in store.runs() if run.series.is_comparison}
    assert len(used) == len(runs)
