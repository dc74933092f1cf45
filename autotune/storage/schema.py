"""The version of a storage: a number in a table of ours, and what an older and a newer one mean.

What autotune wrote before there were versions has no such table: version 0.
"""

from importlib.metadata import version as installed

import sqlalchemy as sa

from autotune import __version__
from autotune.errors import StorageError
from autotune.storage.address import shown
from autotune.storage.migrations import MIGRATIONS, Migration

VERSION = len(MIGRATIONS)
"""The version that this autotune reads and writes."""

UPGRADE = "`autotune storage upgrade`, with the same --storage,"

_SCHEMA = sa.Table(
    "autotune_schema",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("written_by", sa.String(100), nullable=False),
)
_ONLY = 1
_STUDIES = "studies"  # Optuna's own table
_OURS = "autotune_"


def version_of(connection: sa.Connection) -> int | None:
    """Return the version of a storage; None if neither autotune nor Optuna has written to it."""
    there = sa.inspect(connection)
    if there.has_table(_SCHEMA.name):
        found = connection.scalar(sa.select(_SCHEMA.c.version).where(_SCHEMA.c.id == _ONLY))
        return 0 if found is None else int(found)
    names = there.get_table_names()
    return 0 if any(name == _STUDIES or name.startswith(_OURS) for name in names) else None


def refuse_newer(version: int | None, url: str) -> None:
    """Refuse a version that is not known yet.

    Raises:
        StorageError: it is newer than this autotune.
    """
    if version is not None and version > VERSION:
        msg = (
            f"storage {shown(url)} was written by a newer autotune (version {version} of its tables; autotune "
            f"{__version__} knows version {VERSION}): update autotune; nothing was read or changed"
        )
        raise StorageError(msg)


def pending(connection: sa.Connection, version: int | None) -> list[Migration]:
    """Return the migrations that would change something in a storage of a version."""
    later = () if version is None else MIGRATIONS[version:]
    return [migration for migration in later if migration.needed(connection)]


def check_readable(connection: sa.Connection, url: str) -> None:
    """Let only those pass whose records are as they are read here.

    Raises:
        StorageError: the storage is older, and something in it is of an older form; or it is newer.
    """
    version = version_of(connection)
    refuse_newer(version, url)
    if version != VERSION and pending(connection, version):
        msg = (
            f"storage {shown(url)} was written by an older autotune (version {version} of its tables, this one reads "
            f"version {VERSION}): {UPGRADE} brings it up to date"
        )
        raise StorageError(msg)


def write_version(connection: sa.Connection) -> None:
    """Write that a storage is of this version."""
    if not sa.inspect(connection).has_table(_SCHEMA.name):
        _SCHEMA.create(connection)
        if connection.dialect.name == "postgresql":
            # Who was allowed to read the other tables before must be able to tell whether they can be read.
            connection.execute(sa.text(f"GRANT SELECT ON {_SCHEMA.name} TO PUBLIC"))
    connection.execute(sa.delete(_SCHEMA))
    row = {"id": _ONLY, "version": VERSION, "written_by": f"autotune {__version__}"}
    connection.execute(sa.insert(_SCHEMA).values(row))


def older_optuna(url: str, revision: str) -> StorageError:
    """Return what to say of tables of an older Optuna than the installed one."""
    there = f"storage {shown(url)} has the tables of an older Optuna (revision {revision})"
    return StorageError(f"{there}: {UPGRADE} brings it up to date")


def newer_optuna(url: str, revision: str) -> StorageError:
    """Return what to say of tables that the installed Optuna does not know."""
    there = f"storage {shown(url)} has the tables of a newer Optuna (revision {revision})"
    known = f"Optuna {installed('optuna')} does not know them"
    return StorageError(f"{there}, {known}: update it, python -m pip install --upgrade optuna; nothing was changed")
