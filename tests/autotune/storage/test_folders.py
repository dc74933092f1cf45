"""A storage lies where its path says, whatever the folder is called."""

import pytest

from autotune.storage.stored_study import open_stored_study
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

NAMES = ["a?b", "a%20b", "a#b {c}\nd", "ä ñ 数&mode=ro"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_in_a_folder_is_read_there(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    url, space = f"sqlite:///{folder / 'autotune.db'}", small_space()
    store = StudyStore.create(url, "paper", definition(space))
    add_trial(store, space, space.default(), took(2.0))
    (trial,) = store.trials()
    assert open_stored_study(url, "paper").trials() == StudyStore.read(url, "paper").trials() == [trial]
    assert [path.name for path in tmp_path.iterdir()] == [name]
