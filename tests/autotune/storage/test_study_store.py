import sqlite3
from dataclasses import replace

import optuna
import pytest
import sqlalchemy
from optuna.trial import TrialState

from autotune.errors import StorageError
from autotune.records.outcome import Outcome
from autotune.records.study import Run, State
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.observation import Observation
from autotune.storage.study_store import HOLDER, StudyStore, study_names
from launchers import Usage
from objectives.base import Answer, FailureKind
from tests.support.fakes import capped, definition, failed, small_space, took

SPACE = small_space()


def opened(address, **changes):
    store = StudyStore.create(address, "paper", definition(SPACE, **changes))
    store.use(ValidSetSampler(SPACE))
    return store


def run_of(trial, outcome, **values):
    return Run(trial.configuration, trial.number, outcome=outcome, **values)


def test_what_was_stored_is_read_back(address):
    store = opened(address)
    first, second, third = (store.ask(SPACE) for _ in range(3))
    measured = Outcome(
        metrics={"wall_s": 2.5},
        answer=Answer("energy", -1.0, 1e-6, "Ry"),
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
        Run(first.configuration, first.number, "verdict:0", 7, outcome=took(2.3)),
    ]
    for run in runs:
        store.add_run(run)
    store.settle(0, Observation(value=2.45, runs=2))
    store.settle(1, Observation())
    store.settle(2, Observation(bound=3.0))
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
    store.add_run(run_of(store.ask(SPACE), replace(took(1.0), details={"norm": printed, "steps": 3})))
    (run,) = StudyStore.read(address, "paper").runs()
    assert repr(run.outcome.details) == repr({"norm": printed, "steps": 3})


def test_a_bound_is_never_a_value_for_those_who_read_the_storage_with_optuna(address):
    store = opened(address)
    trial = store.ask(SPACE)
    store.add_run(run_of(trial, capped(3.0)))
    store.settle(trial.number, Observation(bound=3.0))
    found = optuna.load_study(study_name="paper", storage=address).trials[0]
    assert found.state is TrialState.PRUNED
    assert found.value is None
    assert found.intermediate_values == {}
    assert found.user_attrs["bound"] == 3.0


def test_studies_in_one_storage_keep_their_runs_apart(address):
    one = opened(address)
    other = StudyStore.create(address, "other", definition(SPACE))
    other.use(ValidSetSampler(SPACE))
    for store in (one, other):
        store.add_run(run_of(store.ask(SPACE), took(1.0)))
    assert len(one.runs()) == len(other.runs()) == 1


def test_a_trial_without_a_run_is_there_to_be_run_and_the_next_is_another(address):
    store = opened(address)
    first = store.ask(SPACE)
    store = opened(address)
    store.recover(SPACE)
    (found,) = store.trials()
    assert (found.number, found.configuration, found.runs, found.settled) == (0, first.configuration, (), False)
    assert store.ask(SPACE).configuration != first.configuration


@pytest.mark.parametrize("parameters", [{}, {"np": 8, "npool": 3}])
def test_a_trial_of_another_program_that_nobody_can_run_is_set_aside(address, parameters):
    store = opened(address)
    mine = store.ask(SPACE)
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
    assert store.ask(SPACE).number == 3


def test_a_trial_that_was_run_stays_with_the_runs_that_ended(address):
    store = opened(address)
    for _ in range(2):
        store.ask(SPACE)
    store.add_run(run_of(store.trials()[1], took(3.0)))
    store = opened(address)
    store.recover(SPACE)
    assert [(trial.number, len(trial.runs), trial.settled) for trial in store.trials()] == [
        (0, 0, False),
        (1, 1, False),
    ]


def test_a_trial_can_be_run_again_after_it_was_settled(address):
    store = opened(address)
    trial = store.ask(SPACE)
    store.add_run(run_of(trial, took(3.0)))
    store.settle(trial.number, Observation(value=3.0))
    store.add_run(run_of(trial, took(3.2)))
    assert store.trials()[0].measured("wall_s") == [3.0, 3.2]


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


def test_the_study_file_is_that_of_the_newest_session(address):
    opened(address, study={"verdict": {"pairs": 8}})
    opened(address, study={"verdict": {"pairs": 12}})
    assert StudyStore.read(address, "paper").definition.study == {"verdict": {"pairs": 12}}


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
    trial = store.ask(SPACE)
    store.add_run(run_of(trial, took(1.0)))
    store.settle(trial.number, Observation(value=1.0))
    reader.close()
    assert store.trials()[0].complete


def test_runs_are_stored_together_or_not_at_all(address):
    store = opened(address)
    trial = store.ask(SPACE)
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


def test_what_is_known_without_reading_is_what_would_be_read(address):
    opened(address)
    optuna.load_study(study_name="paper", storage=address).ask()  # nobody can run it
    store = opened(address)
    store.recover(SPACE)
    seen = {}
    for value in (3.0, 2.0, 5.0):
        trial = store.ask(SPACE, seen)
        seen[trial.number] = Observation(value=value)
        store.add_run(run_of(trial, took(value)))
        store.settle(trial.number, seen[trial.number])
    known, read = store._roster.history(seen), store._sampler.history(store._study)
    assert known.rows.tolist() == read.rows.tolist()
    assert list(known.observations) == list(read.observations)
    assert (known.trials, known.direction) == (read.trials, read.direction) == (3, known.direction)
    assert [trial.number for trial in store.trials()] == [1, 2, 3]


def test_a_new_trial_is_there_with_its_parameters_or_not_at_all(address):
    store = opened(address)
    trial = store.ask(SPACE)
    found = optuna.load_study(study_name="paper", storage=address).trials
    assert [dict(one.params) for one in found] == [dict(trial.configuration)]
    assert found[0].state is TrialState.RUNNING

    def full(connection, cursor, statement, *rest):
        if statement.startswith("INSERT INTO trial_params"):
            raise sqlite3.OperationalError("disk full")

    sqlalchemy.event.listen(store._storage.engine, "before_cursor_execute", full)
    with pytest.raises(StorageError):
        store.ask(SPACE, {trial.number: Observation(pending=True)})
    assert len(optuna.load_study(study_name="paper", storage=address).trials) == 1


def test_a_trial_names_the_coordinator_that_made_it(address):
    for holder in ("", "one", "other"):
        store = StudyStore.create(address, "paper", definition(SPACE), holder)
        store.use(ValidSetSampler(SPACE))
        store.ask(SPACE)
    found = optuna.load_study(study_name="paper", storage=address).trials
    assert [trial.user_attrs.get(HOLDER, "") for trial in found] == ["", "one", "other"]


def test_what_came_later_is_no_difference_to_a_study_that_was_stored_without_it(address):
    opened(address, identity={"command": "a"})
    opened(address, identity={"command": "a", "environment": "TILE={tile}", "figures": "took (minimize): json took"})
    with pytest.raises(StorageError, match="files: None there, in sha256:1 here"):
        opened(address, identity={"command": "a", "files": "in sha256:1"})


def test_another_environment_makes_another_study(address):
    opened(address, identity={"environment": "none"})
    with pytest.raises(StorageError, match=r"(?s)environment: none there, TILE=\{tile\} here.*--name NEW-NAME"):
        opened(address, identity={"environment": "TILE={tile}"})
