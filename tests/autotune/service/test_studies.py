"""What may be done with studies: without a server, and without a study that runs."""

import json
import logging
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from autotune.errors import AutotuneError, BusyError
from autotune.records.outcome import DISTURBED, Outcome
from autotune.records.series import TUNING
from autotune.records.study import Run
from autotune.service import summaries as summaries_module
from autotune.service.asktell_studies import AskTellStudies
from autotune.service.catalogue import Catalogue
from autotune.service.hub import LIST
from autotune.service.models.budgets import Budget
from autotune.service.models.orders import NewStudy
from autotune.service.problems import ProblemError
from autotune.service.routes.app import create_app
from autotune.service.settings import Settings
from autotune.service.studies import Studies
from autotune.service.summaries import StudySummaries
from autotune.service.tokens import TokenBook
from autotune.storage.observation import Observation
from autotune.storage.studies import StoredStudies
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from autotune.supervision import NameTakenError, StudySupervisor
from objectives.base import FailureKind, Metric
from tests.autotune.service.serving import OUTSIDE, SLEEPY
from tests.autotune.service.test_access import START, ask
from tests.support.command_study import CommandStudy
from tests.support.fakes import SECONDS, definition, failed, small_space, took
from tests.support.held_study import held_study
from tests.support.stored import add_trial


@pytest.fixture
def catalogue(tmp_path):
    folder = tmp_path / "catalogue"
    folder.mkdir()
    for name, text in (("outside", OUTSIDE), ("unmeasured", OUTSIDE), ("sleepy", SLEEPY)):
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture
def studies(tmp_path, sqlite, catalogue):
    opened = AskTellStudies(tmp_path / "service", sqlite)
    with StudySupervisor(tmp_path / "service", sqlite) as supervisor:
        yield Studies(Catalogue(catalogue), StudySummaries(StoredStudies(sqlite)), supervisor, opened)
    opened.close()


def test_a_study_that_runs_from_a_command_line_is_not_thrown_away(studies, sqlite):
    StudyStore.create(sqlite, "mine", definition(small_space()))
    lock = StudyLock.acquire(sqlite, "mine")
    with pytest.raises(BusyError, match="'mine' is being worked on by process"):
        studies.delete("mine")
    assert [brief.name for brief in studies.briefs()] == ["mine"]
    lock.release()
    studies.delete("mine")
    assert studies.briefs() == []


def test_a_study_is_deleted_with_the_folders_of_its_runs(studies, tmp_path, sqlite):
    folder = CommandStudy(tmp_path, url=sqlite).run(1, "time 4 DONE\n")
    assert folder.is_dir()
    studies.delete("mine")
    assert studies.briefs() == []
    assert not folder.parent.exists()


def test_a_study_that_cannot_be_read_keeps_no_other_from_being_listed(studies, sqlite, tmp_path):
    for name in ("broken", "whole"):
        StudyStore.create(sqlite, name, definition(small_space()))
    with sqlite3.connect(tmp_path / "autotune.db") as database:
        database.execute(
            "UPDATE study_user_attributes SET value_json = '{}' WHERE key = 'definition' AND study_id = "
            "(SELECT study_id FROM studies WHERE study_name = 'broken')"
        )
    database.close()
    broken, whole = studies.briefs()
    assert "study 'broken'" in broken.message
    assert (whole.message, whole.metric.name) == ("", "wall_s")
    assert set(studies.news({"broken": "", "whole": ""})) == {"whole"}
    assert [one["name"] for one in studies.news({LIST: ""})[LIST].data] == ["broken", "whole"]


def test_what_goes_wrong_with_one_study_is_logged_once_and_keeps_no_other_from_its_news(
    studies, sqlite, monkeypatch, caplog
):
    for name in ("broken", "whole"):
        StudyStore.create(sqlite, name, definition(small_space()))
    detail = studies._detail

    def fails(look, name):
        if name == "broken":
            raise ValueError("not as expected")
        return detail(look, name)

    monkeypatch.setattr(studies, "_detail", fails)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert set(studies.news({"broken": "", "whole": "", LIST: ""})) == {"whole", LIST}
    (record,) = caplog.records
    assert "there is no news of broken; trying again" in record.getMessage()
    monkeypatch.undo()
    assert studies.news({"broken": ""})["broken"].event == "study"


@pytest.mark.parametrize("study", ["nonsense", "../../etc/passwd", "/bin/sh"])
def test_only_a_study_of_the_catalogue_is_started(studies, study):
    with pytest.raises(ProblemError, match=rf"has no study '{study}'; it has: outside, sleepy, unmeasured") as refused:
        studies.start(NewStudy(study=study), "")
    assert refused.value.status == 404
    assert studies.briefs() == []


