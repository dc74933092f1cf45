"""Results that a storage did not take are kept with their runs, and stored once by the next session."""

import json
from dataclasses import replace

import pytest

from autotune.coordination.kept_results import LIST_FILE, RESULT_FILE, store_kept_results
from autotune.errors import StorageError
from autotune.records.series import Series
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from tests.support.fakes import ListDisplay, PaperExecutor, bowl, definition, small_space, study_file
from tests.support.managers import managed

SPACE = small_space()


class Session:
    """Tuning in a folder, whose storage may go away for good before it stores its n-th run."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.patched, self.said = folder, monkeypatch, ListDisplay()
        self.executor = PaperExecutor(bowl)
        self.store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", definition(SPACE))

    @property
    def runs(self):
        return self.folder / "runs"

    def tune(self, *, away_at=None):
        if away_at is not None:
            self.goes_away(away_at)
        manager = managed(self.executor, self.runs, display=self.said)
        manager.mark = self.store.mark
        TuningLoop(Asker(self.store, ValidSetSampler(SPACE, seed=0)), manager, study_file(budget={"trials": 5})).tune()

    def goes_away(self, at):
        take, made = self.store.add_runs, []

        def add(runs, *words):
            made.extend(runs)
            if len(made) >= at:
                raise StorageError("gone")
            return take(runs, *words)

        self.patched.setattr(self.store, "add_runs", add)

    def lose(self, at):
        """Tune until the storage goes away; return the file that keeps the result."""
        with pytest.raises(StorageError, match="gone"):
            self.tune(away_at=at)
        (kept,) = self.runs.glob(f"*/{RESULT_FILE}")
        return kept

    def restore(self):
        store_kept_results(self.runs, self.store, self.said.line)


@pytest.fixture
def session(tmp_path, monkeypatch):
    def make(name):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return Session(folder, monkeypatch)

    return make


def figures(store):
    return [(trial.configuration, set(trial.measured("wall_s"))) for trial in store.trials()]


@pytest.mark.parametrize("at", [1, 4])
def test_a_study_whose_storage_went_away_ends_as_one_that_was_left_alone(session, at):
    undisturbed = session("undisturbed")
    undisturbed.tune()
    session("disturbed").lose(at)
    resumed = session("disturbed")
    resumed.restore()
    resumed.tune()
    assert figures(resumed.store) == figures(undisturbed.store)
    assert "1 result that could not be stored before is stored now" in resumed.said.lines
    assert len(resumed.store.runs()) == len(undisturbed.store.runs()) + 1, "the default, so as to compare"


def test_what_is_kept_is_stored_once_whatever_happens(session):
    kept = session("one").lose(3)
    text = kept.read_text()
    resumed = session("one")
    for _ in range(3):
        resumed.restore()
        assert len(resumed.store.runs()) == 3
        assert not kept.exists()
        # As if it had been killed after it was stored.
        kept.write_text(text)
        (resumed.runs / LIST_FILE).write_text(f"{kept.parent.name}\n../elsewhere\n\n")


def test_what_is_damaged_or_of_a_deleted_study_is_not_stored(session):
    kept = session("one").lose(2)
    text = kept.read_text()
    resumed = session("one")
    for wrong in (text[:-5], "[]", json.dumps(json.loads(text) | {"study": "another"})):
        kept.write_text(wrong)
        resumed.restore()
        assert len(resumed.store.runs()) == 1
    kept.write_text(text)
    resumed.restore()
    assert len(resumed.store.runs()) == 2


def test_a_round_that_another_session_has_made_meanwhile_is_not_doubled(session):
    kept = session("one").lose(2)
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"series": str(Series.verdict(1))}))
    resumed = session("one")
    text = kept.read_text()
    resumed.restore()
    (stored,) = [run for run in resumed.store.runs() if not run.series.is_tuning]
    resumed.store.add_runs([replace(stored, round=1, started="2026-01-01T00:00:00+00:00")])
    kept.write_text(json.dumps(json.loads(text) | {"round": 1}))
    (resumed.runs / LIST_FILE).write_text(f"{kept.parent.name}\n")
    resumed.restore()
    assert [run.round for run in resumed.store.runs() if not run.series.is_tuning] == [0, 1]
    assert not kept.exists()


def test_runs_that_ended_while_the_storage_was_waited_for_are_kept(session):
    disturbed = session("one")
    manager = managed(disturbed.executor, disturbed.runs, display=disturbed.said)
    manager.mark = disturbed.store.mark
    loop = TuningLoop(
        Asker(disturbed.store, ValidSetSampler(SPACE, seed=0)), manager, study_file(budget={"trials": 5, "workers": 2})
    )
    disturbed.patched.setattr(disturbed.executor, "wait", lambda _: (_ for _ in ()).throw(StorageError("gone")))
    with pytest.raises(StorageError):
        loop.tune()
    disturbed.patched.undo()
    manager.keep_ended()
    resumed = session("one")
    resumed.restore()
    assert len(resumed.store.runs()) == len(disturbed.executor.launched) == 1


def test_a_result_of_a_trial_that_is_another_one_now_is_dropped(session):
    # As in a storage that was restored from a backup and then used by the study.
    kept = session("one").lose(4)
    trial = json.loads(kept.read_text())["trial"]
    resumed = session("one")
    other = next(each for each in resumed.store.trials() if each.number != trial)
    changed = json.loads(kept.read_text())
    changed["record"]["configuration"] = dict(other.configuration)
    kept.write_text(json.dumps(changed))
    resumed.restore()
    assert len(resumed.store.runs()) == 3
    assert not kept.exists()
    assert any("its result is dropped" in line for line in resumed.said.lines)


def test_a_result_that_is_kept_while_others_are_stored_stays_listed(session, monkeypatch):
    session("one").lose(2)
    resumed = session("one")
    take, late = resumed.store.add_runs, resumed.runs / "late"

    def add(*words):
        late.mkdir()
        (late / RESULT_FILE).write_text("{}")
        with (resumed.runs / LIST_FILE).open("a") as file:
            file.write("late\n")
        return take(*words)

    monkeypatch.setattr(resumed.store, "add_runs", add)
    resumed.restore()
    assert (resumed.runs / LIST_FILE).read_text() == "late\n"


def test_an_empty_list_is_removed(session):
    nothing = session("one")
    nothing.runs.mkdir()
    (nothing.runs / LIST_FILE).touch()
    nothing.restore()
    assert not (nothing.runs / LIST_FILE).exists()


def test_a_name_that_a_full_disk_has_cut_hides_no_later_result(tmp_path, monkeypatch):
    session = Session(tmp_path, monkeypatch)
    session.runs.mkdir()
    (session.runs / LIST_FILE).write_text("cut")
    kept = session.lose(2)
    Session(tmp_path, monkeypatch).restore()
    assert not kept.exists()
