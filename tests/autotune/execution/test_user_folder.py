"""The folder for locks and sockets, which only this user may enter."""

import errno
import os
import pwd
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from autotune import user_paths
from autotune.errors import CannotRunHereError
from autotune.execution import user_folder as module
from autotune.execution.user_folder import other_folder_note, private_folder, user_folder
from autotune.user_paths import find_user_folder, usual_folder


def test_it_is_made_once_for_this_user_only(tmp_path):
    assert private_folder(private_folder(tmp_path / "own")).stat().st_mode & 0o777 == 0o700


def test_a_link_to_a_folder_of_this_user_is_refused(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "own").symlink_to(tmp_path / "mine")
    with pytest.raises(CannotRunHereError, match="is a link"):
        private_folder(tmp_path / "own")


def test_a_folder_that_others_may_enter_is_refused(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own").chmod(0o755)
    with pytest.raises(CannotRunHereError, match="mode 0755"):
        private_folder(tmp_path / "own")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "own").mkdir(mode=0o700)
    os.chown(tmp_path / "own", 65534, 65534)
    with pytest.raises(CannotRunHereError, match="belongs to somebody else"):
        private_folder(tmp_path / "own")


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Provide a folder in place of /tmp, and a home."""
    monkeypatch.delenv("AUTOTUNE_USER_FOLDER", raising=False)
    for each in (module, user_paths):
        monkeypatch.setattr(each, "TEMPORARY", tmp_path / "tmp")
    own = pwd.getpwuid(os.getuid())
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd((*own[:5], str(tmp_path / "home"), own[6])))
    return tmp_path / "tmp"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_another_user_who_has_made_the_folder_locks_nobody_out(temporary, monkeypatch):
    taken = usual_folder()
    taken.mkdir()
    os.chown(taken, 65534, 65534)
    assert find_user_folder() == taken
    folder = user_folder()
    assert folder.parent == temporary
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # Other processes find the same, whatever their environment.
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    assert find_user_folder() == user_folder() == folder
    assert (
        other_folder_note() == f"{taken} was taken by another user: locks of cores, sockets and tokens are in {folder}"
    )
    # Sessions may still hold locks there when the usual name is free again.
    taken.rmdir()
    assert user_folder() == folder
    # After a restart of the host, the folder is gone, and its name is somebody else's.
    os.chown(folder, 65534, 65534)
    assert user_folder() == taken


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_processes_that_begin_at_once_make_one_folder(temporary):
    usual_folder().mkdir()
    os.chown(usual_folder(), 65534, 65534)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: user_folder(), range(8)))) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_without_a_home_the_variable_is_the_remedy(temporary, tmp_path):
    usual_folder().mkdir()
    os.chown(usual_folder(), 65534, 65534)
    (tmp_path / "home").write_text("")
    with pytest.raises(CannotRunHereError, match=r"belongs to somebody else, and .*let AUTOTUNE_USER_FOLDER name"):
        user_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_a_home_without_room_leaves_no_folder(temporary, monkeypatch):
    def fail():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full(*words, **options):
        file = opened(*words, **options)
        file.flush = fail
        return file

    opened = os.fdopen
    monkeypatch.setattr(module.os, "fdopen", full)
    usual_folder().mkdir()
    os.chown(usual_folder(), 65534, 65534)
    with pytest.raises(CannotRunHereError, match="cannot be written: No space left"):
        user_folder()
    assert list(temporary.iterdir()) == [usual_folder()]


def test_a_folder_of_ours_is_used_without_a_look_at_the_home(temporary, monkeypatch):
    monkeypatch.setattr(pwd, "getpwuid", None)
    usual_folder().mkdir(mode=0o700)
    assert user_folder() == usual_folder()
    assert other_folder_note() is None


def test_the_environment_may_name_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_USER_FOLDER", str(tmp_path / "node"))
    assert user_folder() == tmp_path / "node"
    monkeypatch.delenv("AUTOTUNE_USER_FOLDER")
    assert str(user_folder()) == f"/tmp/autotune-{os.getuid()}"