def test_a_name_is_that_of_one_study_of_the_catalogue(studies):
    studies.start(NewStudy(study="outside", name="mine"), "")
    for other in ("unmeasured", "sleepy"):
        with pytest.raises(NameTakenError, match="taken by a study of 'outside'"):
            studies.start(NewStudy(study=other, name="mine"), "")
    assert studies.brief("mine").ask_tell


def test_without_its_catalogue_a_study_is_still_shown_and_let_go(studies, catalogue):
    studies.start(NewStudy(study="outside", name="mine"), "")
    shutil.rmtree(catalogue)
    assert [brief.state for brief in studies.briefs()] == ["open"]
    assert studies.stop("mine", "").state == "stopped"
    studies.delete("mine")
    assert studies.briefs() == []


def test_a_study_on_which_the_command_line_works_says_so(studies, sqlite):
    StudyStore.create(sqlite, "mine", definition(small_space()))
    assert (studies.brief("mine").state, studies.brief("mine").message) == ("stopped", "")
    with held_study(sqlite) as works:
        before = studies.news({"mine": ""})["mine"].stamp
        assert studies.brief("mine").state == "running"
        assert f"autotune (process {works.pid}) works on it since" in studies.brief("mine").message
        works.communicate()
    assert studies.brief("mine").message == ""
    assert studies.news({"mine": before}), "that it ended is news"


def test_a_trade_off_has_a_front_and_no_winner(studies, sqlite):
    space, memory = small_space(), Metric("memory", "B")
    first, second, third, *_ = space.configurations()
    known = definition(space, metrics=(SECONDS, memory), study={"tradeoff": {"metric": "memory"}})
    store = StudyStore.create(sqlite, "both", known)
    for configuration, wall_s, size in ((first, 3.0, 1e9), (second, 2.0, 2e9), (third, 4.0, 3e9)):
        add_trial(store, space, configuration, Outcome(metrics={"wall_s": wall_s, "memory": size}))
    found = studies.detail("both")
    assert (found.front, found.best, found.speed_up, found.incumbent) == (2, None, None, None)
    assert [(point.trial, point.texts) for point in found.front_points] == [
        (1, {"wall_s": "2 s", "memory": "2 GB"}),
        (0, {"wall_s": "3 s", "memory": "1 GB"}),
    ]


def test_a_study_in_which_nothing_worked_says_why(studies, sqlite):
    space = small_space()
    first, second, *_ = space.configurations()
    for name, others in (("dead", []), ("half", [took(1.0)])):
        store = StudyStore.create(sqlite, name, definition(space))
        add_trial(store, space, first, failed(FailureKind.APPLICATION_ERROR, "no device in /opt/solver/lib"))
        for outcome in others:
            add_trial(store, space, second, outcome)
    assert studies.brief("dead").state == "failed"
    assert studies.brief("dead").trouble == "every trial failed, 1 of 1; trial 0: no device in /opt/solver/lib"
    half = studies.detail("half")
    assert (half.state, half.trouble) == ("stopped", "")
    assert (half.first_error.trial, half.first_error.message) == (0, "no device in /opt/solver/lib")


def test_the_runs_that_were_set_aside_because_others_disturbed_them_are_counted(studies, sqlite):
    space = small_space()
    first, *_ = space.configurations()
    store = StudyStore.create(sqlite, "mine", definition(space))
    add_trial(store, space, first, took(2.0))
    assert studies.detail("mine").disturbance == ""
    outcome = replace(took(2.0), conditions={"taken_share": 0.5}).set_aside(DISTURBED, "was disturbed")
    runs = [Run(first, 0, TUNING.aside, outcome=outcome, started=f"2026-11-23T10:00:0{second}") for second in (1, 2)]
    store.add_runs(runs)
    assert studies.detail("mine").disturbance.endswith("; of 2 runs, 2 set aside for that")


def test_a_study_whose_verdict_is_due_is_not_finished(studies, sqlite):
    space = small_space()
    first, second, *_ = space.configurations()
    for name, seconds in (("due", 2.0), ("none better", 4.0)):
        store = StudyStore.create(sqlite, name, definition(space, study={"budget": {"trials": 2}}))
        for configuration, took_s in ((first, 3.0), (second, seconds)):
            add_trial(store, space, configuration, took(took_s), worth=Observation(took_s))
    assert (studies.brief("due").state, studies.brief("none better").state) == ("stopped", "finished")


