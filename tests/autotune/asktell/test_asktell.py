"""Ask and tell: what an outside program gets, and what becomes of what it tells."""

import contextlib
import json
import math

import pytest

from autotune.asktell import (
    AskTell,
    ClosedError,
    FinishedError,
    InvalidRequestError,
    LeaseConflictError,
    LeaseGoneError,
    Reply,
    RunReport,
)
from autotune.errors import BusyError, CannotRunHereError, NothingWorkedError, StorageError, StudyFileError
from autotune.records.study import State
from autotune.results.summary import summarise
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from tests.support.asking import external, seconds, started, told, work
from tests.support.command_line import run_main
from tests.support.waiting import wait_for


def test_a_study_from_the_first_run_to_the_verdict(sqlite):
    lines = []
    with AskTell.open(external(), sqlite, say=lines.append) as study:
        made = work(study, who="me")
        assert isinstance(study.ended, FinishedError)
    assert made[0].configuration == {"x": 8, "y": 1}
    first = [asked for asked in made if not asked.series and asked.run == 0]
    assert [asked.trial for asked in first] == list(range(8))
    assert len({tuple(sorted(asked.configuration.items())) for asked in first}) == 8
    assert all(asked.configuration["x"] % asked.configuration["y"] == 0 for asked in made)
    summary = summarise(StudyStore.read(sqlite, "mine"))
    assert summary.finished == 8
    assert summary.present_verdict.known
    assert {asked.series.partition(":")[0] for asked in made} == {"", "select", "verdict"}
    runs = StudyStore.read(sqlite, "mine").runs()
    assert [run.outcome.metrics["time_s"] for run in runs] == [seconds(asked.configuration) for asked in made]
    assert {run.host for run in runs} == {"me"}
    assert any("tuning ended" in line for line in lines)


def test_the_default_is_measured_alone_and_then_as_many_as_ask(study):
    first = study.ask()
    assert study.ask() is None
    assert study.tell(first.lease, RunReport(value=80.0)) == Reply(0, "complete", best=True)
    others = [study.ask() for _ in range(5)]
    assert sorted(asked.trial for asked in others) == [1, 2, 3, 4, 5]
    assert len({asked.lease for asked in (first, *others)}) == 6


def test_a_run_that_nobody_has_asked_for_says_so(study):
    def waits():
        return None if study.status is None else {run.waits for run in study.status.running}

    wait_for(lambda: waits() == {"no program has asked for it yet"})
    study.ask()
    wait_for(lambda: waits() == {""})


def test_the_lease_is_stored_before_the_ask_returns(study, sqlite):
    asked = study.ask(lease_s=30.0, who="node7")
    (lease,) = StudyStore.read(sqlite, "mine").leases().all()
    assert (lease.place, lease.job_id) == ("00000", asked.lease)
    ticket = lease.record["job"]["ticket"]
    assert (ticket["who"], ticket["asked_at"], ticket["expires_at"]) == ("node7", 1000.0, 1030.0)
    study.tell(asked.lease, RunReport(value=80.0))
    left = [lease.job_id for lease in StudyStore.read(sqlite, "mine").leases().all()]
    assert asked.lease not in left


def test_what_is_told_again_is_answered_again_and_another_word_is_refused(study, sqlite):
    asked, answer = started(study)
    assert study.tell(asked.lease, RunReport(value=80.0)) == answer
    with pytest.raises(LeaseConflictError, match="the first result counts"):
        study.tell(asked.lease, RunReport(value=81.0))
    assert len(StudyStore.read(sqlite, "mine").runs()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({}, "a report has exactly one of value, metrics, failure and bound; got none"),
        ({"value": 1.0, "bound": 2.0}, "got value, bound"),
        ({"value": math.nan}, "time_s is nan"),
        ({"value": math.inf}, "time_s is inf"),
        ({"value": -1.0}, "time_s is -1 s: what is optimised is compared by ratio, and must be positive"),
        ({"value": 0.0}, "must be positive"),
        ({"value": True}, "a metric is a finite number"),
        ({"metrics": {"time_s": 10**400}}, "a metric is a finite number"),
        ({"metrics": {"memory_bytes": 5.0}}, "time_s is missing"),
        ({"metrics": {"time_s": 5.0, "speed": 1.0}}, "no metric is called 'speed'"),
        ({"metrics": {"time_s": 5.0, "memory_bytes": math.nan}}, "memory_bytes is nan"),
        ({"failure": "tired"}, "known: 'invalid result', 'out of memory'"),
        ({"bound": -3.0}, "must be positive"),
        ({"bound": math.inf}, "bound is inf"),
        ({"value": 5.0, "elapsed_s": -1.0}, "elapsed_s is -1"),
        ({"value": 5.0, "elapsed_s": math.nan}, "elapsed_s is nan"),
        ({"value": 5.0, "cores": 0}, "cores is 0"),
    ],
)
def test_what_is_not_valid_is_refused_and_the_lease_goes_on(study, sqlite, what, words):
    started(study)
    asked = study.ask()
    with pytest.raises(InvalidRequestError, match=words):
        study.tell(asked.lease, RunReport(**what))
    assert len(StudyStore.read(sqlite, "mine").runs()) == 1
    assert study.tell(asked.lease, RunReport(value=70.0)).state == "complete"


def test_a_bound_is_a_capped_run_and_never_a_value(study, sqlite):
    default = study.ask()
    with pytest.raises(InvalidRequestError, match="this run cannot have a bound"):
        study.tell(default.lease, RunReport(bound=90.0))
    study.tell(default.lease, RunReport(value=80.0))
    asked = study.ask()
    assert asked.cap is not None
    assert study.tell(asked.lease, RunReport(bound=asked.cap)) == Reply(1, "capped", best=False)
    trial = StudyStore.read(sqlite, "mine").trials()[1]
    assert (trial.state, trial.outcomes[0].bound, trial.outcomes[0].metrics) == (State.CAPPED, asked.cap, {})


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind is not FailureKind.INFRASTRUCTURE_ERROR])
def test_failures_are_typed(study, sqlite, kind):
    started(study)
    asked, answer = told(study, failure=kind.value, message="it said no")
    assert (answer.trial, answer.state) == (asked.trial, "failed")
    failure = StudyStore.read(sqlite, "mine").trials()[1].failure
    assert (failure.failure, failure.message) == (kind, "it said no")


def test_what_a_run_took_is_kept(study, sqlite):
    asked = study.ask(who="node7")
    study.tell(asked.lease, RunReport(metrics={"time_s": 4.0, "memory_bytes": 7}, elapsed_s=5.0, cores=16))
    (run,) = StudyStore.read(sqlite, "mine").runs()
    assert (run.core_s, run.host, dict(run.outcome.metrics)) == (80.0, "node7", {"time_s": 4.0, "memory_bytes": 7.0})


def test_an_infrastructure_error_puts_the_run_back_a_few_times(sqlite):
    with AskTell.open(external(budget={"trials": 8, "infrastructure_retries": 2}), sqlite) as study:
        started(study)
        first = study.ask()
        for attempt in range(3):
            asked = first if attempt == 0 else study.ask()
            assert (asked.trial, asked.configuration) == (first.trial, first.configuration)
            answer = study.tell(asked.lease, RunReport(failure="infrastructure error", message="node died"))
            assert answer.state == "running"
            assert study.tell(asked.lease, RunReport(failure="infrastructure error", message="node died")) == answer
        assert study.ask().trial != first.trial
    assert [run.trial for run in StudyStore.read(sqlite, "mine").runs()] == [0]


def test_who_cannot_run_anything_is_told_so(sqlite):
    with AskTell.open(external(budget={"trials": 8, "infrastructure_retries": 0}), sqlite) as study:
        started(study)
        for _ in range(3):
            told(study, failure="infrastructure error", message="no disk")
        with pytest.raises(CannotRunHereError, match="no disk"):
            study.ask(wait_s=20.0)
        assert isinstance(study.ended, CannotRunHereError)
    with AskTell.open(external(budget={"trials": 8, "infrastructure_retries": 0}), sqlite) as study:
        assert study.ask() is not None


