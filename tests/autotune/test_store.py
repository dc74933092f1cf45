import sqlite3

import pytest

from autotune.errors import StorageError
from autotune.search.sampler import ValidSetSampler
from autotune.search.store import StudyStore, study_names
from objectives.base import Answer, FailureKind
from tests.autotune.fakes import definition, failed, small_space, took

SPACE = small_space()


@pytest.fixture
def address(tmp_path):
    return f"sqlite:///{tmp_path / 'autotune.db'}"


def opened(address, **changes):
    store = StudyStore.create(address, "paper", definition(SPACE, **changes))
    store.use(ValidSetSampler(SPACE))
    return store


def test_what_was_told_is_read_back(address):
    store = opened(address)
    first, second = store.ask(SPACE), store.ask(SPACE)
    store.lease(0, {"argv": ["x"]})
    outcome = took(2.5).__class__(
        metrics={"wall_s": 2.5}, answer=Answer("energy", -1.0, 1e-6, "Ry"), details={"iterations": 9}
    )
    store.tell(0, outcome)
    store.lease(1, {"argv": ["y"]})
    store.tell(1, failed(FailureKind.TIMED_OUT, "too slow"))
    read = StudyStore.read(address, "paper")
    assert [trial.configuration for trial in read.trials()] == [first.configuration, second.configuration]
    assert read.trials()[0].outcome == outcome
    assert read.trials()[1].outcome == failed(FailureKind.TIMED_OUT, "too slow")
    assert read.definition == definition(SPACE)
    assert study_names(address) == ["paper"]


def test_a_trial_without_a_job_is_set_aside_and_its_configuration_is_free_again(address):
    store = opened(address)
    lost = store.ask(SPACE)
    store = opened(address)
    store.recover()
    assert store.trials() == []
    again = store.ask(SPACE)
    assert again.configuration == lost.configuration
    assert again.number == 1


def test_a_trial_with_a_job_stays_and_one_with_an_outcome_is_finished(address):
    store = opened(address)
    store.ask(SPACE)
    store.lease(0, {"argv": []})
    store.ask(SPACE)
    store.lease(1, {"argv": []})
    store._storage.set_trial_user_attr(store._id(1), "outcome", took(3.0).to_dict())
    store = opened(address)
    store.recover()
    states = [(trial.number, trial.complete) for trial in store.trials()]
    assert states == [(0, False), (1, True)]
    store.tell(0, took(1.0))
    assert all(trial.complete for trial in store.trials())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"identity": {"input": "other"}}, "input: abc there, other here"),
        ({"machine_identity": {"cpu": "other"}}, "machine cpu: paper there, other here"),
        ({"objective": "command"}, "objective"),
        ({"space": {"other": 1}}, "the space"),
    ],
)
def test_a_study_of_something_else_is_not_continued(address, changes, said):
    opened(address)
    with pytest.raises(StorageError, match=said) as caught:
        opened(address, **changes)
    assert "--name" in str(caught.value)


def test_reading_what_is_not_there(address, tmp_path):
    with pytest.raises(StorageError, match="no storage at"):
        StudyStore.read(address, "paper")
    assert list(tmp_path.iterdir()) == []
    opened(address)
    with pytest.raises(StorageError, match=r"no study 'qe'.*there: paper"):
        StudyStore.read(address, "qe")


def test_another_programs_file_is_left_as_it_is(address, tmp_path):
    path = tmp_path / "autotune.db"
    path.write_text("not a database, but somebody's notes" * 100)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="not a database"):
        opened(address)
    assert path.read_bytes() == before


def test_readers_do_not_block_the_writer(address, tmp_path):
    store = opened(address)
    reader = sqlite3.connect(tmp_path / "autotune.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM trials").fetchall()
    store.ask(SPACE)
    store.lease(0, {})
    store.tell(0, took(1.0))
    reader.close()
    assert store.trials()[0].complete