def test_a_study_that_has_tried_every_configuration_is_finished_below_its_budget(studies, sqlite):
    space = small_space()
    store = StudyStore.create(sqlite, "all", definition(space, study={"budget": {"trials": 500}}))
    every = list(space.configurations())
    for configuration in every[:-1]:
        add_trial(store, space, configuration, took(3.0), worth=Observation(3.0))
    found = studies.brief("all")
    assert (found.state, found.trials, found.budget) == ("stopped", len(every) - 1, len(every))
    add_trial(store, space, every[-1], took(4.0), worth=Observation(4.0))
    assert studies.brief("all").state == "finished"


def test_requests_at_once_start_no_more_studies_than_a_budget_allows(studies, monkeypatch):
    begin = threading.Barrier(6)
    started = AskTellStudies.submit

    def submit(self, order):
        time.sleep(0.05)  # the others have counted by then, if they can
        return started(self, order)

    monkeypatch.setattr(AskTellStudies, "submit", submit)

    def ask(number):
        begin.wait()
        try:
            return studies.start(NewStudy(study="outside", name=f"n{number}"), "bot", Budget(studies=1)).name
        except AutotuneError as error:
            return str(error)

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(ask, range(6)))
    (name,) = [brief.name for brief in studies.briefs()]
    assert name in answers
    assert sum("the budget allows 1" in answer for answer in answers) == 5


@pytest.mark.parametrize("token", [START, None])
def test_the_budget_of_the_token_counts_and_that_of_the_request_without_one(tmp_path, sqlite, catalogue, token):
    settings = Settings(sqlite, tmp_path / "service", catalogue, start_token=START)
    (catalogue / "sleepy.toml").write_text(f'name = "nap"\n{SLEEPY}')
    token = token or TokenBook(settings.tokens).add("agent", budget=Budget(studies=0))
    asked = {"study": "sleepy", "budget": {"studies": 9 if token != START else 0}}
    answer = ask(create_app(settings), "POST", "/studies", token=token, json=asked)
    assert answer.status_code == 422
    assert "0 studies begin with 'agent-', and the budget allows 0" in answer.json()["detail"]
    orders = [json.loads(line) for line in settings.audit.read_text().splitlines()]
    assert [order["name"] for order in orders] == ["agent-nap", "agent-nap"], "the name that the study would have"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["trials", "table", "table.csv", "pictures/progress"])
def test_a_kept_answer_is_not_older_than_its_key(tmp_path, sqlite, monkeypatch, end):
    space, path, find_key = small_space(), f"/studies/mine/{end}", Studies.key
    settings = Settings(sqlite, tmp_path / "service", read_only=True, start_token=START)
    store = StudyStore.create(sqlite, "mine", definition(space))
    first, second, *_ = space.configurations()
    add_trial(store, space, first, took(2.0))
    app = create_app(settings)
    monkeypatch.setattr(summaries_module, "_SERVES", 0.0)
    ask(app, path=path)
    add_trial(store, space, second, took(1.0))

    def key(self, *asked):
        found = find_key(self, *asked)
        # A drawing of the earlier version ends now, and has cost so much that this version is served for a while.
        with self._summaries._extend_if_costly("mine"):
            return found

    monkeypatch.setattr(summaries_module, "_SERVES", 1e12)
    monkeypatch.setattr(summaries_module, "_LONG_S", 0.0)
    monkeypatch.setattr(Studies, "key", key)
    assert ask(app, path=path).content == ask(create_app(settings), path=path).content


def test_a_summary_that_only_waited_for_a_processor_is_not_served_for_longer(sqlite, monkeypatch):
    def summarise(study):
        time.sleep(1.2 * summaries_module._LONG_S)
        return summarise_now(study)

    summarise_now = summaries_module.summarise
    monkeypatch.setattr(summaries_module, "_SERVES", 1e12)
    monkeypatch.setattr(summaries_module, "summarise", summarise)
    space, summaries = small_space(), StudySummaries(StoredStudies(sqlite))
    store = StudyStore.create(sqlite, "mine", definition(space))
    before = summaries.versions()["mine"]
    summaries.summary("mine", before)
    add_trial(store, space, next(iter(space.configurations())), took(2.0))
    assert summaries.versions()["mine"] != before


def test_a_study_that_has_ended_is_never_served_as_it_was_before(sqlite, monkeypatch):
    monkeypatch.setattr(summaries_module, "_SERVES", 1e12)
    monkeypatch.setattr(summaries_module, "_LONG_S", 0.0)
    space, summaries = small_space(), StudySummaries(StoredStudies(sqlite))
    store = StudyStore.create(sqlite, "mine", definition(space))
    before = summaries.versions()["mine"]
    summaries.summary("mine", before)
    add_trial(store, space, next(iter(space.configurations())), took(2.0))
    assert summaries.versions()["mine"] == before
    assert summaries.versions({"mine"})["mine"] != before
