"""Kept outputs are read again when only the way of reading has changed."""

import json

import pytest

from autotune.coordination.session_settings import SessionSettings
from autotune.errors import ChangedProgramError, DifferentStudyError, StudyFileError
from autotune.locks import IfHeld
from autotune.machines.this_machine import this_machine
from autotune.records.outcome import Outcome
from autotune.records.series import WARM_UP, Series
from autotune.records.study import Run
from autotune.search.distributions import distributions_of
from autotune.storage.readable_study import READINGS, VERDICT
from autotune.storage.tables import stored_names
from autotune.studyfile import parse
from autotune.tuning import opening
from autotune.tuning.opening import replace_study_without_results
from autotune.tuning.rereading import reread, reread_study
from autotune.tuning.retry import describe_reopened
from launchers import STDOUT
from launchers.local import local_launcher
from launchers.supervisor import STATUS_FILE
from objectives.base import FailureKind
from tests.support.command_study import OPTIONS, SPACE, TIME, CommandStudy
from tests.support.fakes import ListDisplay, study_file


@pytest.fixture
def study(tmp_path):
    return CommandStudy(tmp_path)


def test_a_mended_success_pattern_mends_the_runs_that_failed_by_it(study):
    study.run(1, "time 4\nDone.\n")
    study.run(2, "time 3\nDone.\n")
    study.run(3, "time 2\nDONE\n")
    assert study.read() is None
    found = study.read(success=["Done|DONE"])
    assert found.sentence() == ("the way of reading has changed (success): 3 runs read again, 2 of them valid now")
    assert study.values == {0: [4.0], 1: [3.0], 2: [2.0]}
    # The first two are judged again; the third is unchanged and stays settled.
    assert [trial.settled for trial in study.store.trials()] == [False, False, True]
    assert study.read(success=["Done|DONE"]) is None, "once is enough"
    assert study.store.attribute(READINGS)["readings"][0]["before"] == {"success": "DONE"}


def test_reading_twice_gives_the_same_and_back_again_gives_what_was(study):
    study.run(1, "time 4 DONE\nwall 9\n")
    study.run(2, "time 3 DONE\n")
    before = study.store.runs()
    found = study.read(metrics=[{**TIME, "pattern": r"wall (\S+)"}])
    assert (found.read, found.valid, found.invalid) == (2, 0, 1)
    assert study.values == {0: [9.0], 1: []}
    again = reread(study.store, study.prepared, always=True)
    assert (again.read, again.valid, again.invalid) == (2, 0, 0)
    study.read()
    assert study.store.runs() == before


def test_the_answers_are_compared_with_that_of_the_default_as_it_is_read_now(study):
    study.run(1, "energy -4.5\ntime 4 DONE\n")
    study.run(2, "energy -4.6\ntime 3 DONE\n")
    answer = {"pattern": r"energy (\S+)", "tolerance": 0.01}
    assert study.read(answer=answer).invalid == 1
    assert study.store.trials()[1].message.startswith("answer is -4.6, the reference run's is -4.5")
    assert study.read(answer={**answer, "tolerance": 0.2}).valid == 1


ANSWER = {"pattern": r"energy (\S+)", "tolerance": 0.01}


def test_a_wrong_answer_stays_wrong_when_the_output_of_the_default_is_gone(study):
    study.run(1, "energy -4.5\ntime 4 DONE\n")
    study.run(2, "energy -4.6\ntime 3 DONE\n")
    study.run(3, "energy -4.6\ntime 2 DONE\n")
    assert study.read(answer=ANSWER).invalid == 2
    (study.folder / "autotune-runs" / "mine" / "00001" / STDOUT).unlink()
    found = study.read(answer=ANSWER, success=["time"])
    assert (found.read, found.kept, found.valid) == (2, 1, 0)
    assert study.values == {0: [4.0], 1: [], 2: []}
    assert study.read(answer={**ANSWER, "tolerance": 0.2}).valid == 2, "by the tolerance of now"


def test_without_an_answer_of_the_default_no_other_takes_its_place(study):
    study.run(1, "energy -4.5\ntime 4 DONE\n")
    study.run(2, "energy -4.6\ntime 3 DONE\n")
    study.run(3, "energy -4.5\ntime 2 DONE\n")
    study.read(answer=ANSWER)
    found = study.read(answer=ANSWER, failure=["time 4"])
    assert (found.valid, found.invalid, found.kept) == (0, 1, 1)
    assert study.values == {0: [], 1: [], 2: [2.0]}
    assert study.read(failure=["time 4"]).valid == 1, "without a reference no answer is wrong"


def test_a_sweep_without_a_tuned_default_is_read_by_the_answer_of_its_base(study):
    sweep = Series.sweep("abc")
    for number in range(2):
        study.run(1, "energy -4.5\ntime 4 DONE\n", sweep, round_number=number, is_trial=False)
        study.run(2, "energy -4.6\ntime 3 DONE\n", sweep, round_number=number, is_trial=False)
    assert study.read(answer=ANSWER).invalid == 2
    for name in ("00001", "00003"):
        (study.folder / "autotune-runs" / "mine" / name / STDOUT).unlink()
    assert study.read(answer=ANSWER, success=["time"]).valid == 0
    assert not any(run.outcome.complete for run in study.store.runs() if run.configuration == {"x": 2})


