"""Hints: a study takes valid and new configurations of those who may ask, and says what became of each."""

import pytest

from autotune.service.routes import hints
from autotune.service.routes.app import create_app
from autotune.service.settings import Settings
from autotune.storage.study_store import StudyStore
from tests.autotune.service.test_access import START, ask
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
FEW = {"np": 4, "npool": 2}


@pytest.fixture
def settings(tmp_path):
    url = f"sqlite:///{tmp_path / 'autotune.db'}"
    add_trial(StudyStore.create(url, "paper", definition(SPACE)), SPACE, SPACE.default(), took(2.0))
    return Settings(url, tmp_path / "service", start_token=START)


@pytest.fixture
def app(settings):
    return create_app(settings)


def give(app, configuration, why="", **more):
    body = {"configuration": configuration, "why": why}
    return ask(app, "POST", "/studies/paper/hints", json=body, **more)


def test_the_space_is_described_with_its_rules(app):
    found = ask(app, path="/studies/paper/space").json()
    schema = found["configuration"]
    assert schema["properties"]["np"] == {"enum": [1, 2, 3, 4, 5, 6, 7, 8]}
    assert schema["required"] == ["np"]
    assert schema["additionalProperties"] is False
    assert "np % npool == 0 (every pool has the same number of ranks)" in schema["description"]
    assert found["default"] == {"np": 8}


@pytest.mark.slow
def test_a_hint_waits_until_it_is_tried(app, settings):
    given = give(app, FEW, "half the ranks")
    assert given.status_code == 201
    assert given.json()["trial"] is None
    [waiting] = ask(app, path="/studies/paper/hints").json()
    assert (waiting["configuration"], waiting["by"], waiting["why"]) == (FEW, "this user", "half the ranks")
    add_trial(StudyStore.read(settings.url, "paper", read_only=False), SPACE, FEW, took(1.0))
    [tried] = ask(app, path="/studies/paper/hints").json()
    assert tried["trial"] == 1


@pytest.mark.parametrize(
    ("configuration", "status", "words"),
    [
        ({"np": 4, "npool": 3}, 422, "every pool has the same number of ranks"),
        ({"np": 1e6}, 422, "not one of its values"),
        ({"np": 4, "argv": "rm"}, 422, "argv"),
        ({"np": [4]}, 422, "configuration"),
        ({}, 422, "np"),
        (SPACE.default(), 409, "trial 0"),
    ],
)
def test_what_is_not_valid_or_not_new_is_no_hint(app, settings, configuration, status, words):
    refused = give(app, dict(configuration))
    assert refused.status_code == status
    assert words in refused.json()["detail"]
    assert ask(app, path="/studies/paper/hints").json() == []


def test_the_same_hint_is_taken_once_and_many_are_refused(app, monkeypatch):
    assert give(app, FEW).status_code == 201
    assert give(app, FEW).status_code == 409
    monkeypatch.setattr(hints, "MOST_WAITING", 1)
    assert "1 hints wait" in give(app, {"np": 2}).json()["detail"]
