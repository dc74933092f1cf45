"""Who can open a storage and its locks: only their user, unless the folder is shared with a group."""

import os
import stat
from contextlib import contextmanager

import pytest

from autotune.locks import LockFile
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(folder, mask):
    """Use a storage in a new folder below `folder` with this umask; return the modes of its files and of the folder."""
    made = folder / "new"
    with umask(mask):
        url = f"sqlite:///{made / 'autotune.db'}"
        with StudyLock.hold(url, "mine"):
            store = StudyStore.create(url, "mine", definition(SPACE))
            add_trial(store, SPACE, SPACE.default(), took(2.0))
            files = [*made.iterdir(), made]
            assert len(files) == 6  # the file, its log, the log's index and note, the lock
            return {stat.S_IMODE(one.stat().st_mode) for one in files}


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022])
def test_only_its_user_can_open_a_storage(tmp_path, mask):
    assert modes(tmp_path, mask) == {0o600, 0o700}


def test_a_folder_is_shared_by_its_group_on_purpose(tmp_path):
    tmp_path.chmod(0o2770)
    assert modes(tmp_path, 0o002) == {0o660, 0o2770}


def test_a_lock_that_others_could_hold_is_closed_to_them_by_its_next_holder(tmp_path):
    path = tmp_path / "autotune.db.mine.lock"
    path.touch(0o644)
    path.chmod(0o644)
    LockFile.hold(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
