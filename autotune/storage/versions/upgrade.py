"""Storages that are brought up to date: the tables of an older autotune, and of an older Optuna.

Of a SQLite file a copy is made before that, and another one is changed: Optuna's steps are transactions of their own
there, and where one was broken off, it cannot be done again. The changed one takes the file's place in one transaction.
"""

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from autotune.errors import BusyError, StorageError
from autotune.files import sync_folder
from autotune.storage.address import shown, sqlite_path, storage_url
from autotune.storage.connection import changing, prepare_sqlite, set_up_alone, storage_errors
from autotune.storage.opening import check_version
from autotune.storage.optuna_storage import optuna_revisions, upgrade_optuna
from autotune.storage.schema import known_version, note_version
from autotune.storage.study_lock import held_by_another
from autotune.storage.tables import VERSION
from autotune.storage.versions.version_4 import to_version_4

# The copy, the draft, and what the changes take in the write-ahead logs of draft and file.
_ROOM = 4
_LEAST_ROOM_BYTES = 1 << 20


@dataclass(frozen=True)
class Upgrade:
    """What was done to the tables of autotune and of Optuna, each as (before, after); None if that was up to date.

    `copy` is the file as it was.
    """

    versions: tuple[int, int] | None = None
    revisions: tuple[str, str] | None = None
    copy: Path | None = None

    def sentence(self, url: str) -> str:
        """Say it in a line."""
        kept = f"; {self.copy} is a copy of what it was" if self.copy is not None else ""
        own, optuna = self.versions, self.revisions
        done = [
            *([f"autotune's tables from version {own[0]} to {own[1]}"] if own else []),
            *([f"Optuna's tables from revision {optuna[0]} to {optuna[1]}"] if optuna else []),
        ]
        return f"storage {shown(url)} was brought up to date: {', '.join(done)}{kept}"


def upgrade(url: str) -> Upgrade | None:
    """Bring the tables of an older autotune and of an older Optuna up to date; None if they are.

    Raises:
        StorageError: there are none, something newer wrote them, or there is no room for a copy.
        BusyError: somebody works on one of the studies.
    """
    with storage_errors(url):
        check_version(url, older=True)
        if optuna_revisions(url) is None:
            msg = f"no studies in {shown(url)}: nothing to bring up to date"
            raise StorageError(msg)
        prepare_sqlite(url)
        path = sqlite_path(url)
        with set_up_alone(url):
            version, revisions = check_version(url, older=True), optuna_revisions(url)
            versions = (version, VERSION) if version is not None and version != VERSION else None
            revisions = None if revisions is None or revisions[0] == revisions[1] else revisions
            if versions is None and revisions is None:
                if path is not None:
                    # Of who was killed when the draft had just taken the file's place.
                    _remove(_draft_files(path))
                return None
            check_idle(url)
            copy = _copied(path, revisions[0] if revisions else f"version-{version}") if path is not None else None
            with nullcontext(url) if path is None else _draft_of(path) as changed:
                if versions is not None:
                    with changing(changed) as connection:
                        if known_version(connection, changed, older=True) != VERSION:
                            to_version_4(connection)
                            note_version(connection)
                if revisions is not None:
                    with _quiet():
                        upgrade_optuna(changed)
            return Upgrade(versions, revisions, copy)


@contextmanager
def _draft_of(path: Path) -> Iterator[str]:
    """Provide the address of a copy of a SQLite file; what is changed there then takes the file's place, at once."""
    files = _draft_files(path)
    try:
        for left in files:
            left.unlink(missing_ok=True)
        _back_up(path, files[0])
        yield storage_url(str(files[0]))
        _back_up(files[0], path)
    finally:
        _remove(files)


def _draft_files(path: Path) -> list[Path]:
    """Return the draft of a SQLite file, and what SQLite may keep beside that."""
    return [path.with_name(f"{path.name}.draft{suffix}") for suffix in ("", "-journal", "-wal", "-shm")]


def _remove(files: Sequence[Path]) -> None:
    for path in files:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _back_up(source: Path, target: Path) -> None:
    """Give a SQLite file the content of another one, in one transaction."""
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as read,
        closing(sqlite3.connect(target)) as written,
    ):
        read.backup(written)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Alembic from setting up the logging of the whole process, which it does where nobody has."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def check_idle(url: str) -> None:
    """Refuse to change a file that another process writes to.

    Raises:
        BusyError: somebody works on a study in that file.
    """
    path = sqlite_path(url)
    if path is None:
        return
    locks = (one for one in path.absolute().parent.iterdir() if one.name.startswith(f"{path.name}."))
    for lock in sorted(one for one in locks if one.suffix == ".lock"):
        holder = held_by_another(lock)
        if holder is not None:
            msg = (
                f"storage {shown(url)} is to be changed, and {lock.name} is held by {holder}: wait until "
                "that has ended, or stop it, and use the same command again"
            )
            raise BusyError(msg)


def _copied(path: Path, before: str) -> Path:
    """Copy a SQLite file as its last transaction left it; the copy is whole, and on disk, when it has its name."""
    names = (f"{path.name}.{before}{f'.{number}' if number else ''}.bak" for number in count())
    copy = next(one for one in map(path.with_name, names) if not one.exists())
    part = copy.with_name(f"{copy.name}.part")
    try:
        _check_room(path)
        part.unlink(missing_ok=True)
        _back_up(path, part)
        shutil.copymode(path, part)
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(copy)
        sync_folder(copy.parent)
    except (OSError, sqlite3.Error) as error:
        _remove([part, part.with_name(f"{part.name}-journal")])
        msg = (
            f"{path} has older tables ({before}), and is copied before they are brought up to date; "
            f"that failed: {error}; "
            "nothing was changed, make room and use the same command again"
        )
        raise StorageError(msg) from error
    return copy


def _check_room(path: Path) -> None:
    files = (path, path.with_name(f"{path.name}-wal"))
    wanted = _ROOM * sum(one.stat().st_size for one in files if one.exists()) + _LEAST_ROOM_BYTES
    free = shutil.disk_usage(path.absolute().parent).free
    if free < wanted:
        msg = f"no space: {wanted / 1e6:.0f} MB are needed, {free / 1e6:.0f} MB are free"
        raise OSError(msg)
