import sys
from pathlib import Path

import pytest

from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import (
    REMARK,
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


BAR = "Epoch {0}: 100%|██████████| 9/9 [00:01<00:00, 9.0it/s, val_loss=0.{1}]\n"


@pytest.mark.parametrize("pattern", ["auto", r"Epoch (\d+): 100%.*val_loss=([\d.]+)"])
def test_progress_lines_may_be_in_standard_error(tmp_path, pattern):
    lines = BAR.format(1, 7) + BAR.format(2, 5)
    with pytest.raises(
        InvalidResult, match=r"lines of standard error have it: write progress = \{ (pattern.*)?file = "
    ):
        planned(tmp_path, argv=["true"], metric="val_loss", progress=pattern).objective.measure(output("x\n", lines))
    plan = planned(tmp_path, argv=["true"], metric="val_loss", progress={"pattern": pattern, "file": "stderr"})
    assert plan.objective.job({}, Context(tmp_path)).progress_file == "stderr"
    assert plan.objective.measure(output("val_loss 3\n", lines)).details[CURVE] == [[1, 0.7], [2, 0.5]]
    assert plan.reading["progress"].endswith(", in stderr")
    with pytest.raises(PlanError, match=r"options.progress.pattern"):
        planned(tmp_path, argv=["true"], metric="val_loss", progress={"pattern": "(", "file": "stderr"})


def test_a_script_gets_what_it_is_asked_for_on_its_command_line_and_in_its_files(tmp_path):
    plan = planned(
        tmp_path,
        argv=[sys.executable, "--epochs={steps}", "--seed={seed}", "--keep={checkpoint}", "{rate}"],
        environment={"EPOCHS": "{steps}"},
        files=[{"name": "conf", "text": "epochs {steps}\nseed {seed}\n"}],
        metric="val_loss",
    )
    assert [mention.text for mention in plan.mentions] == ["rate"]
    assert plan.steps_source == "placeholder"
    job = plan.objective.job({"rate": 0.1}, Context(tmp_path, steps=3, checkpoint=tmp_path / "kept", seed=4))
    assert job.argv[1:] == ("--epochs=3", "--seed=4", f"--keep={tmp_path / 'kept'}", "0.1")
    assert job.environment["EPOCHS"] == "3"
    assert (tmp_path / "conf").read_text() == "epochs 3\nseed 4\n"
    # A run without a checkpoint to resume from keeps its checkpoints in its own folder.
    anew = plan.objective.job({"rate": 0.1}, Context(tmp_path, steps=3))
    assert f"--keep={tmp_path / 'checkpoint'}" in anew.argv


def test_what_a_run_is_asked_for_is_no_name_of_a_parameter(tmp_path):
    plan = planned(tmp_path, argv=[sys.executable, "{steps}"], metric="acc")
    [message] = plan.name_errors(["lr", "steps"])
    assert "'steps'" in message


@pytest.mark.parametrize(
    ("metric", "direction"),
    [
        ("val_loss", "minimize"),
        ("valid/top1-acc", "maximize"),
        ("RMSE", "minimize"),
        ({"name": "thing", "direction": "minimize"}, "minimize"),
        ({"name": "loss", "direction": "maximize"}, "maximize"),
    ],
)
def test_the_name_of_a_metric_says_which_values_are_better_unless_the_file_does(tmp_path, metric, direction):
    assert planned(tmp_path, argv=[sys.executable], metric=metric).objective.metric.direction == direction


@pytest.mark.parametrize("name", ["thing", "accuracy_loss"])
def test_a_name_that_does_not_say_which_values_are_better_is_asked_for(tmp_path, name):
    with pytest.raises(PlanError, match=r"which values are better: write \{ name"):
        planned(tmp_path, argv=[sys.executable], metric=name)


def test_a_script_shows_by_its_text_that_it_looks_at_its_steps(tmp_path):
    script_file = tmp_path / "train.py"
    script_file.write_text("print(1)")
    assert planned(tmp_path, argv=[sys.executable, str(script_file)], metric="acc").steps_source == "unclear"
    script_file.write_text("os.environ['AUTOTUNE_STEPS']")
    assert planned(tmp_path, argv=[sys.executable, str(script_file)], metric="acc").steps_source == "variable"


def test_the_best_value_counts_and_the_others_are_those_of_its_step():
    found = training.measure(output(LINES))
    assert found.metrics == {"val_auc": 0.6, "val_loss": 0.5, "elapsed_s": 7.0}
    assert found.details[CURVE] == [[1, 0.2], [2, 0.6], [3, 0.4]]
    least = TrainingObjective(("train",), LOSS).measure(output(LINES))
    assert least.metrics["val_loss"] == 0.4


LEARNT = (
    '{"step": 1, "val_auc": 0.2, "train_auc": 0.3}\n'
    '{"step": 2, "val_auc": 0.25, "train_auc": 0.96}\n'
    '{"step": 3, "val_auc": 0.2, "train_auc": 0.98}\n'
)
beside = TrainingObjective(("train",), AUC, trained=Metric("train_auc", "", "maximize"))


def test_the_gap_to_the_data_that_it_trains_with_is_a_metric_and_said_where_it_is_wide():
    found = beside.measure(output(LEARNT))
    assert found.metrics == {"val_auc": 0.25, "train_auc": 0.96, "gap": pytest.approx(0.71), "elapsed_s": 7.0}
    assert found.details[REMARK] == "overfits: val_auc 0.25, but train_auc 0.96"
    early = beside.measure(output(LEARNT.splitlines()[0].replace("0.3", "0.24")))
    assert early.metrics["gap"] == pytest.approx(0.04)
    assert REMARK not in early.details


def test_a_loss_is_worse_where_it_is_larger():
    lines = '{"step": 1, "val_loss": 0.5, "loss": 0.1}\n'
    found = TrainingObjective(("train",), LOSS, trained=Metric("loss", "")).measure(output(lines))
    assert found.metrics["gap"] == pytest.approx(0.4)
    assert found.details[REMARK] == "overfits: val_loss 0.5, but loss 0.1"


def test_a_training_that_does_not_tell_it_has_no_gap():
    found = beside.measure(output(LINES))
    assert found.metrics == {"val_auc": 0.6, "elapsed_s": 7.0}
    assert REMARK not in found.details


def test_a_script_names_what_its_metric_is_on_the_data_that_it_trains_with(tmp_path):
    plan = planned(
        tmp_path, argv=[sys.executable], metric="acc", trained="own", progress=r"ep (\d+) acc (\S+) own (\S+)"
    )
    assert [metric.name for metric in plan.objective.metrics] == ["acc", "own", "gap", "elapsed_s"]
    found = plan.objective.measure(output("ep 1 acc 0.5 own 0.9\n"))
    assert found.metrics["gap"] == pytest.approx(0.4)


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
    with pytest.raises(InvalidResult, match=r"up to step 1 has val_auc.*min_steps"):
        training.measure(output('{"step": 1, "loss": 1}\n'))


def test_lines_that_are_not_read_are_shown_with_what_to_do():
    with pytest.raises(InvalidResult, match=r"give progress a regular expression.*'round 1 of 9'"):
        training.measure(output("round 1 of 9\n"))
    with pytest.raises(InvalidResult, match="nothing was printed"):
        training.measure(output(""))


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
    with pytest.raises(InvalidResult, match="have no elapsed_s"):
        aimed.measure(output('{"step": 1, "val_auc": 0.5}\n'))


def planned(tmp_path, **options):
    return script.plan(options, machine={}, run_job=None, folder=tmp_path)


def test_a_script_of_the_present_folder_is_found_from_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    plan = planned(tmp_path, argv=[sys.executable, "train.py", "--rate={rate}"], metric={"name": "val_auc"})
    assert plan.objective.argv[1] == str(tmp_path / "train.py")
    assert [mention.text for mention in plan.mentions] == ["rate"]
    assert plan.works_in_steps
    before = dict(plan.identity)
    (tmp_path / "train.py").write_text("print(2)")
    after = planned(tmp_path, argv=[sys.executable, "train.py", "--rate={rate}"], metric={"name": "val_auc"}).identity
    assert before != dict(after)


def test_a_word_of_the_command_may_be_longer_than_the_name_of_a_file(tmp_path):
    program = f"echo {'x' * 300}"
    plan = planned(tmp_path, argv=["sh", "-c", program], metric="acc")
    assert plan.objective.job({}, Context(tmp_path)).argv[1:] == ("-c", program)


def test_a_program_that_is_missing_for_a_file_is_said_with_its_place(tmp_path):
    files = [{"name": "a", "text": ""}, {"name": "made", "made_by": [[sys.executable, "-c", "1"], ["no-such-program"]]}]
    with pytest.raises(PlanError) as caught:
        planned(tmp_path, argv=[sys.executable], metric="acc", files=files)
    (problem,) = caught.value.problems
    assert problem.path == "options.files.1.made_by.1.0"
    assert "program 'no-such-program' was not found" in problem.message


def test_another_progress_pattern_reads_the_same_training_in_another_way(tmp_path):
    asked = {"argv": [sys.executable], "metric": "acc"}
    before, after = planned(tmp_path, **asked), planned(tmp_path, **asked, progress=r"ep (\d+) acc (\S+)")
    assert before.identity == after.identity
    assert before.reading != after.reading


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"argv": ["nosuchprogram"], "metric": {"name": "acc"}}, "not found"),
        ({"argv": [sys.executable, "{a b}"], "metric": {"name": "acc"}}, "not the name of a parameter"),
        ({"argv": [sys.executable]}, "metric"),
        (
            {"argv": [sys.executable], "metric": "acc", "progress": "ep ("},
            r"not a regular expression.*options\.progress",
        ),
        ({"argv": [sys.executable], "metric": "acc", "progress": ["(1)(2)", "x"]}, r"options\.progress\.1"),
        ({"argv": [sys.executable, "{steps}"], "metric": "acc", "target": 0.5}, "has no value"),
        ({"argv": [sys.executable], "metric": {"name": "acc"}, "progres": "json"}, "did you mean 'progress'"),
        ({"argv": [sys.executable], "metric": "acc", "trained": "acc"}, r"'acc' is recorded because.*options\.trained"),
    ],
)
def test_wrong_options_are_said_with_their_place(tmp_path, options, words):
    with pytest.raises(PlanError, match=words):
        planned(tmp_path, **options)
