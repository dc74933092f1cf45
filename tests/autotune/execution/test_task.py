"""The messages for runs whose metrics cannot count."""

import json
import os
import pickle
import stat
from dataclasses import replace

import pytest

from autotune.execution.task import (
    Task,
    WatchedRun,
    check_answer,
    check_target,
    describe_job,
    job_from_description,
    read_outcome,
    run_task,
)
from launchers import STDOUT, EndReason, Job, JobState, JobStatus
from launchers.local import LocalLauncher
from objectives.base import Answer, FailureKind, InvalidResult, Measurement, Metric, Output
from objectives.command import CommandObjective
from objectives.command_options import CommandOptions
from objectives.efficiency.objective import EFFICIENCIES, TimedObjective
from objectives.job_metrics import JobMetrics
from tests.support.descriptors import none_left


@pytest.mark.parametrize(("unit", "words"), [("", "compression is 0.435, the"), ("MB", "compression is 0.435 MB, the")])
def test_another_answer_is_said_with_its_unit_if_it_has_one(unit, words):
    measurement = Measurement({}, Answer("compression", 0.435, 0.02, unit))
    with pytest.raises(InvalidResult) as caught:
        check_answer(measurement, Answer("compression", 0.407, 0.02, unit))
    assert str(caught.value).startswith(f"{words} reference run's is 0.407: they differ by 0.028")


@pytest.mark.parametrize(
    ("tolerance", "relative", "value", "words"),
    [
        (0.0, 1e-6, -200.06, "they differ by 0.0003 (relative), more than 1e-06"),
        (0.0, 1e-6, -200.0001, None),
        (1.0, 1e-6, -200.06, None),
        (0.01, 1e-3, -200.06, None),
        (0.01, 1e-6, -200.06, "they differ by 0.06, more than 0.01"),
        (0.0, 0.0, float("nan"), "they differ by nan, more than 0"),
    ],
)
def test_the_larger_of_two_allowances_holds(tolerance, relative, value, words):
    reference = Answer("energy", -200.0, tolerance, "eV", relative)
    measurement = Measurement({}, replace(reference, value=value))
    if words is None:
        check_answer(measurement, reference)
        return
    with pytest.raises(InvalidResult) as caught:
        check_answer(measurement, reference)
    assert str(caught.value).endswith(words)


@pytest.mark.parametrize(("unit", "words"), [("", "score is 0: what"), ("s", "score is 0 s: what")])
def test_a_target_that_is_not_positive_is_said_with_its_unit_if_it_has_one(unit, words):
    with pytest.raises(InvalidResult) as caught:
        check_target(Measurement({"score": 0.0}), Metric("score", unit))
    assert str(caught.value).startswith(words)


def test_a_run_that_does_not_tell_the_target_is_invalid_and_says_why(tmp_path):
    program = CommandObjective(CommandOptions(argv=["prog"], metrics=[{"name": "t", "pattern": "t=(.*)"}]))
    objective = JobMetrics(TimedObjective(program, None), (*EFFICIENCIES, *program.metrics))
    output = Output("t=3\n", "", JobStatus(JobState.ENDED, EndReason.EXITED, 0), tmp_path)
    outcome = read_outcome(objective, output, None, None)
    assert outcome.failure is FailureKind.INVALID_RESULT
    assert outcome.message.startswith("no parallel_efficiency: no efficiencies: no rank wrote how long it was in MPI")
    with pytest.raises(InvalidResult, match="no val_dice: the run did not report it"):
        check_target(Measurement({"val_auc": 0.5}), Metric("val_dice", "", "maximize"))


def test_files_of_a_run_have_the_modes_of_the_session_also_if_a_process_elsewhere_makes_them(tmp_path):
    program = CommandObjective(CommandOptions(argv=["touch", "made"]))
    before = os.umask(0o027)
    try:
        sent = pickle.dumps(Task(0, Job(("touch", "made"), tmp_path), program))
        os.umask(0)
        assert run_task(pickle.loads(sent), LocalLauncher()).failure is None
        assert {stat.S_IMODE(path.stat().st_mode) & 0o027 for path in tmp_path.iterdir()} == {0}
    finally:
        os.umask(before)


def test_a_job_that_is_described_is_followed_in_the_same_file_afterwards(tmp_path):
    part = Job(("b",), tmp_path / "b", progress_file="b.log", name="b")
    job = Job(("a",), tmp_path, progress_file="solver.log", parts=(part, Job(("c",), tmp_path / "c", name="c")))
    read = job_from_description(json.loads(json.dumps(describe_job(job))))
    assert [one.progress_file for one in (read, *read.parts)] == ["solver.log", "b.log", STDOUT]


def test_a_good_run_whose_output_cannot_be_opened_is_made_again(tmp_path):
    objective = CommandObjective(CommandOptions(argv=["prog"], metrics=[{"name": "t", "pattern": "t=(.*)"}]))
    watched = WatchedRun(Task(0, Job(("prog",), tmp_path), objective))
    ended = JobStatus(JobState.ENDED, EndReason.EXITED, 0)
    (tmp_path / STDOUT).write_text("t=3\n")
    with none_left():
        outcome = watched.outcome(ended)
    assert outcome.retryable
    assert "Too many open files" in outcome.message
    assert watched.outcome(ended).metrics["t"] == 3.0


def test_a_good_run_whose_file_of_metrics_cannot_be_opened_is_made_again(tmp_path):
    metric = {"name": "t", "file": "figures", "pattern": "t=(.*)"}
    objective = CommandObjective(CommandOptions(argv=["prog"], metrics=[metric]))
    output = Output("", "", JobStatus(JobState.ENDED, EndReason.EXITED, 0), tmp_path)
    (tmp_path / "figures").write_text("t=3\n")
    with none_left():
        outcome = read_outcome(objective, output, None, None)
    assert outcome.retryable
    (tmp_path / "figures").unlink()
    assert read_outcome(objective, output, None, None).failure is FailureKind.INVALID_RESULT
