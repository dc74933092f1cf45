"""Storages that are opened for writing: one that is not there is made, an older one is brought up to date.

That happens in one transaction, while nobody else writes, after a copy of a SQLite file was made. Killed before its end
it leaves the storage as it was.
"""

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from optuna.storages import RDBStorage
from sqlalchemy import Connection

from autotune.errors import BusyError, StorageError
from autotune.storage.address import shown, sqlite_path
from autotune.storage.connection import (
    changing,
    connect,
    optuna_revisions,
    prepare_sqlite,
    set_up_alone,
    storage_errors,
    tables_engine,
    upgrade_optuna,
)
from autotune.storage.schema import VERSION, older_optuna, pending, refuse_newer, version_of, write_version
from autotune.storage.study_lock import held_by_another

_LOG = logging.getLogger(__name__)
# The copy, and what the changes take in the write-ahead log.
_ROOM = 2
_LEAST_ROOM_BYTES = 1 << 20


@dataclass(frozen=True)
class Upgrade:
    """What was done to a storage.

    `before` is the version that it was of, `done` names what was of an older form; `optuna` are the revisions
    of Optuna's tables before and after it, None if those were not changed; `copy` is the file as it was.
    """

    before: int
    done: tuple[str, ...] = ()
    optuna: tuple[str, str] | None = None
    copy: Path | None = None

    def sentence(self, url: str) -> str:
        """Say it in a line."""
        told = [f"from version {self.before} to {VERSION} (older: {'; '.join(self.done)})"] if self.done else []
        if self.optuna is not None:
            told.append("Optuna's tables from revision {} to {}".format(*self.optuna))
        kept = f"; {self.copy} is a copy of what it was" if self.copy is not None else ""
        return f"storage {shown(url)} was brought up to date: {', '.join(told)}{kept}"


def opened(url: str, make_tables: Callable[[Connection], None]) -> RDBStorage:
    """Open a storage for writing: what is not there is made, what is older brought up to date, and that said.

    Raises:
        StorageError: it was written by something newer, or there is no room for a copy of an older one.
        BusyError: it is older, and somebody works on one of its studies.
    """
    path = sqlite_path(url)
    if path is None or path.exists():
        _known_version(url)
        revisions = optuna_revisions(url)
        if revisions is not None and revisions[0] != revisions[1]:
            raise older_optuna(url, revisions[0])
    prepare_sqlite(url)
    with set_up_alone(url):
        storage = connect(url)
        _say(_migrated(url, make_tables), url)
    return storage


def upgrade(url: str) -> Upgrade | None:
    """Bring a storage up to date that is there, Optuna's tables included; None if nothing was to do.

    Raises:
        StorageError: it is not there, was written by something newer, or there is no room for a copy.
        BusyError: somebody works on one of its studies.
    """
    with storage_errors(url):
        version = _known_version(url)
        if version is None:
            msg = f"no studies in {shown(url)}: nothing to bring up to date"
            raise StorageError(msg)
        prepare_sqlite(url)
        with set_up_alone(url):
            revisions = optuna_revisions(url)
            if revisions is None or revisions[0] == revisions[1]:
                return _migrated(url)
            _check_idle(url)
            # Optuna's steps are transactions of their own: whoever is interrupted between them has the copy.
            with _kept(url, version, wanted=True) as copy, _quiet():
                upgrade_optuna(url)
            ours = _migrated(url, has_copy=True)
            return Upgrade(version, ours.done if ours else (), revisions, copy)


def _known_version(url: str) -> int | None:
    """Return the version of a storage, None where there is nothing; nothing is changed.

    Raises:
        StorageError: it was written by something newer.
    """
    engine = tables_engine(url)
    try:
        with engine.connect() as connection:
            version = version_of(connection)
    finally:
        engine.dispose()
    refuse_newer(version, url)
    return version


def _migrated(
    url: str, make_tables: Callable[[Connection], None] = lambda _: None, *, has_copy: bool = False
) -> Upgrade | None:
    """Bring our own tables up to date, and make what is not there; None if nothing in them was of an older form."""
    with changing(url) as connection:
        # Somebody else may have done it meanwhile.
        version = version_of(connection)
        refuse_newer(version, url)
        todo = pending(connection, version) if version != VERSION else []
        with _kept(url, version or 0, wanted=bool(todo) and not has_copy) as copy:
            if todo:
                _check_idle(url)
            for migration in todo:
                migration.apply(connection)
            make_tables(connection)
            if version != VERSION:
                write_version(connection)
    return Upgrade(version or 0, tuple(one.what for one in todo), copy=copy) if todo else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Alembic from setting up the logging of the whole process, which it does where nobody has."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _say(done: Upgrade | None, url: str) -> None:
    if done is not None:
        # On a terminal without any set-up this is a line of stderr.
        _LOG.warning("%s", done.sentence(url))


def _check_idle(url: str) -> None:
    """Refuse to change what an older autotune, which knows nothing of it, writes at the moment.

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
                f"storage {shown(url)} is to be brought up to date, and {lock.name} is held by {holder}: wait until "
                "that has ended, or stop it, and use the same command again"
            )
            raise BusyError(msg)


@contextmanager
def _kept(url: str, version: int, *, wanted: bool) -> Iterator[Path | None]:
    """Provide a copy of a SQLite file; it is removed again if what it is for fails."""
    path = sqlite_path(url)
    if path is None or not wanted:
        yield None
        return
    copy = _copied(path, version)
    try:
        yield copy
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


def _copied(path: Path, version: int) -> Path:
    """Copy a SQLite file as its last transaction left it; the copy is whole, and on disk, when it has its name."""
    names = (f"{path.name}.v{version}{f'.{number}' if number else ''}.bak" for number in count())
    copy = next(one for one in map(path.with_name, names) if not one.exists())
    part = copy.with_name(f"{copy.name}.part")
    try:
        _check_room(path)
        part.unlink(missing_ok=True)
        with (
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(part)) as target,
        ):
            source.backup(target)
        shutil.copymode(path, part)
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(copy)
    except (OSError, sqlite3.Error) as error:
        for left in (part, part.with_name(f"{part.name}-journal")):
            with suppress(OSError):
                left.unlink(missing_ok=True)
        msg = (
            f"{path} is of version {version}, and is copied before it is brought up to date; that failed: {error}; "
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