def test_nothing_works(sqlite):
    with AskTell.open(external(budget={"trials": 8, "give_up_after": 2}), sqlite) as study:
        for _ in range(2):
            assert told(study, failure="application error", message="segmentation fault")[1].state == "failed"
        with pytest.raises(NothingWorkedError, match="segmentation fault"):
            study.ask(wait_s=20.0)


def test_the_race_asks_for_a_configuration_again(sqlite):
    repeats = {"min_runs": 2, "max_runs": 3, "baseline_runs": 2, "baseline_every": 0}
    with AskTell.open(external(repeats=repeats), sqlite) as study:
        made = work(study)
    again = [asked for asked in made if not asked.series and asked.run == 1]
    first = {asked.trial: asked.configuration for asked in made if not asked.series and asked.run == 0}
    assert len(again) > 1
    assert all(asked.configuration == first[asked.trial] for asked in again)


def test_for_a_client_that_has_gone_nothing_is_proposed(sqlite):
    with AskTell.open(external(), sqlite) as study:
        first = study.ask()
        gone = [study.ask_future(wait_s=60.0) for _ in range(3)]
        waits = study.ask_future(wait_s=60.0)
        assert all(future.cancel() for future in gone)
        study.tell(first.lease, RunReport(value=80.0))
        assert waits.result(timeout=60.0).trial == 1
        assert study.ask().trial == 2
    assert len(StudyStore.read(sqlite, "mine").trials()) == 3


@pytest.mark.parametrize("error", [StorageError("disk full"), OSError("disk full")])
def test_when_the_storage_fails_nobody_waits_for_ever(study, monkeypatch, error):
    started(study)
    asked = study.ask()

    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr(StudyStore, "add_runs", refuse)
    waiting = study.ask_future(wait_s=600.0)
    with pytest.raises(StorageError, match="disk full"):
        study.tell(asked.lease, RunReport(value=70.0))
    with contextlib.suppress(StorageError):
        waiting.result(timeout=60.0)
    for _ in range(2):
        with pytest.raises(StorageError, match="disk full"):
            study.ask()
        with pytest.raises(StorageError, match="disk full"):
            study.tell(asked.lease, RunReport(value=70.0))


def test_asked_in_vain_and_after_the_end(sqlite):
    with AskTell.open(external(budget={"trials": 1}), sqlite) as study:
        asked, answer = started(study)
        with pytest.raises(FinishedError, match="nothing more to ask for"):
            study.ask(wait_s=20.0)
        assert study.tell(asked.lease, RunReport(value=80.0)) == answer
        with pytest.raises(LeaseGoneError):
            study.tell("guess", RunReport(value=80.0))
    with pytest.raises(ClosedError):
        study.ask()
    study.close()


@pytest.mark.parametrize("wrong", [{"lease_s": 0.0}, {"lease_s": math.nan}, {"wait_s": -1.0}, {"wait_s": math.nan}])
def test_times_that_make_no_sense(study, wrong):
    with pytest.raises(InvalidRequestError, match=next(iter(wrong))):
        study.ask(**wrong)


def test_a_study_is_open_once(study, sqlite):
    with pytest.raises(BusyError, match="is being worked on"):
        AskTell.open(external(), sqlite)


def test_only_studies_of_other_programs_are_opened(sqlite):
    study = external(objective="command", options={"argv": ["true"]})
    with pytest.raises(StudyFileError, match="its objective must be 'external'"):
        AskTell.open(study, sqlite)
    with pytest.raises(CannotRunHereError, match="no option 'argv'"):
        AskTell.open(external(options={"argv": ["true"], "metrics": [{"name": "time_s"}]}), sqlite)


@pytest.mark.slow
def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (
        'objective = "external"\noptions.metrics = [{ name = "time_s", unit = "s", kind = "time" }]\n'
        '[space.parameters.x]\ntype = "integer"\nlow = 1\nhigh = 8\ndefault = 1\n'
    )
    (tmp_path / "mine.toml").write_text(text)
    refused = run_main("study", "./mine.toml")
    assert refused.returncode == 2
    assert "autotune serve" in refused.stderr
    assert "autotune.asktell" in refused.stderr
    assert json.loads(run_main("check", "./mine.toml", "--space", "--json").stdout)["size"] == 8
    assert "trial 0: x=1" in run_main("study", "./mine.toml", "--dry-run").stdout
