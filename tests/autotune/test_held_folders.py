"""Folders that are removed when no process holds them any more."""

import os
import subprocess
import sys
import tempfile

from autotune import held_folders
from autotune.held_folders import abandoned_folders, held_folder, temporary_folder


def test_a_folder_that_another_process_removes_before_it_is_held_is_made_again(tmp_path, monkeypatch):
    opened, removed = held_folders._open, []

    def raced(folder):
        if not removed:
            removed.append(folder)
            folder.rmdir()
        return opened(folder)

    monkeypatch.setattr(held_folders, "_open", raced)
    with held_folder(tmp_path, "r-") as folder:
        assert folder.is_dir()
        assert folder != removed[0]


def test_a_held_folder_stays_and_one_of_a_killed_process_goes(tmp_path):
    killed = "import os, sys; from pathlib import Path; from autotune.held_folders import held_folder\n"
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


def test_a_temporary_folder_of_a_killed_process_goes_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = "import os; from autotune.held_folders import temporary_folder\n"
    killed += "with temporary_folder('compare'): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed], check=False, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert [path.name[:17] for path in tmp_path.iterdir()] == ["autotune-compare-"]
    users = tmp_path / "autotune-results"
    users.mkdir()
    with temporary_folder("plan") as folder:
        assert set(tmp_path.iterdir()) == {folder, users}
    assert list(tmp_path.iterdir()) == [users]
