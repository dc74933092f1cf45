"""Stored studies: their versions, snapshots and removal."""

from dataclasses import replace

import optuna
import pytest

from autotune.errors import StorageError
from autotune.records.study import Run
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.observation import Observation
from autotune.storage.studies import StoredStudies
from autotune.storage.study_store import StudyStore
from tests.autotune.storage.test_measurement_store import THREE
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()


def made(address, name="mine"):
    return StudyStore.create(address, name, definition(SPACE))


def test_the_version_is_another_with_every_change_and_with_nothing_else(address):
    stored = StoredStudies(address)
    assert stored.versions() == {}
    store = made(address)
    seen = [stored.versions()["mine"]]

    def changed():
        seen.append(stored.versions()["mine"])
        assert stored.versions()["mine"] == seen[-1]
        return seen[-1] not in seen[:-1]

    trial = add_trial(store, SPACE, SPACE.default())
    assert changed()
    store.add_runs([Run(trial.configuration, trial.number, outcome=took(2.0))])
    assert changed()
    store.settle_all({trial.number: Observation(value=2.0, runs=1)})
    assert changed()
    store.set_attribute("note", {"said": 1})
    assert changed()
    store.set_attribute("note", {"said": 2})
    assert changed()
    # Changes of another study are no changes of this one.
    add_trial(made(address, "another"), SPACE, SPACE.default())
    assert stored.versions()["mine"] == seen[-1]
    assert 0 <= seen[-1] < 2**53


def test_a_snapshot_is_what_the_study_was_and_the_next_one_what_it_is(address):
    stored = StoredStudies(address)
    store = made(address)
    configurations = list(SPACE.configurations())
    add_trial(store, SPACE, configurations[0], took(2.0), worth=Observation(value=2.0))
    before = stored.snapshot("mine")
    assert before.definition == store.definition
    assert (before.runs(), before.trials()) == (store.runs(), store.trials())
    add_trial(store, SPACE, configurations[1], took(3.0))
    store.set_attribute("note", {"said": 1})
    after = stored.snapshot("mine")
    assert (len(before.runs()), len(after.runs())) == (1, 2)
    assert after.attribute("note") == {"said": 1}
    assert (after.runs(), after.trials()) == (store.runs(), store.trials())
    with pytest.raises(StorageError, match="no study 'another'"):
        stored.snapshot("another")


def test_what_is_thrown_away_is_gone_and_nothing_else(address):
    stored = StoredStudies(address)
    for name in ("mine", "another"):
        store = made(address, name)
        add_trial(store, SPACE, SPACE.default(), took(2.0))
    another = stored.versions()["another"]
    stored.remove("mine")
    assert stored.versions() == {"another": another}
    assert len(stored.open("another").runs()) == 1
    with pytest.raises(StorageError, match="no study 'mine'"):
        stored.remove("mine")
    with pytest.raises(StorageError, match="no study 'mine'"):
        stored.open("mine")
    # One of the same name begins without the runs of that before.
    assert made(address).runs() == []


def test_the_study_of_another_program_is_neither_shown_nor_touched(address):
    stored = StoredStudies(address)
    storage = optuna.storages.RDBStorage(address)
    theirs = optuna.create_study(study_name="theirs", storage=storage)
    theirs.set_user_attr("x", 1)
    theirs.enqueue_trial({"y": 2.0})
    made(address)
    assert list(stored.versions()) == ["mine"]
    stored.remove("mine")
    assert len(theirs.get_trials()) == 1
    assert theirs.user_attrs == {"x": 1}


def test_the_version_of_what_was_imported_is_another_with_every_change_of_it(address):
    stored = StoredStudies(address)
    seen = [stored.imported_version()]
    more = replace(THREE[0], value=3.5, runs=9)
    for step in (lambda library: library.add(THREE), lambda library: library.add([more])):
        step(MeasurementStore.create(address))
        assert stored.imported_version() not in seen
        seen.append(stored.imported_version())
    MeasurementStore.create(address).add([more])
    assert stored.imported_version() == seen[-1]
    MeasurementStore.create(address).remove("another page")
    assert stored.imported_version() not in seen
