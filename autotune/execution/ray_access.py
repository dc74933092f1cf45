"""Access to Ray instances by tokens. A process with an instance's token can run programs as this user.

Ray's default token, `~/.ray/auth_token`, is shared by all instances of a user, never expires, and has the umask's
permissions. So each of autotune's instances has its own token, which is removed with it.
"""

import os
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from autotune.errors import CannotRunHereError, ExitCode, InterruptedSessionError, is_interrupt
from autotune.execution.ray_room import check_room
from autotune.files import replace_file
from autotune.storage.sqlite.held_file import close_held_files

TOKEN = "token"  # noqa: S105  a file's name
# Ray gives up waiting for its own parts after 30 s each.
_START_S = 300.0
RESUME_HINT = "every finished run is stored; the same command resumes"
_RAYS_TOKEN = "auth_token"  # noqa: S105
_MODE = "RAY_AUTH_MODE"
_PATH = "RAY_AUTH_TOKEN_PATH"
# Ray prefers this variable to the file.
_VALUE = "RAY_AUTH_TOKEN"
_NAMES = (_MODE, _PATH, _VALUE)


def find_exposed_token() -> Path | None:
    """Return the file of Ray's default token if other users can read it; else None."""
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
def ray_start_errors(folder: Path) -> Iterator[None]:
    """Turn the errors of a start of Ray, which may be of any class, into one with a clear message.

    Args:
        folder: The folder of Ray's files.

    Raises:
        CannotRunHereError: Ray has too little room now.
        InterruptedSessionError: Ray did not start: a part of it was killed, or was too slow.
    """
    too_late = Timer(_START_S, _give_up)
    too_late.daemon = True
    try:
        too_late.start()
        yield
    except Exception as error:
        if is_interrupt(error):
            raise
        try:
            check_room(folder)
        except CannotRunHereError as no_room:
            no_room.leaves_threads = True
            raise no_room from error
        why = first_sentence(error)
        msg = f"Ray, which makes the runs, did not start: {why}\n{RESUME_HINT}"
        not_started = InterruptedSessionError(msg)
        not_started.leaves_threads = True
        raise not_started from error
    finally:
        too_late.cancel()


def _give_up() -> None:
    """End this process, which waits for a Ray that does not answer; what it has started ends with it."""
    sys.stderr.write(f"autotune: Ray, which makes the runs, did not start in {_START_S:g} s\n{RESUME_HINT}\n")
    sys.stderr.flush()
    try:
        close_held_files()
    finally:
        os._exit(ExitCode.INTERRUPTED)


def first_sentence(error: Exception) -> str:
    """Return the first sentence of a Ray error; the rest only helps experts on Ray."""
    return str(error).partition("\n")[0].partition(". ")[0]


def write_token(folder: Path) -> None:
    """Write a new token, readable only by this user, into a private folder."""
    replace_file(folder / TOKEN, f"{secrets.token_hex(32)}\n", private=True)


def with_token(caller: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the caller's environment with the settings that make Ray require the token in the folder.

    Raises:
        CannotRunHereError: The caller's environment turns tokens off.
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
    """Write a token into a private folder, and let this process and its children use it while the context lasts.

    Raises:
        CannotRunHereError: The environment turns tokens off.
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
