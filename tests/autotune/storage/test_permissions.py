"""Who can open a storage and its locks: only their user, unless the folder is shared with a group."""

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from autotune.errors import StorageError
from autotune.locks import LockFile
from autotune.storage.connection import storage_errors
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from tests.support.command_line import run_main
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


HOLDER = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.lockf(file, fcntl.LOCK_SH, 8, 120)  # the bytes with which SQLite locks its log
print(flush=True)
sys.stdin.read()
"""


def test_a_user_who_can_read_a_storage_can_keep_it_locked_and_a_copy_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.storage.connection._BUSY_TIMEOUT_S", 0.01)
    path, copy = tmp_path / "autotune.db", tmp_path / "copy.db"
    store = StudyStore.create(f"sqlite:///{path}", "mine", definition(SPACE))
    add_trial(store, SPACE, SPACE.default(), took(2.0))
    command = [sys.executable, "-I", "-c", HOLDER, f"{path}-shm"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"\n"
        said = rf"keeps the file locked.*`chmod go= {path}\*` keeps their new.* a copy of {path} and {path}-wal is free"
        with pytest.raises(StorageError, match=said):
            add_trial(store, SPACE, SPACE.default(), took(3.0))
        for ending in ("", "-wal"):
            shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        other = StudyStore.create(f"sqlite:///{copy}", "mine", definition(SPACE))
        add_trial(other, SPACE, SPACE.default(), took(3.0))
        holder.stdin.close()
    assert [len(one.runs()) for one in (store, other)] == [1, 2]
    add_trial(store, SPACE, SPACE.default(), took(4.0))


def test_a_user_who_may_not_read_a_storage_is_told_how_its_owner_can_share_it(tmp_path, monkeypatch):
    path = tmp_path / "autotune.db"
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).touch()
    # Root may read everything, so the kernel cannot refuse it in a test that root runs.
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.F_OK or str(path).endswith(".db"))
    log = f"{path}-wal {path}-shm"
    said = rf"cannot be opened: you may not read {log}; its owner can let you read it \(chmod a\+r {log}\), or share"
    with pytest.raises(StorageError, match=said), storage_errors(f"sqlite:///{path}"):
        raise sqlite3.OperationalError("unable to open database file")


def test_a_folder_that_this_user_may_not_enter_is_said(tmp_path, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_file", refuse)  # root may enter every folder
    ended = run_main("storage", "list", "--storage", str(tmp_path / "autotune.db"))
    said = " ".join(ended.stderr.split())
    assert (ended.returncode, "you may not enter its folder; its owner can share that" in said) == (5, True)


def test_a_lock_that_others_could_hold_is_closed_to_them_by_its_next_holder(tmp_path):
    path = tmp_path / "autotune.db.mine.lock"
    path.touch(0o644)
    path.chmod(0o644)
    LockFile.hold(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
