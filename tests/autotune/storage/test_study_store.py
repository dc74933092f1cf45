import sqlite3
from dataclasses import replace

import optuna
import pytest
import sqlalchemy
from optuna.trial import TrialState

from autotune.errors import DifferentStudyError, StorageError
from autotune.records.outcome import Outcome
from autotune.records.series import Series
from autotune.records.study import Run, State
from autotune.storage.observation import Observation
from autotune.storage.stored_study import open_stored_studies
from autotune.storage.study_store import StudyStore, study_names
from launchers import Usage
from objectives.base import Answer, FailureKind
from tests.support.fakes import capped, definition, failed, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
DEFAULT = SPACE.default()
OTHERS = ({"np": 4}, {"np": 4, "npool": 2, "blas": "fast"})


def opened(address, **changes):
    return StudyStore.create(address, "paper", definition(SPACE, **changes))


def run_of(trial, outcome, **values):
    return Run(trial.configuration, trial.number, outcome=outcome, **values)


def test_what_was_stored_is_read_back(address):
    store = opened(address)
    first, second, third = (add_trial(store, SPACE, one) for one in (DEFAULT, *OTHERS))
    measured = Outcome(
        metrics={"wall_s": 2.5},
        answer=Answer("energy", -1.0, 1e-6, "Ry", 1e-9),
        details={"iterations": 9},
        unused=("blas",),
        timeline=((1, 0.5), (2, 1.0)),
        conditions={"load_1m": 0.5},
        usage=Usage(2.6, 5.0, 1000),
    )
    runs = [
        run_of(
            first, measured, block=3, started="2026-11-21T12:00:00+00:00", job={"argv": ["x"]}, session={"host": "a"}
        ),
        run_of(first, took(2.4), block=4),
        run_of(second, failed(FailureKind.TIMED_OUT, "too slow")),
        run_of(third, capped(3.0)),
        Run(first.configuration, first.number, Series.verdict(0), 7, outcome=took(2.3)),
    ]
    store.add_runs(runs)
    store.settle_all({0: Observation(value=2.45, runs=2), 1: Observation(), 2: Observation(bound=3.0)})
    read = StudyStore.read(address, "paper")
    assert read.runs() == runs
    trials = read.trials()
    assert [trial.configuration for trial in trials] == [t.configuration for t in (first, second, third)]
    assert trials[0].runs == tuple(runs[:2])
    assert [trial.state for trial in trials] == [State.COMPLETE, State.FAILED, State.CAPPED]
    assert all(trial.settled for trial in trials)
    assert read.definition == definition(SPACE)
    assert study_names(address) == ["paper"]


