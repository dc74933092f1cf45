"""Questions for predictions: what an answer is about, and how long it may be kept."""

import os
from dataclasses import replace

import pytest

from autotune.performance.predict import Target, question
from autotune.records.measurement import Judged, Measured
from autotune.service.catalogue import Catalogue
from autotune.service.problems import ProblemError
from autotune.service.routes.predicting import Predictor, Question
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.studies import StoredStudies
from launchers.local import local_launcher

SOLVER = """
objective = "command"
[options]
argv = ["echo", "{x}"]
metrics = [{ name = "took_s", unit = "s", pattern = '(\\S+)', kind = "time" }]
[space.parameters.x]
type = "integer"
low = 1
high = 4
default = 4
"""
# It is tuned for one input, and verified on another.
INPUTS = """
[[inputs]]
name = "tuned"
[[inputs]]
name = "large"
weight = 0
options = { argv = ["echo", "large", "{x}"] }
"""
MARS = {"cores": 4, "cores_per_node": 4, "nodes": 1}


@pytest.fixture
def catalogue(tmp_path):
    folder = tmp_path / "catalogue"
    folder.mkdir()
    (folder / "solver.toml").write_text(SOLVER, encoding="utf-8")
    return Catalogue(folder)


@pytest.fixture
def measured(catalogue, tmp_path):
    """What was measured of the study's own problem on the described machine."""
    target = Target("the described machine", MARS)
    setting = question(catalogue.find("solver").study, target, local_launcher(), tmp_path / "asked").setting
    return [Measured(replace(setting, source="a page"), {"x": x}, 4.0 / x, runs=2) for x in (1, 2, 4)]


def test_facts_of_another_problem_are_not_answered_with_what_was_measured_of_the_studys_own(
    sqlite, catalogue, measured
):
    MeasurementStore.create(sqlite).add(measured)
    predictor = Predictor(catalogue, sqlite, StoredStudies(sqlite))
    own = predictor.predict(Question(study="solver", machine=MARS))
    assert [row.value for row in own.measured] == [1.0, 2.0, 4.0]
    other = predictor.predict(Question(study="solver", machine=MARS, workload={"cells": 9000.0}))
    assert other.measured == []
    assert not any(proposal.measured_runs for proposal in (other.default, *other.proposals))


def test_the_best_measured_is_that_of_the_grounds_a_verdict_s_winner_first(sqlite, catalogue, measured):
    judged = Judged({"x": 2}, {"x": 4}, True, 0.95, (1.5, 1.4, 1.6))
    MeasurementStore.create(sqlite).add([replace(row, value=row.value / 1000, judged=judged) for row in measured])
    found = Predictor(catalogue, sqlite, StoredStudies(sqlite)).predict(Question(study="solver", machine=MARS))
    assert [row.configuration["x"] for row in found.measured] == [2, 4, 1], "the trial that looked best lost to it"
    assert any(f"the best {found.measured[0].text} in 2 runs (x=2)" in ground for ground in found.grounds)


def test_an_input_of_the_study_is_asked_for_by_its_name(sqlite, catalogue, measured):
    MeasurementStore.create(sqlite).add(measured)
    (catalogue.folder / "solver.toml").write_text(SOLVER + INPUTS, encoding="utf-8")
    predictor = Predictor(catalogue, sqlite, StoredStudies(sqlite))
    assert predictor.predict(Question(study="solver", machine=MARS)).measured
    assert not predictor.predict(Question(study="solver", machine=MARS, workload="large")).measured
    with pytest.raises(ProblemError, match="has no input 'small'; it has: tuned, large"):
        predictor.predict(Question(study="solver", machine=MARS, workload="small"))


def test_the_key_of_an_answer_changes_with_whatever_it_rests_on(sqlite, catalogue, measured, tmp_path, monkeypatch):
    machine, keys = tmp_path / "mars.toml", set()
    machine.write_text("")
    monkeypatch.setattr("autotune.service.routes.predicting.machine_files", lambda: {"mars": machine})
    predictor = Predictor(catalogue, sqlite, StoredStudies(sqlite))

    def is_new(k=5):
        first, second = (predictor.key(Question(study="solver", machine="mars", k=k)) for _ in range(2))
        assert first == second
        found = first not in keys
        keys.add(first)
        return found

    assert is_new()
    assert is_new(k=6)
    MeasurementStore.create(sqlite).add(measured)
    assert is_new()
    MeasurementStore.create(sqlite).add([replace(measured[0], value=5.0)])
    assert is_new()
    for number, file in enumerate((catalogue.folder / "solver.toml", machine), start=3):
        os.utime(file, ns=(0, number))
        assert is_new()
    machine.unlink()
    assert is_new()
    assert not is_new()
