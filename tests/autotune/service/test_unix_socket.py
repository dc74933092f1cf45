"""The Unix socket of a service: only this user may connect, and nothing else is written over."""

import socket
import stat

import pytest

from autotune.errors import CannotRunHereError
from autotune.service.unix_socket import unix_socket


def test_a_unix_socket_is_this_users_and_is_removed(tmp_path):
    path = tmp_path / "a.sock"
    with unix_socket(path) as listening:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        with pytest.raises(CannotRunHereError, match="Address already in use"), unix_socket(path):
            pytest.fail("somebody listens there")
        listening.close()
        with unix_socket(path):  # what is left of a service that was killed
            pass
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(CannotRunHereError, match="--socket names a file that is not there"), unix_socket(path):
        pytest.fail("it is no socket")
    assert path.read_text() == "mine"