@pytest.mark.parametrize("printed", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_is_none_is_kept_beside_others(address, printed):
    store = opened(address)
    add_trial(store, SPACE, DEFAULT, replace(took(1.0), details={"norm": printed, "steps": 3}))
    (run,) = StudyStore.read(address, "paper").runs()
    assert repr(run.outcome.details) == repr({"norm": printed, "steps": 3})


def test_a_bound_is_never_a_value_for_those_who_read_the_storage_with_optuna(address):
    store = opened(address)
    add_trial(store, SPACE, DEFAULT, capped(3.0), worth=Observation(bound=3.0))
    found = optuna.load_study(study_name="paper", storage=address).trials[0]
    assert found.state is TrialState.PRUNED
    assert found.value is None
    assert found.intermediate_values == {}
    assert found.user_attrs["bound"] == 3.0


def test_a_trial_without_a_run_is_there_to_be_run_and_the_next_is_another(address):
    store = opened(address)
    first = add_trial(store, SPACE, DEFAULT)
    store = opened(address)
    store.recover(SPACE)
    (found,) = store.trials()
    assert (found.number, found.configuration, found.runs, found.settled) == (0, first.configuration, (), False)
    assert add_trial(store, SPACE, OTHERS[0]).number == 1


@pytest.mark.parametrize("parameters", [{}, {"np": 8, "npool": 3}])
def test_a_trial_of_another_program_that_nobody_can_run_is_set_aside(address, parameters):
    store = opened(address)
    mine = add_trial(store, SPACE, DEFAULT)
    study = optuna.load_study(study_name="paper", storage=address)
    study.enqueue_trial(parameters)
    theirs = study.ask()
    for name, value in parameters.items():
        theirs.suggest_int(name, 1, 8)
        assert theirs.params[name] == value
    study.enqueue_trial(parameters)
    store = opened(address)
    store.recover(SPACE)
    assert [trial.number for trial in store.trials()] == [mine.number]
    assert [trial.state for trial in study.trials[1:]] == [TrialState.FAIL, TrialState.FAIL]
    assert add_trial(store, SPACE, OTHERS[0]).number == 3


def test_a_trial_that_was_run_stays_with_the_runs_that_ended(address):
    store = opened(address)
    add_trial(store, SPACE, DEFAULT)
    add_trial(store, SPACE, OTHERS[0], took(3.0))
    store = opened(address)
    store.recover(SPACE)
    assert [(trial.number, len(trial.runs), trial.settled) for trial in store.trials()] == [
        (0, 0, False),
        (1, 1, False),
    ]


def test_a_trial_can_be_run_again_after_it_was_settled(address):
    store = opened(address)
    trial = add_trial(store, SPACE, DEFAULT, took(3.0), worth=Observation(value=3.0))
    store.add_runs([run_of(trial, took(3.2))])
    assert store.trials()[0].measured("wall_s") == [3.0, 3.2]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"identity": {"input": "other"}}, "input: abc there, other here"),
        ({"identity": {"environment": "TILE={tile}"}}, r"environment: nothing there, TILE=\{tile\} here"),
        ({"machine_identity": {"cpu": "other"}}, "machine cpu: paper there, other here"),
        ({"objective": "command"}, "objective"),
        ({"space": {"other": 1}}, "the space"),
    ],
)
def test_a_study_of_something_else_is_not_continued(address, changes, said):
    opened(address)
    with pytest.raises(DifferentStudyError, match=said) as caught:
        opened(address, **changes)
    assert "--name" in str(caught.value)


def test_the_study_file_is_that_of_the_newest_session(address):
    store = opened(address, study={"verdict": {"pairs": 8}})
    assert store.definition.study_file.verdict.pairs == 8
    opened(address, study={"verdict": {"pairs": 12}})
    reader = StudyStore.read(address, "paper")
    assert reader.definition.study == {"verdict": {"pairs": 12}}
    assert reader.definition.study_file.verdict.pairs == 12


def test_a_study_file_is_parsed_once_however_often_its_study_is_asked(address):
    store = opened(address, study={"verdict": {"pairs": 8}})
    (snapshot,) = open_stored_studies(address)
    for study in (store, snapshot):
        assert study.definition.study_file is study.definition.study_file


def test_reading_what_is_not_there(address, tmp_path):
    for _ in range(2):
        with pytest.raises(StorageError, match=r"no storage at|no studies in .*`autotune study` makes"):
            StudyStore.read(address, "paper")
    assert list(tmp_path.iterdir()) == []
    opened(address)
    with pytest.raises(StorageError, match=r"no study 'qe'.*there: paper"):
        StudyStore.read(address, "qe")


def test_another_programs_file_is_left_as_it_is(sqlite, tmp_path):
    path = tmp_path / "autotune.db"
    path.write_text("not a database, but somebody's notes" * 100)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="not a database"):
        opened(sqlite)
    assert path.read_bytes() == before


def test_readers_do_not_block_the_writer(address):
    store = opened(address)
    reader = sqlalchemy.create_engine(address).connect()
    reader.execute(sqlalchemy.text("SELECT count(*) FROM trials")).fetchall()
    add_trial(store, SPACE, DEFAULT, took(1.0), worth=Observation(value=1.0))
    reader.close()
    assert store.trials()[0].complete


def test_runs_are_stored_together_or_not_at_all(address):
    store = opened(address)
    trial = add_trial(store, SPACE, DEFAULT)
    with pytest.raises((StorageError, TypeError)):
        store.add_runs([run_of(trial, took(1.0)), run_of(trial, took(1.0), job={"argv": object()})])
    assert store.runs() == []
    store.add_runs([run_of(trial, took(1.0)), run_of(trial, took(2.0))])
    assert [run.outcome.metrics["wall_s"] for run in store.runs()] == [1.0, 2.0]


