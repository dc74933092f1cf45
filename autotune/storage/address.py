"""Storage addresses: a file name, or any address that Optuna accepts."""

import re
from pathlib import Path

from autotune.errors import StorageError

DEFAULT = "autotune.db"
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql+psycopg"
_POSTGRESQL_TOO = frozenset({"postgres", "postgresql"})
_SECRET = re.compile(r"([?&](?:ssl)?password=)[^&]*")


def storage_url(text: str) -> str:
    """Return the address for a user's text: `results.db` is a SQLite file, anything with `://` is an address."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return f"{_SQLITE}{text}"
    # PostgreSQL's own programs use these schemes. SQLAlchemy's default driver for them depends on its version.
    return f"{_POSTGRESQL}://{rest}" if scheme in _POSTGRESQL_TOO else text


def is_postgresql(url: str) -> bool:
    """Return whether an address is that of a PostgreSQL database, with any driver."""
    return url.partition("://")[0].partition("+")[0] == "postgresql"


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite address, None for another storage."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


def check_exists(url: str) -> None:
    """Check that a storage's file exists; a server is not asked.

    Raises:
        StorageError: The file does not exist, or is in a folder that this user may not enter.
    """
    path = sqlite_path(url)
    try:
        is_missing = path is not None and not path.is_file()
    except PermissionError as error:
        msg = (
            f"storage {path} cannot be opened: you may not enter its folder; its owner can share that with a group "
            "(docs/storage.md)"
        )
        raise StorageError(msg) from error
    if is_missing:
        msg = f"no storage at {path}; `autotune study` makes it, --storage or AUTOTUNE_STORAGE names another"
        raise StorageError(msg)


def hide_password(url: str) -> str:
    """Return the address without its password, for messages."""
    scheme, separator, rest = url.partition("://")
    credentials, at, host = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    hidden = f"{user}:***{at}{host}" if colon else rest
    return scheme + separator + _SECRET.sub(r"\1***", hidden)


def place(url: str) -> str:
    """Return the absolute path of a storage's file, or its server's address without credentials."""
    path = sqlite_path(url)
    if path is not None:
        return str(path.resolve())
    scheme, separator, rest = url.partition("://")
    return scheme + separator + _SECRET.sub(r"\1***", rest.rpartition("@")[2])


def lock_path(url: str, study: str) -> Path:
    """Return the lock file of a study: beside its SQLite file, else in the current folder."""
    path = sqlite_path(url)
    return state_folder(url) / f"{path.name if path else 'autotune'}.{study}.lock"


def state_folder(url: str) -> Path:
    """Return the folder of a study's locks and runs: beside a SQLite file, else the current folder."""
    path = sqlite_path(url)
    return path.parent if path is not None else Path()
