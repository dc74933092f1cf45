"""Trials that are written to Optuna's tables, and by Optuna: whoever reads them finds no difference."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import optuna
import pytest
from optuna.trial import TrialState

from autotune.search.distributions import distributions_of
from autotune.storage.observation import BOUND, Observation
from autotune.storage.optuna_storage import open_for_writing
from autotune.storage.run_log import SqlRunLog
from autotune.storage.trial_table import AnyTrialTable, SqlTrialTable, TrialEnding, trial_table
from spaces import Choice, Flag, Float, Integer, Space

SPACE = Space(
    [
        Integer.range("np", 1, 8, default=8),
        Integer.powers_of_two("block", 1, 64, default=4),
        Float("rate", 0.25, 4.0, default=0.25),
        Choice("blas", ("slow", "fast"), optional=True),
        Flag("pin"),
    ]
)
CONFIGURATION = {"np": 3, "block": 16, "rate": 0.25, "blas": "fast", "pin": True}
KNOWN = distributions_of(SPACE)
ENDS = [
    TrialEnding(TrialState.COMPLETE, value=2.5),
    TrialEnding(TrialState.PRUNED, bound=3.0),
    TrialEnding(TrialState.FAIL),
]


@pytest.fixture
def study(address):
    return optuna.create_study(storage=open_for_writing(address, SqlRunLog.create_table), study_name="paper")


def storage_of(study):
    return study._storage._backend


@pytest.fixture(params=[SqlTrialTable, AnyTrialTable])
def table(request, study):
    storage = storage_of(study)
    return request.param(storage.engine if request.param is SqlTrialTable else storage, study._study_id)


def read(address):
    return optuna.load_study(study_name="paper", storage=address).trials


@pytest.fixture
def far_from_greenwich(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_greenwich")
def test_optuna_reads_what_was_made_and_told(address, table):
    before = datetime.now(UTC)
    made = [*table.create([CONFIGURATION], KNOWN), *table.create([{"np": 1}], KNOWN)]
    made += table.create([{}], KNOWN)
    assert [number for number, _ in made] == [0, 1, 2]
    assert [trial.state for trial in read(address)] == [TrialState.RUNNING] * 3
    table.end_trials({trial_id: told for (_, trial_id), told in zip(made, ENDS, strict=True)})
    first, second, third = read(address)
    assert first.params == CONFIGURATION
    assert first.distributions == {name: KNOWN[name] for name in CONFIGURATION}
    assert (first.state, first.value, first.user_attrs) == (TrialState.COMPLETE, 2.5, {})
    assert (second.state, second.value, second.user_attrs) == (TrialState.PRUNED, None, {BOUND: 3.0})
    assert (third.state, third.params, third.user_attrs) == (TrialState.FAIL, {}, {})
    for trial in (first, second, third):
        assert before <= trial.datetime_start.astimezone() <= trial.datetime_complete.astimezone() <= datetime.now(UTC)


def test_trials_that_are_made_together_are_as_if_made_one_by_one(address, table):
    assert table.create([], KNOWN) == []
    wanted = [CONFIGURATION, {"np": 1}, {}]
    made = table.create(wanted, KNOWN)
    stored = read(address)
    assert made == [(trial.number, trial._trial_id) for trial in stored]
    assert [trial.number for trial in stored] == [0, 1, 2]
    assert [trial.params for trial in stored] == wanted


def test_optunas_trials_and_these_are_numbered_together(address, study, table):
    assert study.ask().number == 0
    assert table.create([CONFIGURATION], KNOWN)[0][0] == 1
    trial = study.ask()
    assert trial.number == 2
    assert trial.suggest_int("np", 1, 8) in range(1, 9)
    other = optuna.create_study(storage=storage_of(study), study_name="other")
    assert other.ask().number == 0
    assert table.create([CONFIGURATION], KNOWN)[0][0] == 3


def test_the_first_word_stands(address, study, table):
    ((_, first),) = table.create([CONFIGURATION], KNOWN)
    ((_, second),) = table.create([CONFIGURATION], KNOWN)
    study.tell(0, 7.0)
    table.end_trials({first: ENDS[1], second: ENDS[0]})
    table.end_trials({first: ENDS[2], second: ENDS[1]})
    assert [(trial.state, trial.value, trial.user_attrs) for trial in read(address)] == [
        (TrialState.COMPLETE, 7.0, {}),
        (TrialState.COMPLETE, 2.5, {}),
    ]


def test_who_was_killed_before_the_last_word_has_it_once_more(address, study, table):
    ((_, trial_id),) = table.create([CONFIGURATION], KNOWN)
    storage_of(study).set_trial_user_attr(trial_id, BOUND, 2.0)
    table.end_trials({trial_id: ENDS[1]})
    (trial,) = read(address)
    assert (trial.state, trial.user_attrs) == (TrialState.PRUNED, {BOUND: 3.0})


@pytest.mark.slow
def test_many_are_told_at_once(address, study):
    table = trial_table(storage_of(study), study._study_id)
    ids = [table.create([{"np": 1 + number % 8}], KNOWN)[0][1] for number in range(1100)]
    table.end_trials({trial_id: TrialEnding(TrialState.COMPLETE, value=float(trial_id)) for trial_id in ids})
    assert [trial.value for trial in read(address)] == [float(trial_id) for trial_id in ids]
    table.end_trials({})


def test_who_writes_at_the_same_time_gets_numbers_of_their_own(address, study):
    def work(_):
        storage = open_for_writing(address, SqlRunLog.create_table)
        table = trial_table(storage, study._study_id)
        return [table.create([CONFIGURATION], KNOWN)[0][0] for _ in range(20)]

    with ThreadPoolExecutor(3) as pool:
        found = [number for numbers in pool.map(work, range(3)) for number in numbers]
    assert sorted(found) == list(range(60))
    assert [trial.number for trial in read(address)] == list(range(60))


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        (Observation(value=2.0, runs=3), TrialEnding(TrialState.COMPLETE, value=2.0)),
        (Observation(bound=3.0), TrialEnding(TrialState.PRUNED, bound=3.0)),
        (Observation(value=2.0, partial=True), TrialEnding(TrialState.PRUNED, bound=2.0)),
        (Observation(), TrialEnding(TrialState.FAIL)),
    ],
)
def test_what_optuna_is_told_of_an_observation(observation, told):
    assert TrialEnding.of(observation) == told


def test_tables_are_written_to_where_they_are_known(study, monkeypatch):
    storage = storage_of(study)
    assert isinstance(trial_table(storage, study._study_id), SqlTrialTable)
    monkeypatch.setattr(storage, "get_current_version", lambda: "v9.0.0.a")
    assert isinstance(trial_table(storage, study._study_id), AnyTrialTable)
    memory = optuna.create_study()
    assert isinstance(trial_table(memory._storage, memory._study_id), AnyTrialTable)
