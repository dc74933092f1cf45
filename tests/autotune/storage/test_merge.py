"""Several people's storages in one."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from autotune.errors import BusyError, StorageError
from autotune.records.study import Run
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.merging.merge import merge
from autotune.storage.merging.plan import Action
from autotune.storage.observation import Observation
from autotune.storage.readable_study import VERDICT
from autotune.storage.run_corrections import RunCorrections
from autotune.storage.stored_study import open_stored_studies, open_stored_study
from autotune.storage.study_store import StudyStore
from autotune.tuning.retry import retry_failed
from objectives.base import FailureKind
from tests.autotune.storage.test_measurement_store import THREE
from tests.support import storages
from tests.support.command_line import invoke
from tests.support.fakes import definition, failed, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
CONFIGURATIONS = list(SPACE.configurations())


def url_of(folder, name):
    return f"sqlite:///{folder / name}"


def grown(store, count, seconds=2.0):
    """Add trials to a study; each has a configuration of its own."""
    for number in range(count):
        add_trial(store, SPACE, CONFIGURATIONS[len(store.trials())], took(seconds + number))


@pytest.fixture
def ada(tmp_path):
    """Ada's storage: a study `paper` of two trials."""
    store = StudyStore.create(url_of(tmp_path, "ada.db"), "paper", definition(SPACE))
    grown(store, 2)
    return url_of(tmp_path, "ada.db")


@pytest.fixture
def bob(tmp_path):
    """Bob's storage: a study of the same name, of another version of the program."""
    store = StudyStore.create(url_of(tmp_path, "bob.db"), "paper", definition(SPACE, identity={"version": "7.9"}))
    grown(store, 3)
    store.set_attribute(VERDICT, {"any": 1.5})
    return url_of(tmp_path, "bob.db")


def merged(sources, target, **options):
    done = []
    merge(sources, target, done.append, **options)
    return [[(study.name, study.target, study.action) for study in part.studies] for part in done]


def test_two_studies_of_one_name_stay_two_with_all_that_is_known_of_them(ada, bob, address):
    assert merged([ada, bob], address) == [[("paper", "paper", Action.ADD)], [("paper", "paper-2", Action.ADD)]]
    for source, name in ((ada, "paper"), (bob, "paper-2")):
        original, copy = open_stored_study(source, "paper"), open_stored_study(address, name)
        assert copy.definition == original.definition
        assert copy.trials() == original.trials()
        assert copy.runs() == original.runs()
        assert copy.attribute(VERDICT) == original.attribute(VERDICT)
        by_optuna = StudyStore.read(address, name)
        assert by_optuna.trials() == original.trials()
        assert by_optuna.mark == StudyStore.read(source, "paper").mark


@pytest.mark.slow
def test_the_same_again_gives_nothing_new(ada, bob, address):
    merged([ada, bob], address)
    before = [(study.name, study.trials()) for study in open_stored_studies(address)]
    for again in ([ada, bob], [bob, ada], [bob]):
        assert {action for part in merged(again, address) for _, _, action in part} == {Action.NOTHING}
    assert [(study.name, study.trials()) for study in open_stored_studies(address)] == before


@pytest.mark.slow
def test_a_study_that_went_on_is_brought_up_to_date_and_an_older_copy_changes_nothing(ada, bob, address, tmp_path):
    merged([ada], url_of(tmp_path, "older.db"))
    merged([bob, ada], address)
    grown(StudyStore.create(ada, "paper", definition(SPACE)), 2)
    assert merged([ada], address) == [[("paper", "paper-2", Action.UPDATE)]]
    assert len(open_stored_study(address, "paper-2").runs()) == 4
    assert merged([url_of(tmp_path, "older.db")], address) == [[("paper", "paper-2", Action.NOTHING)]]
    assert len(StudyStore.read(address, "paper-2").trials()) == 4
    assert open_stored_study(address, "paper").trials() == open_stored_study(bob, "paper").trials()


def test_the_merged_study_can_be_gone_on_with(ada, address):
    merged([ada], address)
    store = StudyStore.create(address, "paper", definition(SPACE))
    grown(store, 1)
    assert [trial.number for trial in StudyStore.read(address, "paper").trials()] == [0, 1, 2]
    assert merged([ada], address) == [[("paper", "paper", Action.NOTHING)]]


