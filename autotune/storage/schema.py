"""The version of a storage, in a table of autotune's. Storages of other versions are neither read nor written."""

from importlib.metadata import version as installed

import sqlalchemy as sa

from autotune import __version__
from autotune.errors import StorageError
from autotune.storage.address import hide_password
from autotune.storage.tables import VERSION

_SCHEMA = sa.Table(
    "autotune_schema",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("written_by", sa.String(100), nullable=False),
)
_ONLY = 1
_OURS = "autotune_"
REVISIONS = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""The revision of Optuna's tables, in Alembic's table; it is written when they are complete."""


def known_version(connection: sa.Connection, url: str) -> int | None:
    """Return the version of a storage; None if autotune has written nothing to it.

    Raises:
        StorageError: The storage has another version than this autotune.
    """
    version = _version_of(connection)
    if version is None or version == VERSION:
        return version
    age, todo = ("a newer", "update autotune") if version > VERSION else ("an older", "use another one, --storage NEW")
    msg = (
        f"storage {hide_password(url)} was written by {age} autotune (version {version} of its tables); "
        f"autotune {__version__} reads version {VERSION}: {todo}; nothing was read or changed"
    )
    raise StorageError(msg)


def check_studies(connection: sa.Connection, url: str) -> None:
    """Check that a storage has studies, and a version that can be read.

    Raises:
        StorageError: The storage has no studies, or another version.
    """
    known_version(connection, url)
    if has_studies(connection):
        return
    address = hide_password(url)
    msg = f"no studies in {address}; `autotune study` makes them, --storage or AUTOTUNE_STORAGE names another storage"
    raise StorageError(msg)


def has_studies(connection: sa.Connection) -> bool:
    """Whether a storage has Optuna's tables, all of them."""
    is_there = sa.inspect(connection).has_table(REVISIONS.name)
    return is_there and connection.execute(sa.select(REVISIONS)).first() is not None


def write_version(connection: sa.Connection) -> None:
    """Store the version of this autotune's tables."""
    _SCHEMA.create(connection, checkfirst=True)
    row = {"id": _ONLY, "version": VERSION, "written_by": f"autotune {__version__}"}
    connection.execute(sa.insert(_SCHEMA).values(row))


def other_optuna(url: str, revision: str, *, known: bool) -> StorageError:
    """Return the error for tables of another Optuna; `known` says that the installed one is newer than the tables."""
    age = "an older" if known else "a newer"
    there = f"storage {hide_password(url)} has the tables of {age} Optuna (revision {revision})"
    todo = (
        "copy the storage, and use `optuna storage upgrade`"
        if known
        else "update it, python -m pip install --upgrade optuna"
    )
    return StorageError(f"{there}, which Optuna {installed('optuna')} does not read: {todo}; nothing was changed")


def _version_of(connection: sa.Connection) -> int | None:
    # One look: another process may create all tables between two.
    names = sa.inspect(connection).get_table_names()
    if _SCHEMA.name in names:
        wanted = sa.select(_SCHEMA.c.version).where(_SCHEMA.c.id == _ONLY)
        version: int | None = connection.scalar(wanted)
        return version
    # This autotune never writes tables without a version, so these are older: version 0.
    return 0 if any(name.startswith(_OURS) for name in names) else None
