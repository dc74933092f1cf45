import sys
from pathlib import Path

import pytest

from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import (
    ApplicationError,
    Context,
    InfrastructureError,
    InvalidResult,
    Metric,
    OutOfMemory,
    Output,
    PlanError,
    RunFailure,
    TimedOut,
)
from objectives.training import script
from objectives.training.objective import CURVE, TIME_TO_TARGET, TrainingObjective

AUC = Metric("val_auc", "", "maximize")
LOSS = Metric("val_loss", "", "minimize")
LINES = (
    '{"step": 1, "val_auc": 0.2, "val_loss": 0.9, "elapsed_s": 2.0}\n'
    '{"step": 2, "val_auc": 0.6, "val_loss": 0.5, "elapsed_s": 4.0}\n'
    '{"step": 3, "val_auc": 0.4, "val_loss": 0.4, "elapsed_s": 6.0}\n'
)
training = TrainingObjective(("train", "--rate={rate}", "--amp={amp}"), AUC, (LOSS,), {"RATE": "{rate}"})


def output(stdout="", stderr="", exit_code=0, reason=EndReason.EXITED, elapsed_s=7.0):
    return Output(stdout, stderr, JobStatus(JobState.ENDED, reason, exit_code, Usage(elapsed_s)), Path("/nowhere"))


def test_the_job_is_asked_for_its_steps_and_where_to_go_on_from(tmp_path):
    context = Context(tmp_path, (0,), 9.0, steps=3, checkpoint=tmp_path / "kept", seed=4)
    job = training.job({"rate": 0.1}, context)
    assert job.argv == ("train", "--rate=0.1")
    assert job.environment["AUTOTUNE_STEPS"] == "3"
    assert job.environment["AUTOTUNE_CHECKPOINT"] == str(tmp_path / "kept")
    assert job.environment["AUTOTUNE_SEED"] == "4"
    assert job.environment["RATE"] == "0.1"
    alone = training.job({"rate": 0.1}, Context(tmp_path)).environment
    assert "AUTOTUNE_STEPS" not in alone
    assert "AUTOTUNE_CHECKPOINT" not in alone


def test_the_best_value_counts_and_the_others_are_those_of_its_step():
    found = training.measure(output(LINES))
    assert found.metrics == {"val_auc": 0.6, "val_loss": 0.5, "elapsed_s": 7.0}
    assert found.details[CURVE] == [[1, 0.2], [2, 0.6], [3, 0.4]]
    least = TrainingObjective(("train",), LOSS).measure(output(LINES))
    assert least.metrics["val_loss"] == 0.4


def test_the_last_word_on_a_step_counts():
    assert training.measure(output(LINES + '{"step": 2, "val_auc": 0.5, "val_loss": 0.5}\n')).metrics["val_auc"] == 0.5


@pytest.mark.parametrize(
    ("ended", "failure", "code"),
    [
        (output(LINES, "out of memory: batch size 8\n", 12), OutOfMemory, "out-of-memory"),
        (output(LINES, "diverged: the loss is nan at step 4\n", 3), InvalidResult, "diverged"),
        (output(LINES, "no such file\n", 1), ApplicationError, "exit-code"),
        (output(LINES, reason=EndReason.TIMED_OUT, exit_code=-15), TimedOut, "time-limit"),
        (output(LINES, reason=EndReason.CANCELLED, exit_code=-15), InfrastructureError, "lost"),
        (output("hello\n"), InvalidResult, "no-progress"),
        (output(""), InvalidResult, "no-progress"),
    ],
)
def test_failures_are_told_apart_in_the_scripts_own_words(ended, failure, code):
    with pytest.raises(RunFailure) as caught:
        training.measure(ended)
    assert (type(caught.value), caught.value.code) == (failure, code)
    if ended.stderr:
        assert ended.stderr.strip() in str(caught.value)


def test_a_metric_that_is_told_at_some_steps_only(tmp_path):
    found = training.measure(output('{"step": 1, "loss": 1}\n{"step": 2, "val_auc": 0.5}\n{"step": 3, "loss": 1}\n'))
    assert found.details["last_step"] == 3
    with pytest.raises(InvalidResult, match=r"up to step 1 tells val_auc.*min_steps"):
        training.measure(output('{"step": 1, "loss": 1}\n'))


def test_a_job_has_as_many_threads_as_cores(tmp_path):
    wide = TrainingObjective(("train",), AUC, cores=4)
    assert wide.job({}, Context(tmp_path)).environment["OMP_NUM_THREADS"] == "4"


def test_within_a_budget_what_was_reached_counts(tmp_path):
    limited = TrainingObjective(("train",), AUC, budget_s=6.0)
    assert limited.job({}, Context(tmp_path)).time_limit_s == 6.0
    assert limited.job({}, Context(tmp_path, time_limit_s=5.0)).time_limit_s == 5.0
    ended = output(LINES, reason=EndReason.TIMED_OUT, exit_code=-15)
    assert limited.measure(ended).metrics["val_auc"] == 0.6
    with pytest.raises(TimedOut):
        limited.measure(output(LINES, reason=EndReason.TIMED_OUT, exit_code=-15, elapsed_s=5.0))
    with pytest.raises(TimedOut):
        limited.measure(output("", reason=EndReason.TIMED_OUT, exit_code=-15))


def test_the_time_to_a_target_is_that_of_the_first_step_that_reaches_it():
    aimed = TrainingObjective(("train",), AUC, target=0.4)
    assert aimed.metrics[0] == TIME_TO_TARGET
    assert aimed.measure(output(LINES)).metrics["time_to_target_s"] == 4.0
    down = TrainingObjective(("train",), LOSS, target=0.45)
    assert down.measure(output(LINES)).metrics["time_to_target_s"] == 6.0
    with pytest.raises(InvalidResult, match=r"did not reach 0\.9 in 3 steps"):
        TrainingObjective(("train",), AUC, target=0.9).measure(output(LINES))
    with pytest.raises(InvalidResult, match="tell no elapsed_s"):
        aimed.measure(output('{"step": 1, "val_auc": 0.5}\n'))


def planned(tmp_path, **options):
    return script.plan(options, machine={}, run_job=None, folder=tmp_path)


def test_a_script_of_the_present_folder_is_found_from_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    plan = planned(tmp_path, argv=[sys.executable, "train.py", "--rate={rate}"], metric={"name": "val_auc"})
    assert plan.objective.argv[1] == str(tmp_path / "train.py")
    assert [mention.text for mention in plan.mentioned] == ["rate"]
    assert plan.works_in_steps
    before = dict(plan.identity)
    (tmp_path / "train.py").write_text("print(2)")
    after = planned(tmp_path, argv=[sys.executable, "train.py", "--rate={rate}"], metric={"name": "val_auc"}).identity
    assert before != dict(after)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"argv": ["nosuchprogram"], "metric": {"name": "a"}}, "not there"),
        ({"argv": [sys.executable, "{a b}"], "metric": {"name": "a"}}, "not the name of a parameter"),
        ({"argv": [sys.executable]}, "metric"),
        ({"argv": [sys.executable], "metric": {"name": "a"}, "progres": "json"}, "did you mean 'progress'"),
    ],
)
def test_wrong_options_are_said_with_their_place(tmp_path, options, words):
    with pytest.raises(PlanError, match=words):
        planned(tmp_path, **options)