@pytest.mark.parametrize(
    ("before", "now", "name"),
    [
        ({"answer": ANSWER}, {"answer": {**ANSWER, "relative_tolerance": 0.1}}, "answer"),
        ({}, {"metrics": [{**TIME, "kind": "time"}]}, "kinds"),
    ],
)
def test_a_relative_tolerance_and_the_kind_of_a_metric_are_ways_of_reading(study, before, now, name):
    study.run(1, "energy -4.5\ntime 4 DONE\n")
    study.read(**before)
    assert study.read(**before) is None
    assert study.read(**now).changed == (name,)
    assert study.store.definition.metrics[0].kind == ("time" if name == "kinds" else "other")


def test_a_run_whose_output_is_not_whole_is_made_again_only_for_another_metric(study):
    gone = study.run(1, "time 4 DONE\nwall 8\n")
    other = study.run(2, "time 3 DONE\nwall 7\n")
    study.run(3, "time 2 DONE\nwall 6\n" + "." * (5 * 2**20))
    study.run(4, "time 1 DONE\nwall 5\n")
    for entry in gone.iterdir():
        entry.unlink()
    # The folder of another run, or of another study of that name.
    status = json.loads((other / STATUS_FILE).read_text())
    (other / STATUS_FILE).write_text(json.dumps(status | {"elapsed_s": 99.0}))
    found = study.read(success=["time"])
    assert (found.read, found.kept, found.aside) == (1, 3, 0)
    assert "3 runs as before, since the output is gone" in found.sentence()
    assert study.values == {0: [4.0], 1: [3.0], 2: [2.0], 3: [1.0]}
    found = study.read(metrics=[{**TIME, "pattern": r"wall (\S+)"}])
    assert (found.read, found.kept, found.aside) == (1, 0, 3)
    assert "3 runs to be made again, since an output is gone" in found.sentence()
    assert study.values == {0: [], 1: [], 2: [], 3: [5.0]}
    trials = study.store.trials()
    assert not any(trial.settled for trial in trials)
    assert describe_reopened(trials, study.store.runs(), ())[0] == "trial 0: could not be read again, runs again"


def test_a_large_file_that_was_not_kept_cannot_be_read_again_and_one_that_does_not_matter_may_be_gone(study):
    study.run(1, "time 4 DONE\n", log="wall 8\n" + "." * (5 * 2**20))
    study.run(2, "time 3 DONE\n", log="wall 7\n")
    found = study.read(metrics=[{**TIME, "pattern": r"wall (\S+)", "file": "log"}])
    assert (found.read, found.aside) == (1, 1)
    assert study.values == {0: [], 1: [7.0]}
    study.run(1, "time 4 DONE\n", log="." * (5 * 2**20))
    assert study.read(success=["time"]).read == 2


def test_two_ways_of_reading_never_stand_in_one_comparison(study):
    study.run(1, "time 4 DONE\nwall 8\n")
    study.run(2, "time 3 DONE\nwall 7\n")
    verdict, select = Series.verdict(1), Series.select([1])
    for number in range(3):
        study.run(1, "time 4 DONE\nwall 8\n", verdict, round_number=number)
        folder = study.run(2, "time 3 DONE\nwall 7\n", verdict, round_number=number)
    study.store.set_attribute(VERDICT, {"winner": 1})
    (folder / STDOUT).unlink()
    (study.run(2, "time 3 DONE\nwall 7\n", select) / STDOUT).unlink()
    found = study.read(metrics=[{**TIME, "pattern": r"wall (\S+)"}])
    assert (found.read, found.aside, found.kept) == (7, 2, 0)
    runs = study.store.runs()
    assert [run.outcome.metrics["time"] for run in runs if run.series == verdict] == [8.0, 7.0] * 2 + [8.0]
    assert [run.series for run in runs if run.outcome.metrics["time"] == 3.0] == [verdict.aside, select.aside]
    assert study.store.attribute(VERDICT) is None, "it is made again of the runs that were read again"


def test_a_capped_run_keeps_its_bound_unless_that_is_of_another_metric(study):
    study.run(1, "time 4 DONE\nwall 8\n")
    number = study.store.add_trial({"x": 2}, distributions_of(SPACE))
    capped = Outcome(bound=5.0, code="capped", message="had lost")
    study.store.add_runs([Run({"x": 2}, number, outcome=capped, job={"folder": str(study.folder)})])
    found = study.read(success=["time"])
    assert (found.read, found.kept) == (1, 1)
    assert study.store.trials()[1].outcomes == [capped]
    found = study.read(metrics=[{**TIME, "pattern": r"wall (\S+)"}])
    assert (found.read, found.aside) == (1, 1)
    assert study.store.trials()[1].outcomes == []
    assert not study.store.trials()[1].settled


