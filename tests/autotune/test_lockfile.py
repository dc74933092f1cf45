"""Lock files and the names of their holders."""

import os

import pytest

from autotune.lockfile import Holder, LockFile


def test_a_file_is_locked_once_and_says_by_whom_until_it_is_closed(tmp_path):
    first, second = LockFile.open(tmp_path / "a.lock"), LockFile.open(tmp_path / "a.lock")
    assert first.lock()
    assert second.holder() is None
    first.sign()
    assert not second.lock()
    assert second.holder() == Holder.this()
    first.close()
    assert second.lock()
    second.close()


def test_a_file_that_is_not_there_is_not_created_unasked(tmp_path):
    with pytest.raises(FileNotFoundError):
        LockFile.open(tmp_path / "a.lock", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_keep_a_process_from_its_lock(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    file = LockFile.open(tmp_path / "a.lock")
    assert file.lock()
    file.sign()
    assert file.holder() is None
    file.close()


def test_what_is_written_into_the_file_is_read_back():
    holder = Holder.this()
    assert Holder.read(str(holder)) == holder
    assert holder.pid == os.getpid()
    at_work = Holder.this("study 'a, b' of me in /home/me, too\n")
    assert Holder.read(str(at_work).rstrip()).work == at_work.work.rstrip()
    assert Holder.read("process x on y since z") is None
