"""Questions for predictions: few wait for the one in work, none for long; and what an answer is about."""

import os
import threading
from dataclasses import replace
from itertools import count

import pytest

from autotune.performance.predict import Target, question
from autotune.records.measurement import Measured
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


@pytest.fixture
def busy(sqlite, monkeypatch):
    """A predictor of little patience that works on a question until the event is set."""
    working, done = threading.Event(), threading.Event()

    def predicted(predictor, question, entry):
        working.set()
        assert done.wait(60)
        return question.k

    monkeypatch.setattr(Predictor, "_predict", predicted)
    predictor = Predictor(Catalogue(), sqlite, StoredStudies(sqlite), patience_s=0.05)
    thread = threading.Thread(target=predictor.answer, args=[Question(study="qe", k=1)])
    thread.start()
    assert working.wait(60)
    yield predictor, done
    done.set()
    thread.join()


def refused(predictor):
    with pytest.raises(ProblemError) as problem:
        predictor.answer(Question(study="qe", k=2))
    assert (problem.value.status, problem.value.headers) == (503, {"Retry-After": "5"})
    return problem.value.detail


def test_a_question_does_not_wait_for_long(busy):
    predictor, done = busy
    assert "take more than" in refused(predictor)
    done.set()
    predictor._patience_s = 60.0
    assert predictor.answer(Question(study="qe", k=2)) == 2
    done.clear()
    assert predictor.answer(Question(study="qe", k=1)) == 1  # it was answered: nobody has to wait for it


def test_few_questions_wait(busy):
    predictor, _ = busy
    predictor._patience_s = 60.0
    waiting = [threading.Thread(target=predictor.answer, args=[Question(study="qe", k=3 + n)]) for n in range(4)]
    for thread in waiting:
        thread.start()
    while predictor._places._value:
        pass
    assert "questions wait" in refused(predictor)
    busy[1].set()
    for thread in waiting:
        thread.join()


def test_facts_of_another_problem_are_not_answered_with_what_was_measured_of_the_studys_own(
    sqlite, catalogue, measured
):
    MeasurementStore.create(sqlite).add(measured)
    predictor = Predictor(catalogue, sqlite, StoredStudies(sqlite))
    own = predictor.answer(Question(study="solver", machine=MARS))
    assert [row.value for row in own.measured] == [1.0, 2.0, 4.0]
    other = predictor.answer(Question(study="solver", machine=MARS, workload={"cells": 9000.0}))
    assert other.measured == []
    assert not any(proposal.measured_runs for proposal in (other.default, *other.proposals))


def test_an_input_of_the_study_is_asked_for_by_its_name(sqlite, catalogue, measured):
    MeasurementStore.create(sqlite).add(measured)
    (catalogue.folder / "solver.toml").write_text(SOLVER + INPUTS, encoding="utf-8")
    predictor = Predictor(catalogue, sqlite, StoredStudies(sqlite))
    assert predictor.answer(Question(study="solver", machine=MARS)).measured
    assert not predictor.answer(Question(study="solver", machine=MARS, workload="large")).measured
    with pytest.raises(ProblemError, match="has no input 'small'; it has: tuned, large"):
        predictor.answer(Question(study="solver", machine=MARS, workload="small"))


def test_an_answer_is_kept_until_something_changes_that_it_rests_on(sqlite, catalogue, measured, tmp_path, monkeypatch):
    answers, machine = count(), tmp_path / "mars.toml"
    machine.write_text("")
    monkeypatch.setattr(Predictor, "_predict", lambda *_: next(answers))
    monkeypatch.setattr("autotune.service.routes.predicting.machine_files", lambda: {"mars": machine})
    predictor = Predictor(catalogue, sqlite, StoredStudies(sqlite))

    def answered():
        first, second = (predictor.answer(Question(study="solver", machine="mars")) for _ in range(2))
        assert first == second
        return first

    assert answered() == 0
    MeasurementStore.create(sqlite).add(measured)
    assert answered() == 1
    MeasurementStore.create(sqlite).add([replace(measured[0], value=5.0)])
    assert answered() == 2
    for number, file in enumerate((catalogue.folder / "solver.toml", machine), start=3):
        os.utime(file, ns=(0, number))
        assert answered() == number
    machine.unlink()
    assert answered() == 5
