"""The folder for locks and sockets, which only this user may enter."""

import os

import pytest

from autotune.errors import CannotRunHereError
from autotune.execution.user_folder import private_folder, user_folder


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


def test_the_environment_may_name_another_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_USER_FOLDER", str(tmp_path / "node"))
    assert user_folder() == tmp_path / "node"
    monkeypatch.delenv("AUTOTUNE_USER_FOLDER")
    assert str(user_folder()) == f"/tmp/autotune-{os.getuid()}"
