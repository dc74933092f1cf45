"""Studies that are read without Optuna: whoever reads them with it finds no difference."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autotune.errors import ChangedProgramError, DifferentStudyError, StorageError
from autotune.records.series import Series
from autotune.records.study import Run
from autotune.storage.observation import Observation
from autotune.storage.optuna_tables import parameter_reader
from autotune.storage.readable_study import VERDICT
from autotune.storage.stored_study import StoredStudy, check_continues, open_stored_studies, open_stored_study
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from spaces import Choice, Flag, Float, Integer, Space
from tests.support import storages
from tests.support.fakes import definition, failed, took
from tests.support.stored import add_trial

SPACE = Space(
    [
        Integer.range("np", 1, 8, default=8),
        Integer.powers_of_two("block", 1, 64, default=4),
        Float("rate", 0.25, 4.0, default=0.25),
        Choice("blas", ("slow", "fast"), optional=True),
        Flag("pin"),
    ]
)
CONFIGURATIONS = (
    {"np": 8, "block": 4, "rate": 0.25, "pin": False},
    {"np": 3, "block": 16, "rate": 0.25, "blas": "fast", "pin": True},
    {"np": 2, "block": 64, "rate": 4.0, "blas": "slow", "pin": True},
)


@pytest.fixture
def written(address):
    store = StudyStore.create(address, "paper", definition(SPACE))
    trials = [add_trial(store, SPACE, one, took(2.0 + place)) for place, one in enumerate(CONFIGURATIONS)]
    store.add_runs([Run(trials[1].configuration, 1, Series.verdict(1), 2, outcome=took(1.5))])
    store.add_runs([Run(trials[2].configuration, 2, outcome=failed(FailureKind.TIMED_OUT, "too slow"))])
    store.settle_all({0: Observation(value=2.0), 1: Observation(bound=3.0)})
    store.set_attribute(VERDICT, {"winner": 1, "pairs": [1.0, float("inf")]})
    # Trials that another program left are set aside.
    optuna.load_study(study_name="paper", storage=store._storage).enqueue_trial({"other": 1})
    store.recover(SPACE)
    storages.foreign(address)
    return address


def test_it_is_the_study_that_was_written(written):
    read, store = open_stored_study(written, "paper"), StudyStore.read(written, "paper")
    assert isinstance(read, StoredStudy)
    assert read.name == store.name
    assert read.definition == store.definition
    assert read.attribute(VERDICT) == store.attribute(VERDICT)
    assert read.attribute("nothing") is None
    assert read.runs() == store.runs()
    assert read.trials() == store.trials()
    assert [list(trial.configuration.items()) for trial in read.trials()] == [
        list(trial.configuration.items()) for trial in store.trials()
    ]
    assert [repr(trial.configuration) for trial in read.trials()] == list(map(repr, CONFIGURATIONS))
    assert [trial.settled for trial in read.trials()] == [True, True, False]


def test_of_all_studies_those_of_other_programs_are_left_out(written):
    StudyStore.create(written, "another", definition(SPACE))
    assert [study.name for study in open_stored_studies(written)] == ["paper", "another"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("none", "no study 'none' in .*; there: paper, another program's"), ("another program's", "not made by autotune")],
)
def test_a_study_that_cannot_be_read(written, name, said):
    for read in (open_stored_study, StudyStore.read):
        with pytest.raises(StorageError, match=said):
            read(written, name)


def test_with_another_major_version_optuna_reads(written, monkeypatch):
    monkeypatch.setattr("autotune.storage.optuna_tables._MAJOR", "6")
    assert isinstance(open_stored_study(written, "paper"), StudyStore)
    assert [type(study) for study in open_stored_studies(written)] == [StudyStore]


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (IntDistribution(1, 9), 4),
        (FloatDistribution(0.0, 1.0), 0.5),
        (CategoricalDistribution((None, True, "x", 2.5)), "x"),
    ],
)
def test_a_value_is_what_optuna_says(distribution, value):
    text = optuna.distributions.distribution_to_json(distribution)
    found = parameter_reader(text)(distribution.to_internal_repr(value))
    assert (found, type(found)) == (value, type(value))


def test_an_abbreviated_distribution_is_read_by_optuna():
    assert parameter_reader('{"type": "categorical", "choices": ["a", "b"]}')(1.0) == "b"


def test_a_changed_program_names_the_study_that_goes_on(address):
    def release(number, **changes):
        return definition(SPACE, identity={"program": f"solve {number}"}, **changes)

    StudyStore.create(address, "solve", release(1))
    with pytest.raises(ChangedProgramError, match="program: solve 1 there, solve 2 here") as caught:
        check_continues(address, "solve", release(2))
    assert caught.value.successor == "solve-2"
    StudyStore.create(address, "solve-2", release(2))
    with pytest.raises(ChangedProgramError, match="study solve-2 is of this program: give that name") as caught:
        check_continues(address, "solve", release(2))
    assert caught.value.successor == "solve-2"
    with pytest.raises(ChangedProgramError, match="--name solve-3") as caught:
        check_continues(address, "solve", release(3))
    # Other options, another machine, or another study file are no upgrade.
    other_file = {"study": {"software": {"site": {"modules": ["solve/2"]}}}}
    for changes in ({"options": {"argv": ["other"]}}, {"machine_identity": {"cpu": "other"}}, other_file):
        with pytest.raises(DifferentStudyError) as refused:
            check_continues(address, "solve", release(2, **changes))
        assert not isinstance(refused.value, ChangedProgramError)