def test_a_failed_run_whose_output_is_gone_stays_failed_whatever_is_read(study):
    study.run(1, "time 4 DONE\nwall 8\n")
    (study.run(2, "no\n", exit_code=1) / STDOUT).unlink()
    found = study.read(metrics=[{**TIME, "pattern": r"wall (\S+)"}])
    assert (found.read, found.kept, found.aside) == (1, 1, 0)
    assert study.store.trials()[1].failure is not None


def test_a_trial_of_which_a_run_cannot_be_read_begins_anew(study):
    study.run(1, "time 4 DONE\nwall 8\n")
    (study.run(2, "time 3 DONE\nwall 7\n") / STDOUT).unlink()
    study.run(2, "time 3 DONE\nwall 7\n")
    assert study.read(metrics=[{**TIME, "pattern": r"wall (\S+)"}]).aside == 2
    assert study.values == {0: [8.0], 1: []}


@pytest.mark.slow
def test_a_failure_of_the_program_itself_is_read_again_and_stays_one(study):
    study.run(1, "time 4 DONE\n", exit_code=3)
    assert study.read(success=["time"]).valid == 0
    assert study.store.trials()[0].failure.failure is FailureKind.APPLICATION_ERROR


def test_runs_that_are_left_as_they_are_are_counted(study):
    study.run(1, "time 4 DONE\n")
    study.run(1, "time 9 DONE\n", series=WARM_UP)
    for _ in range(2):
        study.run(1, "time 7 DONE\n", series=Series.workload("large", "sha", 1))
    found = study.read(success=["time"])
    assert (found.read, found.warm_ups, found.verified) == (1, 1, 2)
    assert found.sentence().endswith("1 of warming up and 2 on inputs of weight 0 (a comparison makes its own)")


def test_other_values_are_counted_apart_from_what_is_valid_now(study):
    study.run(1, "time 4 DONE\nwall 8\n")
    assert study.read(metrics=[{**TIME, "pattern": r"wall (\S+)"}]).sentence() == (
        "the way of reading has changed (metrics): 1 run read again, 1 with another value or message"
    )
    assert reread(study.store, study.prepared, always=True).sentence() == "1 run read again, none has changed"


def test_a_study_of_which_nothing_worked_begins_anew_with_another_command(study):
    said = []

    def begin():
        replace_study_without_results(study.url, "mine", study.prepared.definition, said.append)
        return stored_names(study.url)

    study.run(1, "no such file\n")
    assert begin() == ["mine"], "it is the same"
    study.options = {**OPTIONS, "argv": ["true", "-x", "{x}"]}
    assert begin() == []
    assert said == ["study 'mine' starts over: it has changed (command), and none of its runs had worked"]


def test_taking_over_after_an_upgrade_leaves_the_session_of_the_old_program_alone(study, monkeypatch):
    study.run(1, "time 4 DONE\n")
    study.options = {**OPTIONS, "argv": ["true", "-x", "{x}"]}
    monkeypatch.setattr(opening, "prepare", lambda *_: study.prepared)
    monkeypatch.setattr(opening, "hold_study", lambda *_, **__: pytest.fail("the old session was stopped"))
    settings = SessionSettings(
        study.url, "mine", study.folder / "runs", this_machine(), local_launcher(), if_held=IfHeld.TAKE_OVER
    )
    with (
        pytest.raises(ChangedProgramError),
        opening.open_study(study_file(objective="command"), settings, ListDisplay()),
    ):
        pass


def test_what_was_measured_is_never_forgotten_for_another_command(study):
    study.run(1, "time 4 DONE\n")
    study.options = {**OPTIONS, "argv": ["true", "-x", "{x}"]}
    replace_study_without_results(study.url, "mine", study.prepared.definition, print)
    with pytest.raises(DifferentStudyError, match=r"command: true {x} there, true -x {x} here"):
        study.read(argv=study.options["argv"])


def test_nothing_is_forgotten_while_jobs_of_it_are_in_a_queue(study):
    study.options = {**OPTIONS, "argv": ["true", "-x", "{x}"]}
    study.store.leases().take({"00000": ({}, None)})
    replace_study_without_results(study.url, "mine", study.prepared.definition, print)
    assert stored_names(study.url) == ["mine"]


def test_a_study_is_read_again_by_its_file_wherever_that_is_done_and_nothing_runs(study):
    study.run(1, "time 4\n")
    parsed = parse(
        {
            "name": "mine",
            "objective": "command",
            "options": {**OPTIONS, "success": ["time"]},
            "space": {"parameters": {"x": {"type": "integer", "values": [1, 2], "default": 1}}},
        },
        "test",
    )
    settings = SessionSettings(study.url, "mine", study.folder / "runs", this_machine(), local_launcher())
    assert reread_study(parsed, settings, ListDisplay()).valid == 1
    assert study.values == {0: [4.0]}
    told = parsed.model_copy(update={"objective": "external"})
    with pytest.raises(StudyFileError, match="no outputs here"):
        reread_study(told, settings, ListDisplay())
