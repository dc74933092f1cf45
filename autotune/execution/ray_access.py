"""Access to Ray instances by tokens. A process with an instance's token can run programs as this user.

Ray's default token, `~/.ray/auth_token`, is shared by all instances of a user, never expires, and has the umask's
permissions. So each of autotune's instances has its own token, which is removed with it.
"""

import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from autotune.errors import CannotRunHereError
from autotune.files import replace_file

TOKEN = "token"  # noqa: S105  a file's name
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