def test_runs_wait_for_the_disk_and_what_can_be_had_again_does_not(sqlite):
    store = opened(sqlite)
    with store._storage.engine.connect() as one, store._log._engine.connect() as other:
        assert one.exec_driver_sql("PRAGMA synchronous").scalar() == 1
        assert other.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_new_trial_is_there_with_its_parameters_or_not_at_all(address):
    store = opened(address)
    trial = add_trial(store, SPACE, DEFAULT)
    found = optuna.load_study(study_name="paper", storage=address).trials
    assert [dict(one.params) for one in found] == [dict(trial.configuration)]
    assert found[0].state is TrialState.RUNNING

    def full(connection, cursor, statement, *rest):
        if statement.startswith("INSERT INTO trial_params"):
            raise sqlite3.OperationalError("disk full")

    sqlalchemy.event.listen(store._storage.engine, "before_cursor_execute", full)
    with pytest.raises(StorageError):
        add_trial(store, SPACE, OTHERS[0])
    assert len(optuna.load_study(study_name="paper", storage=address).trials) == 1


def test_what_is_new_in_a_copy_in_memory_is_seen_before_it_ends(sqlite):
    space = small_space()
    store = StudyStore.create(sqlite, "replayed", definition(space))
    first, second, *_ = space.configurations()
    with store.memory_copy(lambda write: write) as copy:
        add_trial(copy, space, first, took(2.0))
        assert [run.outcome for run in StudyStore.read(sqlite, "replayed").runs()] == [took(2.0)]
        add_trial(copy, space, second, took(1.0), worth=Observation(1.0))
        assert [trial.configuration for trial in StudyStore.read(sqlite, "replayed").trials()] == [first, second]
    after = StudyStore.read(sqlite, "replayed")
    assert [run.outcome for run in after.runs()] == [took(2.0), took(1.0)]
    assert [trial.settled for trial in after.trials()] == [False, True]
    with store.memory_copy() as copy:
        copy.add_runs([Run(first, 0, outcome=took(2.1))])
        assert len(StudyStore.read(sqlite, "replayed").runs()) == 2, "not at every run"
    assert len(StudyStore.read(sqlite, "replayed").runs()) == 3


def test_no_trial_of_a_copy_in_memory_is_settled_before_its_runs_are_stored(sqlite, monkeypatch):
    space = small_space()
    store = StudyStore.create(sqlite, "replayed", definition(space))
    first, second, *others = space.configurations()
    add_trial(store, space, first)

    def full(runs):
        raise StorageError("disk full")

    def replay():
        with store.memory_copy() as copy:
            copy.add_runs([Run(first, 0, outcome=took(3.0))])
            copy.settle_all({0: Observation(3.0)})
            add_trial(copy, space, second, took(2.0), worth=Observation(2.0))

    with monkeypatch.context() as broken:
        broken.setattr(store._log, "extend", full)
        with pytest.raises(StorageError, match="disk full"):
            replay()
    left = StudyStore.read(sqlite, "replayed")
    assert (left.runs(), [trial.settled for trial in left.trials()]) == ([], [False, False])
    with store.memory_copy() as copy:
        assert [trial.settled for trial in copy.trials()] == [False, False], "both are run again"
        for number, configuration in enumerate((first, second)):
            copy.add_runs([Run(configuration, number, outcome=took(2.0))])
        copy.settle_all({0: Observation(2.0), 1: Observation(bound=9.0)})
        add_trial(copy, space, others[0], failed(FailureKind.APPLICATION_ERROR), worth=Observation())
    stored = optuna.load_study(study_name="replayed", storage=sqlite).trials
    assert [trial.state for trial in stored] == [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL]
    assert (stored[0].value, stored[1].user_attrs["bound"]) == (2.0, 9.0)
    assert [trial.settled for trial in StudyStore.read(sqlite, "replayed").trials()] == [True] * 3
