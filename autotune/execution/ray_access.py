"""Who may talk to a Ray instance: whoever has its token. A process that has it can run programs as this user.

Ray's own token, `~/.ray/auth_token`, is the same for all instances of a user, lives for ever, and has the permissions
of the umask: each instance of autotune's has a token of its own instead, which is removed with it.
"""

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from autotune.errors import CannotRunHereError, InterruptedSessionError, is_interrupt
from autotune.files import replace_file

TOKEN = "token"  # noqa: S105  a file's name
RESUME_HINT = "every finished run is stored; the same command goes on"
_RAYS_TOKEN = "auth_token"  # noqa: S105
_MODE = "RAY_AUTH_MODE"
_PATH = "RAY_AUTH_TOKEN_PATH"
# Ray would prefer it to the file.
_VALUE = "RAY_AUTH_TOKEN"
_NAMES = (_MODE, _PATH, _VALUE)


def find_exposed_token() -> Path | None:
    """Return the file of Ray's own token if others can read it; None if they cannot, or it is not there."""
    path = Path.home() / ".ray" / _RAYS_TOKEN
    try:
        status = path.stat()
        modes = [folder.stat().st_mode for folder in path.resolve().parents]
    except OSError:
        return None
    everybody = status.st_mode & stat.S_IROTH and all(mode & stat.S_IXOTH for mode in modes)
    group = status.st_mode & stat.S_IRGRP and all(mode & (stat.S_IXGRP | stat.S_IXOTH) for mode in modes)
    return path if everybody or group else None


@contextmanager
def ray_start_errors() -> Iterator[None]:
    """Say in words that an instance does not start; Ray raises whatever it likes, plain `Exception` too.

    Raises:
        InterruptedSessionError: it does not: a part of it was killed, or was too slow.
    """
    try:
        yield
    except Exception as error:
        if is_interrupt(error):
            raise
        why = first_sentence(error)
        msg = f"Ray, which makes the runs, did not start: {why}\n{RESUME_HINT}"
        raise InterruptedSessionError(msg) from error


def first_sentence(error: Exception) -> str:
    """Return what an error of Ray's says first; more follows for who knows Ray."""
    return str(error).partition("\n")[0].partition(". ")[0]


def write_token(folder: Path) -> None:
    """Make a token in a private folder, which only this user can read."""
    replace_file(folder / TOKEN, f"{secrets.token_hex(32)}\n", private=True)


def with_token(caller: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which Ray asks everybody for the token in the folder.

    Raises:
        CannotRunHereError: the caller's turns that off.
    """
    mode = caller.get(_MODE, "")
    if mode.lower() not in ("", "token"):
        msg = (
            f"{_MODE}={mode} in the environment would let every user of this host, and of its network, run programs as "
            f"you; autotune gives each Ray of its own a token: unset {_MODE}"
        )
        raise CannotRunHereError(msg)
    kept = {name: value for name, value in caller.items() if name not in _NAMES}
    return {**kept, _MODE: "token", _PATH: str(folder / TOKEN)}


@contextmanager
def this_process_with_token(folder: Path) -> Iterator[None]:
    """Make a token in a private folder, and let this process and its children use it while the context lasts.

    Raises:
        CannotRunHereError: the environment turns tokens off.
    """
    before = {name: os.environ[name] for name in _NAMES if name in os.environ}
    own = with_token(os.environ, folder)
    write_token(folder)
    try:
        _replace({name: own[name] for name in _NAMES if name in own})
        yield
    finally:
        _replace(before)


def _replace(settings: Mapping[str, str]) -> None:
    for name in _NAMES:
        os.environ.pop(name, None)
    os.environ.update(settings)