@pytest.mark.slow
def test_copies_that_both_went_on_are_refused_and_the_target_is_as_it_was(ada, bob, address, tmp_path):
    merged([ada], url_of(tmp_path, "copy.db"))
    merged([ada], address)
    for url, seconds in ((address, 5.0), (url_of(tmp_path, "copy.db"), 7.0)):
        store = StudyStore.create(url, "paper", definition(SPACE))
        add_trial(store, SPACE, CONFIGURATIONS[-1 if seconds > 6.0 else -2], took(seconds))
    before = [(study.name, study.trials()) for study in open_stored_studies(address)]
    with pytest.raises(StorageError, match="study 'paper' was continued in two copies: 1 runs are only in the target"):
        merged([bob, url_of(tmp_path, "copy.db")], address)
    assert [(study.name, study.trials()) for study in open_stored_studies(address)] == before


def test_a_default_that_failed_and_was_set_aside_is_merged_again(tmp_path, address):
    url = url_of(tmp_path, "ada.db")
    store = StudyStore.create(url, "paper", definition(SPACE))
    add_trial(store, SPACE, CONFIGURATIONS[0], failed(FailureKind.APPLICATION_ERROR), worth=Observation())
    merged([url], address)
    retry_failed(store, everything=False)
    assert merged([url], address, dry_run=True) == merged([url], address) == [[("paper", "paper", Action.UPDATE)]]
    store.add_runs([Run(CONFIGURATIONS[0], 0, outcome=took(2.0), started="later")])
    assert merged([url], address) == [[("paper", "paper", Action.UPDATE)]]
    assert open_stored_study(address, "paper").runs() == open_stored_study(url, "paper").runs()
    assert merged([url], address) == [[("paper", "paper", Action.NOTHING)]]


def corrected(url, seconds):
    """Change the first run of a study, and take its verdict away, as reading it again does."""
    store = StudyStore.read(url, "paper", read_only=False)
    key = min(store.runs_by_key())
    store.correct_runs(RunCorrections(outcomes={key: took(seconds)}, attributes={VERDICT: None}))


def test_runs_that_were_read_again_replace_those_of_an_older_copy(ada, address, tmp_path):
    StudyStore.read(ada, "paper", read_only=False).set_attribute(VERDICT, {"any": 1.5})
    older = url_of(tmp_path, "older.db")
    merged([ada], older)
    merged([ada], address)
    for seconds in (8.0, 9.0):
        corrected(ada, seconds)
    done = []
    merge([ada], address, done.append)
    (part,) = done
    assert part.studies[0].sentence().endswith("0 new runs, 2 trials; runs were read again or set aside")
    assert open_stored_study(address, "paper").runs()[0].outcome == took(9.0)
    assert open_stored_study(address, "paper").attribute(VERDICT) is None
    assert merged([older, ada], address) == [[("paper", "paper", Action.NOTHING)]] * 2
    assert open_stored_study(address, "paper").runs()[0].outcome == took(9.0)


@pytest.mark.slow
def test_copies_that_were_both_changed_are_refused(ada, address, tmp_path):
    merged([ada], address)
    corrected(ada, 8.0)
    corrected(address, 9.0)
    with pytest.raises(StorageError, match=r"and in the target and sqlite\S+ada.db runs were read again or set aside"):
        merged([ada], address)
    assert open_stored_study(address, "paper").runs()[0].outcome == took(9.0)


def test_a_copy_that_went_on_and_one_that_was_changed_are_refused(ada, address):
    merged([ada], address)
    corrected(address, 9.0)
    grown(StudyStore.create(ada, "paper", definition(SPACE)), 1)
    with pytest.raises(StorageError, match=r"1 only in .* and in the target runs were read again or set aside"):
        merged([ada], address)


def test_a_storage_that_cannot_be_read_leaves_no_target(ada, tmp_path):
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    for wrong in ("broken.db", "none.db"):
        with pytest.raises(StorageError):
            merged([ada, url_of(tmp_path, wrong)], url_of(tmp_path, "all.db"))
        assert not (tmp_path / "all.db").exists()


def test_a_target_in_a_folder_that_is_not_there_gets_it_as_a_study_does(ada, tmp_path):
    assert merged([ada], url_of(tmp_path / "new" / "of mine", "all.db")) == [[("paper", "paper", Action.ADD)]]
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"the folder .*/file/in cannot be made: Not a directory"):
        merged([ada], url_of(tmp_path / "file" / "in", "all.db"))


