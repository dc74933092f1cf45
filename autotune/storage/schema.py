"""The version of a storage: a number in a table of ours. A storage of another version is neither read nor written."""

from importlib.metadata import version as installed

import sqlalchemy as sa

from autotune import __version__
from autotune.errors import StorageError
from autotune.storage.address import shown
from autotune.storage.tables import VERSION

UPGRADABLE = frozenset({3})
"""The versions that can be brought up to date."""

UPGRADE = "`autotune storage upgrade`, with the same --storage,"

_SCHEMA = sa.Table(
    "autotune_schema",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("written_by", sa.String(100), nullable=False),
)
_ONLY = 1
_OURS = "autotune_"
_STUDIES = "studies"  # a table of Optuna's


def known_version(connection: sa.Connection, url: str, *, older: bool = False) -> int | None:
    """Return the version of a storage; None if autotune has written nothing to it.

    Raises:
        StorageError: it is another than this autotune's; unless it is an `older` one that can be brought up to date.
    """
    version = _version_of(connection)
    if version is None or version == VERSION or (older and version in UPGRADABLE):
        return version
    if version in UPGRADABLE:
        msg = f"storage {shown(url)} has the tables of an older autotune (version {version}): {UPGRADE}"
        raise StorageError(f"{msg} brings it up to date; nothing was read or changed")
    known = f"version {version} of its tables; autotune {__version__} knows version {VERSION}"
    if version > VERSION:
        said, todo = f"a newer autotune ({known})", "update autotune"
    else:
        said, todo = f"an autotune from before its first release ({known})", "use another storage, --storage NEW"
    msg = f"storage {shown(url)} was written by {said}: {todo}; nothing was read or changed"
    raise StorageError(msg)


def check_studies(connection: sa.Connection, url: str) -> None:
    """Check that there are studies of a version that can be read.

    Raises:
        StorageError: there are none, or they are of another version.
    """
    known_version(connection, url)
    if sa.inspect(connection).has_table(_STUDIES):
        return
    msg = (
        f"no studies in {shown(url)}; `autotune study` makes them, --storage or AUTOTUNE_STORAGE names another storage"
    )
    raise StorageError(msg)


def write_version(connection: sa.Connection) -> None:
    """Write that a storage is of this version."""
    _SCHEMA.create(connection)
    row = {"id": _ONLY, "version": VERSION, "written_by": f"autotune {__version__}"}
    connection.execute(sa.insert(_SCHEMA).values(row))


def note_version(connection: sa.Connection) -> None:
    """Write that a storage of an older version is of this one now."""
    values = {"version": VERSION, "written_by": f"autotune {__version__}"}
    connection.execute(sa.update(_SCHEMA).where(_SCHEMA.c.id == _ONLY).values(values))


def older_optuna(url: str, revision: str) -> StorageError:
    """Return what to say of tables of an older Optuna than the installed one."""
    there = f"storage {shown(url)} has the tables of an older Optuna (revision {revision})"
    return StorageError(f"{there}: {UPGRADE} brings it up to date")


def newer_optuna(url: str, revision: str) -> StorageError:
    """Return what to say of tables that the installed Optuna does not know."""
    there = f"storage {shown(url)} has the tables of a newer Optuna (revision {revision})"
    known = f"Optuna {installed('optuna')} does not know them"
    return StorageError(f"{there}, {known}: update it, python -m pip install --upgrade optuna; nothing was changed")


def _version_of(connection: sa.Connection) -> int | None:
    there = sa.inspect(connection)
    if there.has_table(_SCHEMA.name):
        return int(connection.execute(sa.select(_SCHEMA.c.version).where(_SCHEMA.c.id == _ONLY)).scalar_one())
    # Before there were versions, autotune wrote tables without one.
    return 0 if any(name.startswith(_OURS) for name in there.get_table_names()) else None
