"""Lock files and the names of their holders."""

import os
import socket

import pytest

from autotune.locks import Holder, LockFile


def is_this(holder):
    """Whether it is this process; since when, to the minute, is another thing."""
    return (holder.pid, holder.host) == (os.getpid(), socket.gethostname())


def test_a_file_is_locked_once_and_says_by_whom_until_it_is_closed(tmp_path):
    first, second = LockFile.open(tmp_path / "a.lock"), LockFile.open(tmp_path / "a.lock")
    assert first.lock()
    assert second.holder() is None
    first.sign()
    assert not second.lock()
    assert is_this(second.holder())
    first.close()
    assert second.lock()
    second.close()


def test_a_file_that_is_not_there_is_not_created_unasked(tmp_path):
    with pytest.raises(FileNotFoundError):
        LockFile.open(tmp_path / "a.lock", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_another_file_is_refused_and_the_file_stays(tmp_path):
    (tmp_path / "thesis").write_text("my thesis")
    (tmp_path / "a.lock").symlink_to(tmp_path / "thesis")
    with pytest.raises(OSError, match="it is a link"):
        LockFile.open(tmp_path / "a.lock")
    assert (tmp_path / "thesis").read_text() == "my thesis"


def test_another_file_that_stands_there_by_a_hard_link_is_not_written_over(tmp_path):
    (tmp_path / "thesis").write_text("my thesis")
    (tmp_path / "a.lock").hardlink_to(tmp_path / "thesis")
    file = LockFile.open(tmp_path / "a.lock")
    assert file.lock()
    file.sign()
    file.close()
    assert (tmp_path / "thesis").read_text() == "my thesis"


def test_a_lock_file_that_was_signed_in_part_is_used(tmp_path):
    (tmp_path / "a.lock").write_text("proc")
    file = LockFile.open(tmp_path / "a.lock")
    file.sign()
    assert is_this(file.holder())
    file.close()


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
