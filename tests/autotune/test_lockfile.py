"""Lock files and the names of their holders."""

import os
import socket
import subprocess
import sys
import tempfile

import pytest

from autotune import lockfile
from autotune.lockfile import Holder, LockFile, abandoned_folders, held_folder, temporary_folder


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


def test_a_folder_that_another_process_removes_before_it_is_held_is_made_again(tmp_path, monkeypatch):
    opened, removed = lockfile._opened, []

    def raced(folder):
        if not removed:
            removed.append(folder)
            folder.rmdir()
        return opened(folder)

    monkeypatch.setattr(lockfile, "_opened", raced)
    with held_folder(tmp_path, "r-") as folder:
        assert folder.is_dir()
        assert folder != removed[0]


def test_a_held_folder_stays_and_one_of_a_killed_process_goes(tmp_path):
    killed = "import os, sys; from pathlib import Path; from autotune.lockfile import held_folder\n"
    killed += "with held_folder(Path(sys.argv[1]), 'r-'): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed, str(tmp_path)], check=False)
    (left,) = abandoned_folders(tmp_path, "r-")
    (tmp_path / "other").mkdir()
    # Neither is a link followed, whose folder may be anybody's.
    (tmp_path / "r-link").symlink_to(tmp_path / "other")
    with held_folder(tmp_path, "r-") as first, held_folder(tmp_path, "r-") as second:
        assert not left.exists()
        assert first.is_dir()
        assert second.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "r-link"]


def test_a_folder_that_a_user_named_alike_is_not_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = tmp_path / "autotune-check-2026"
    mine.mkdir(mode=0o700)
    (mine / "results.csv").write_text("a year's work")
    with temporary_folder("check"):
        assert abandoned_folders(tmp_path, "autotune-") == []
    assert (mine / "results.csv").read_text() == "a year's work"


def test_a_folder_with_a_name_goes_with_the_last_who_holds_it(tmp_path):
    with held_folder(tmp_path, "r-", "same") as first:
        with held_folder(tmp_path, "r-", "same") as second:
            assert first == second
        assert first.is_dir()
    assert not first.exists()


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


def test_a_temporary_folder_of_a_killed_process_goes_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = "import os; from autotune.lockfile import temporary_folder\n"
    killed += "with temporary_folder('predict'): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed], check=False, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert [path.name[:17] for path in tmp_path.iterdir()] == ["autotune-predict-"]
    with temporary_folder("predict") as folder:
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []
