"""Files and folders that change whole."""

import os
import stat
from pathlib import Path

import pytest

from autotune import files
from autotune.files import discard, refuse_link_of_others, replace_file, sweep_discarded, write_output


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_has_the_new_content_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    replace_file(path, "new é")
    assert path.read_text(encoding="utf-8") == "new é"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.json"]


def test_the_umask_says_who_may_read_it_unless_it_is_private(tmp_path):
    before = os.umask(0o022)
    try:
        replace_file(tmp_path / "shared", "x")
        replace_file(tmp_path / "private", "x", private=True)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "shared"), mode(tmp_path / "private")) == (0o644, 0o600)


def test_what_was_there_stays_if_it_cannot_be_written(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "kept").touch()
    with pytest.raises(OSError, match="directory"):
        replace_file(path, "x")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "missing" / "a", "x")


def test_a_long_name_is_no_hindrance(tmp_path):
    path = tmp_path / ("n" * 250)
    replace_file(path, "x")
    assert path.read_text() == "x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives links away")
def test_an_output_does_not_go_where_the_link_of_another_user_leads(tmp_path):
    (tmp_path / "profile").write_text("mine")
    path = tmp_path / "report.html"
    path.symlink_to("profile")
    write_output(path, "new")
    assert (tmp_path / "profile").read_text() == "new"
    os.lchown(path, 65534, 65534)
    with pytest.raises(OSError, match="a link of another user"):
        write_output(path, "newer")
    assert (tmp_path / "profile").read_text() == "new"


@pytest.mark.parametrize("path", [Path("/dev/stdout"), Path("/dev/fd")], ids=str)
def test_a_link_of_root_may_be_followed(monkeypatch, path):
    assert path.lstat().st_uid == 0
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refuse_link_of_others(path)


def test_the_new_name_is_on_disk_too_when_it_is_to_be_durable(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def note(descriptor):
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), (tmp_path / "a").exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    replace_file(tmp_path / "a", "x")
    assert synced == [(False, False), (True, True)]
    replace_file(tmp_path / "a", "y", durable=False)
    assert len(synced) == 2


def test_what_could_not_be_removed_of_a_discarded_folder_is_removed_later(tmp_path, monkeypatch):
    folder = tmp_path / "00001"
    folder.mkdir()
    (folder / "stdout").touch()
    (tmp_path / ".00002.discarded").write_text("a file of that name is nobody's folder")
    with monkeypatch.context() as patch:
        patch.setattr(files.shutil, "rmtree", lambda *_, **__: None)
        discard(folder)
    assert not folder.exists()
    assert len(list(tmp_path.iterdir())) == 2
    sweep_discarded(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [".00002.discarded"]
    sweep_discarded(tmp_path / "not there")