def test_an_error_while_writing_leaves_no_target(ada, bob, tmp_path):
    def fail(part):
        raise StorageError(part.source)

    with pytest.raises(StorageError, match="ada"):
        merge([ada, bob], url_of(tmp_path, "all.db"), fail)
    assert not (tmp_path / "all.db").exists()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("value", ["{", "[]"])
def test_a_damaged_source_is_named_and_leaves_nothing_of_the_target(ada, tmp_path, dry_run, value):
    with closing(sqlite3.connect(tmp_path / "ada.db")) as connection, connection:
        connection.execute("UPDATE autotune_runs SET record = ?", (value,))
    with pytest.raises(StorageError, match=r"storage sqlite:\S*/ada\.db is damaged"):
        merged([ada], url_of(tmp_path, "all.db"), dry_run=dry_run)
    assert not list(tmp_path.glob("all.db*"))


@pytest.mark.slow
def test_a_dry_run_says_the_same_and_writes_nothing(ada, bob, tmp_path):
    target = url_of(tmp_path, "all.db")
    dry = merged([ada, bob, ada], target, dry_run=True)
    assert not (tmp_path / "all.db").exists()
    assert merged([ada, bob, ada], target) == dry
    assert merged([bob], target, dry_run=True) == [[("paper", "paper-2", Action.NOTHING)]]


def test_imported_measurements_come_along_once(ada, address):
    MeasurementStore.create(ada).add(THREE)
    merged([ada], address)
    merged([ada], address)
    assert MeasurementStore.read(address).measurements() == THREE


def test_an_imported_measurement_of_more_runs_replaces_what_was_merged_before(ada, address):
    MeasurementStore.create(ada).add(THREE)
    merged([ada], address)
    better, fewer = replace(THREE[0], value=3.5, runs=9), replace(THREE[1], bound=8.0)
    MeasurementStore.create(ada).add([better, fewer])
    counts = []

    def say(part):
        counts.append((part.measurements, part.replaced, part.changed))

    merge([ada, ada], address, say, dry_run=True)
    assert MeasurementStore.read(address).measurements() == THREE
    merge([ada], address, say)
    merge([ada], address, say)
    assert counts == [(0, 1, True), (0, 0, False), (0, 1, True), (0, 0, False)]
    assert MeasurementStore.read(address).measurements() == [better, *THREE[1:]]


def test_studies_of_other_programs_are_left_out_and_named(ada, tmp_path):
    storages.foreign(ada)
    done = []
    merge([ada], url_of(tmp_path, "all.db"), done.append)
    assert [study.name for study in open_stored_studies(url_of(tmp_path, "all.db"))] == ["paper"]
    assert len(done[0].left_out) == 1


@pytest.mark.slow
def test_nobody_may_tune_in_the_target(ada, bob, tmp_path, monkeypatch):
    merged([ada], url_of(tmp_path, "all.db"))
    (tmp_path / "all.db.paper.lock").touch()
    monkeypatch.setattr("autotune.storage.merging.merge.other_holder", lambda _: "process 7")
    with pytest.raises(BusyError, match=r"all\.db\.paper\.lock is held by"):
        merged([bob], url_of(tmp_path, "all.db"))


@pytest.mark.slow
def test_the_command(ada, bob, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["storage", "merge", "ada.db", "bob.db", "--into", "all.db"]
    told = invoke(*words).stdout
    assert "paper: new, 2 new runs, 2 trials" in told
    assert (
        "paper as paper-2: new, 3 new runs, 3 trials; another study is called paper: input: abc there, nothing here"
        in told
    )
    assert "nothing new for sqlite:///all.db" in invoke(*words).stdout
    for runs in (5, 9):
        MeasurementStore.create(ada).add([replace(THREE[0], runs=runs)])
        told = invoke(*words).stdout
    assert "  1 imported measurements: replaced by those of more runs" in told
    found = json.loads(invoke(*words, "--json", "--dry-run").stdout)
    assert [part["changed"] for part in found["storages"]] == [False, False]
    wrong = invoke("storage", "merge", "ada.db", "--into", "./ada.db")
    assert wrong.exit_code == 2
    assert "name another target" in wrong.output
