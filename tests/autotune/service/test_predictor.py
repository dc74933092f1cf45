"""Questions for predictions: few wait for the one in work, and none for long."""

import threading

import pytest

from autotune.service.catalogue import Catalogue
from autotune.service.models.predictions import Question
from autotune.service.problems import ProblemError
from autotune.service.routes.predicting import Predictor
from autotune.storage.studies import StoredStudies


@pytest.fixture
def busy(sqlite, monkeypatch):
    """A predictor of little patience that works on a question until the event is set."""
    working, done = threading.Event(), threading.Event()

    def predicted(predictor, question, entry):
        working.set()
        assert done.wait(60)
        return question.k

    monkeypatch.setattr(Predictor, "_predicted", predicted)
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
