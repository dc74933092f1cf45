"""`autotune studies`: what ships, and what it came to here."""

import json
from dataclasses import replace

import pytest

from autotune import studyfile
from autotune.decisions.table import DecisionTable
from autotune.records.series import Series
from autotune.records.study import Run
from autotune.results.tuning_result import took_s, tuning_result_of
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind, Metric
from objectives.decision import Decision
from tests.autotune.results.test_known_configurations import SPACE, study
from tests.support.command_line import invoke
from tests.support.fakes import definition, failed, took
from tests.support.stored import add_trial


@pytest.fixture
def storage(tmp_path):
    return f"{tmp_path / 'studies.db'}"


def ran(*words):
    ended = invoke("studies", *words)
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_every_study_that_ships_is_listed_before_anything_was_tuned(storage):
    rows = json.loads(ran("--storage", storage, "--json"))
    assert [row["study"] for row in rows] == list(studyfile.catalogue())
    assert {row["over_the_default"] for row in rows} == {"not tuned here"}
    assert all(row["description"] for row in rows)


def test_a_study_that_was_tuned_here_has_its_verdict(storage):
    study(f"sqlite:///{storage}", "stream", *[(2.0, 1.0)] * 6)
    row = next(row for row in json.loads(ran("--storage", storage, "--json")) if row["study"] == "stream")
    assert row["over_the_default"] == "2.000x (2.000 to 2.000)"
    assert (row["runs"], row["took_s"], row["spent_core_s"]) == (3, 1.0, 4.0)
    table = ran("--storage", storage, "--markdown").splitlines()
    assert table[1] == "| --- | --- | --- | --- | --- | --- | --- | --- |"
    assert any(line.startswith("| stream | 2.000x (2.000 to 2.000) | 0 | 3 | 00:01 | 4 | 0 |") for line in table)


def test_a_study_without_a_winner_is_in_the_table_too(storage):
    store = StudyStore.create(f"sqlite:///{storage}", "stream", definition(SPACE))
    add_trial(store, SPACE, SPACE.default(), failed(FailureKind.APPLICATION_ERROR))
    row = next(row for row in json.loads(ran("--storage", storage, "--json")) if row["study"] == "stream")
    assert row["over_the_default"] == "no valid measurement yet"
    assert row["runs"] == 1


def test_what_a_watch_ran_later_is_not_the_studys(storage):
    store = study(f"sqlite:///{storage}", "stream", *[(2.0, 1.0)] * 6)
    before = tuning_result_of(store)
    began = {"started": "2026-06-01T10:00:00+00:00", "job": {"resources": {"cores": 2}}}
    store.add_runs([Run(SPACE.default(), 0, Series.watch(1, 1), outcome=took(50.0), **began)])
    assert tuning_result_of(store) == before


def test_a_replay_has_no_figures_of_work_that_never_happened(storage):
    study(f"sqlite:///{storage}", "stream", *[(2.0, 1.0)] * 6, objective="replay")
    table = ran("--storage", storage, "--markdown").splitlines()
    assert any(line.startswith("| stream | a replay: nothing ran |  |  |  |  |  |") for line in table)


def test_a_decision_table_says_in_how_many_cells_another_setting_is_better(storage, monkeypatch):
    own, tree = {"way": "own"}, {"way": "tree"}
    cells = (Decision({"op": "sum"}, None, tree, own, 1.4, 1.2, 1.6, 8), Decision({"op": "copy"}, None, own, own))
    found = DecisionTable(Metric("us", "us"), ("op",), None, 0.95, cells, overall=(1.18, 1.1, 1.26))
    monkeypatch.setattr("autotune.results.tuning_result.table_of", lambda _: found)
    study(f"sqlite:///{storage}", "stream")
    row = next(row for row in json.loads(ran("--storage", storage, "--json")) if row["study"] == "stream")
    assert row["over_the_default"] == "1 of 2 cells better than the default; 1.180x (1.100 to 1.260) over all"
    monkeypatch.setattr("autotune.results.tuning_result.table_of", lambda _: replace(found, overall=None))
    row = next(row for row in json.loads(ran("--storage", storage, "--json")) if row["study"] == "stream")
    assert row["over_the_default"] == "1 of 2 cells better than the default"


def test_pauses_between_runs_are_not_work():
    begins = [f"2026-01-01T{time}+00:00" for time in ("10:00:00", "10:00:05", "10:04:00", "12:00:00")]
    runs = [Run({}, outcome=took(10.0), started=begun) for begun in begins]
    assert took_s([*reversed(runs), Run({}, outcome=took(99.0))]) == 250.0 + 10.0
