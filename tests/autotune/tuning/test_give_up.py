"""A study whose runs fail stops at the default, and failed trials get a second chance."""

import pytest

from autotune.errors import NothingWorkedError
from autotune.execution.core_pool import CorePool
from autotune.records.series import SeriesKind
from autotune.records.study import State
from autotune.results.ledger import ledger_of
from autotune.scheduling.repeats import Step
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.standings import Standings
from autotune.storage.stored_study import open_stored_study
from autotune.storage.study_store import StudyStore
from autotune.tuning.give_up import check_anything_worked
from autotune.tuning.loop import TuningLoop
from autotune.tuning.retry import describe_reopened, retry_failed
from launchers import STDERR, STDOUT
from objectives.base import FailureKind
from tests.autotune.tuning.test_loop import SPACE, url
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, bowl, definition, failed, study_file, took
from tests.support.managers import managed
from tests.support.stored import add_trial

WRONG = failed(FailureKind.INVALID_RESULT, "energy is not there")


def tune(folder, model, *, trials=6, everything=None, objective="paper"):
    """Tune as a session does; return the numbers of the trials that ran, and the messages."""
    executor, display = PaperExecutor(model), ListDisplay()
    store = StudyStore.create(url(folder), "paper", definition(SPACE))
    if everything is not None:
        retry_failed(store, everything=everything)
    manager = managed(executor, folder / "runs", pool=CorePool(range(8)), display=display)
    study = study_file(budget={"trials": trials}, objective=objective)
    try:
        TuningLoop(Asker(store, ValidSetSampler(SPACE, seed=0)), manager, study).tune()
    finally:
        display.lines.append([number for number, _ in executor.launched])
    return display.lines[-1], display.lines[:-1]


def many_ranks_fail(configuration):
    return WRONG if configuration["np"] in {6, 7} else bowl(configuration)


def test_a_default_that_fails_stops_the_study_at_once_and_shows_the_end_of_its_output(tmp_path):
    def model(configuration):
        folder = tmp_path / "runs" / "00000"
        (folder / STDOUT).write_text("".join(f"step {n}\n" for n in range(100)) + "bad\x1b[2Jend\n")
        (folder / STDERR).write_text("cannot open in.melt\n")
        return WRONG

    with pytest.raises(NothingWorkedError) as stopped:
        tune(tmp_path, model)
    said = str(stopped.value)
    assert "invalid result: energy is not there" in said
    assert "np=8" in said
    assert "  step 99\n" in said
    assert "step 50\n" not in said
    assert "cannot open in.melt" in said
    assert "\x1b" not in said
    assert str(tmp_path / "runs" / "00000") in said
    assert "same command again" in said
    assert len(StudyStore.read(url(tmp_path), "paper").runs()) == 1


def test_after_a_default_that_failed_the_same_command_runs_it_again_and_goes_on(tmp_path):
    with pytest.raises(NothingWorkedError):
        tune(tmp_path, lambda _: WRONG)
    numbers, lines = tune(tmp_path, bowl, everything=False)
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert "trial 0: failed, runs again" in lines
    study = open_stored_study(url(tmp_path), "paper")
    assert all(trial.complete and trial.settled for trial in study.trials())
    assert [run.outcome.message for run in study.runs() if run.series.kind is SeriesKind.ASIDE] == [
        "energy is not there"
    ]


def test_recorded_runs_and_those_of_other_programs_may_lack_the_default(tmp_path):
    numbers, _ = tune(tmp_path, lambda c: WRONG if c == {"np": 8} else bowl(c), objective="external")
    assert len(numbers) == 6


def test_failed_trials_run_again_when_that_is_asked_for_and_their_history_stays(tmp_path):
    tune(tmp_path, many_ranks_fail, trials=12)
    before = {t.number for t in open_stored_study(url(tmp_path), "paper").trials() if t.state is State.FAILED}
    assert before
    assert tune(tmp_path, bowl, trials=12, everything=False)[0] == []
    numbers, _ = tune(tmp_path, bowl, trials=12, everything=True)
    assert set(numbers) - {0} == before
    store = StudyStore.read(url(tmp_path), "paper")
    assert all(trial.complete and trial.settled for trial in store.trials())
    aside = [run for run in store.runs() if run.series.kind is SeriesKind.ASIDE]
    assert {run.trial for run in aside} == before
    # Optuna's own tools see the new values, too.
    with store.as_optuna() as optuna_study:
        assert all(trial.value is not None for trial in optuna_study.trials)
    spent = ledger_of(store.runs(), store.trials(), None, 6)
    assert spent.failed == pytest.approx(sum(run.core_s for run in aside))


def test_a_trial_that_runs_again_counts_on_from_the_runs_before_its_first_failure(tmp_path):
    """Runs are named by their number: the next one must not get the folder of one that counts."""
    store = StudyStore.create(url(tmp_path), "paper", definition(SPACE))
    add_trial(store, SPACE, {"np": 8}, *map(took, (9.0, 9.1, 9.2)))
    add_trial(store, SPACE, {"np": 4, "npool": 1}, took(1.0), WRONG, took(2.0), WRONG)
    add_trial(store, SPACE, {"np": 2, "npool": 1}, WRONG, took(3.0))
    retry_failed(store, everything=True)
    trials = store.trials()
    assert [trial.measured(SECONDS.name) for trial in trials] == [[9.0, 9.1, 9.2], [1.0], []]
    assert [Step(trial).run_name for trial in trials[1:]] == ["00001-1", "00002"]
    assert describe_reopened(trials, store.runs(), ()) == ["trial 2: failed, runs again"]


def test_a_study_of_which_every_trial_failed_says_so_in_the_end(tmp_path):
    store = StudyStore.create(url(tmp_path), "paper", definition(SPACE))
    check_anything_worked(Standings.of(store.trials(), SECONDS))  # nothing ran yet
    tune(tmp_path, lambda _: WRONG, trials=3, objective="external")
    with pytest.raises(NothingWorkedError, match="3 times: energy is not there"):
        check_anything_worked(Standings.of(store.trials(), SECONDS))
