"""Storage addresses: a file name, or any address that Optuna takes."""

from pathlib import Path

DEFAULT = "autotune.db"
_SQLITE = "sqlite:///"


def storage_url(text: str) -> str:
    """Return the address for what a user typed: `results.db` is a SQLite file, anything with `://` is an address."""
    return text if "://" in text else f"{_SQLITE}{text}"


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite address, None for another storage."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


def shown(url: str) -> str:
    """Return the address without its password, for messages."""
    scheme, separator, rest = url.partition("://")
    credentials, at, host = rest.rpartition("@")
    if not at:
        return url
    user = credentials.partition(":")[0]
    return f"{scheme}{separator}{user}:***@{host}"


def lock_path(url: str, study: str) -> Path:
    """Return the lock file of a study: beside its SQLite file, else in the current folder."""
    path = sqlite_path(url)
    return state_folder(url) / f"{path.name if path else 'autotune'}.{study}.lock"


def state_folder(url: str) -> Path:
    """Return where a study keeps its locks and its runs: beside a SQLite file, else in the current folder."""
    path = sqlite_path(url)
    return path.parent if path is not None else Path()
