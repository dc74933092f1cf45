import pytest

from autotune.errors import AutotuneError
from autotune.results.frames import read_runs, read_trials
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial


def test_trials_and_runs_are_tables_that_pandas_can_group(tmp_path):
    space, storage = small_space(), str(tmp_path / "autotune.db")
    store = StudyStore.create(f"sqlite:///{storage}", "paper", definition(space))
    add_trial(store, space, space.default(), took(4.0), took(4.0), worth=Observation(value=4.0))
    trials, runs = read_trials("paper", storage), read_runs("paper", storage)
    assert trials.index.tolist() == [0]
    assert trials.loc[0, ["state", "runs", "value"]].tolist() == ["complete", 2, 4.0]
    assert runs.groupby("trial")["wall_s"].max().tolist() == [4.0]
    assert set(space.default()) <= set(trials.columns) & set(runs.columns)


def test_a_storage_that_is_not_there_is_an_error_and_none_is_made(tmp_path):
    with pytest.raises(AutotuneError, match="no storage"):
        read_trials("paper", str(tmp_path / "autotune.db"))
    assert list(tmp_path.iterdir()) == []
