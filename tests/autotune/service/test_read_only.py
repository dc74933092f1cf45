"""A service that only shows studies: to a group, from a folder that it may not be able to write."""

import pytest

from autotune.errors import StorageError
from autotune.records.study import Run
from autotune.service.routes.app import create_app
from autotune.service.settings import Settings
from autotune.service.tokens import TokenBook
from autotune.storage.study_store import StudyStore
from tests.autotune.service.test_access import START, ask
from tests.autotune.storage.test_sqlite_file import files, read_only
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
DEFAULT, OTHER = SPACE.default(), next(one for one in SPACE.configurations() if one != SPACE.default())
CHANGES = (
    ("POST", "/studies"),
    ("POST", "/studies/paper/pause"),
    ("POST", "/studies/paper/resume"),
    ("POST", "/studies/paper/stop"),
    ("DELETE", "/studies/paper"),
    ("POST", "/studies/paper/ask"),
    ("POST", "/studies/paper/tell"),
    ("POST", "/studies/paper/hints"),
    ("PUT", "/studies/paper/labels"),
    ("PUT", "/anything"),
)


@pytest.fixture
def folder(tmp_path):
    """A folder with a storage of one study."""
    there = tmp_path / "theirs"
    there.mkdir()
    store = StudyStore.create(f"sqlite:///{there / 'autotune.db'}", "paper", definition(SPACE))
    add_trial(store, SPACE, DEFAULT, took(2.0))
    add_trial(store, SPACE, OTHER, took(1.0))
    return there


def url_of(folder):
    return f"sqlite:///{folder / 'autotune.db'}"


def service(folder):
    return create_app(Settings(url_of(folder), folder / "autotune-service", read_only=True, start_token=START))


def test_everything_can_be_seen_and_nothing_changed(folder):
    app = service(folder)
    assert ask(app, path="/health").json()["read_only"] is True
    (study,) = ask(app).json()
    assert (study["name"], study["state"], study["best"]) == ("paper", "stopped", 1.0)
    assert ask(app, path="/studies/paper").json()["incumbent"]["configuration"] == OTHER
    assert "has no decision table" in ask(app, path="/studies/paper/decisions").json()["detail"]
    assert len(ask(app, path="/studies/paper/trials").json()["trials"]) == 2
    for method, path in CHANGES:
        answer = ask(app, method, path, json={})
        assert answer.status_code == 403, path
        assert "read-only" in answer.json()["detail"]
    assert ask(app, "POST", "/predict", json={"study": "nobody"}).status_code == 404
    assert not (folder / "autotune-service").exists()
    assert [one["name"] for one in ask(app).json()] == ["paper"]


def test_prometheus_reads_the_number_of_studies_in_each_state(folder):
    answer = ask(service(folder), path="/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    kind, *counts, end = answer.text.splitlines()
    assert (kind, end) == ("# TYPE autotune_studies gauge", "# EOF")
    assert [line for line in counts if not line.endswith(" 0")] == ['autotune_studies{state="stopped"} 1']


@pytest.mark.slow
def test_what_is_known_to_work(folder):
    (known,) = ask(service(folder), path="/known").json()
    assert (known["program"], known["configuration"], known["confirmed"]) == ("paper", OTHER, False)
    assert (known["speed_up"], known["interval"]) == (2.0, None)


def test_what_others_store_meanwhile_is_seen(folder):
    app = service(folder)
    assert ask(app, path="/known").json()[0]["runs"] == 1
    writer = StudyStore.read(url_of(folder), "paper", read_only=False)
    writer.add_runs([Run(OTHER, 1, outcome=took(0.5))])
    assert ask(app, path="/studies/paper").json()["incumbent"]["runs"] == [1.0, 0.5]
    assert ask(app, path="/known").json()[0]["runs"] == 2


def test_a_storage_that_cannot_be_written_is_served(folder):
    before = files(folder)
    with read_only(folder):
        app = service(folder)
        assert [one["name"] for one in ask(app).json()] == ["paper"]
        assert len(ask(app, path="/studies/paper/trials").json()["trials"]) == 2
        with pytest.raises((StorageError, OSError)):
            create_app(Settings(url_of(folder), folder / "autotune-service"))
    assert files(folder) == before


def test_tokens_in_a_folder_of_others_are_refused_at_the_start(folder):
    tokens = folder / "autotune-service" / "tokens.json"
    TokenBook(tokens).add("eve")
    tokens.parent.chmod(0o1777)
    with pytest.raises(StorageError, match="others can write to the folder"):
        service(folder)


def test_without_a_storage_there_is_nothing_to_serve(tmp_path):
    with pytest.raises(StorageError, match="no storage at"):
        service(tmp_path)
