"""The Unix socket of a service: a file that only this user may connect to, so that no token is needed there."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotune.errors import CannotRunHereError

_WAITING = 512


@contextmanager
def unix_socket(path: Path) -> Iterator[socket.socket]:
    """Listen at a file, which is removed afterwards.

    Raises:
        CannotRunHereError: something else is there, or it cannot be made.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_leftover(path)
        before = os.umask(0o177)
        try:
            listening.bind(os.fspath(path))
        finally:
            os.umask(before)
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        msg = f"cannot listen at {path}: {error.strerror or error}; --socket names a file that is not there"
        raise CannotRunHereError(msg) from error
    try:
        yield listening
    finally:
        listening.close()
        path.unlink(missing_ok=True)


def _remove_leftover(path: Path) -> None:
    """Remove the socket of a service that was killed and answers no more."""
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
                try:
                    asking.connect(os.fspath(path))
                except ConnectionRefusedError:
                    path.unlink()
