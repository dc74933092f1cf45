"""The names of the studies in a storage, for completion by a shell: read quickly, and without Optuna."""

from autotune.storage.address import is_postgresql, sqlite_path
from autotune.storage.tables import SqliteTables

_PATIENCE_S = 2
# Tables of Optuna's. Another program's study has no definition.
_NAMES = (
    "SELECT study_name FROM studies JOIN study_user_attributes ON studies.study_id = study_user_attributes.study_id "
    "WHERE study_user_attributes.key = 'definition' ORDER BY study_name"
)


def stored_names(url: str) -> list[str]:
    """Return the names of a storage's studies.

    Raises:
        Exception: the storage cannot be read at once; a server's driver raises errors of its own.
    """
    path = sqlite_path(url)
    if path is not None:
        return [str(name) for (name,) in SqliteTables(url, path, _PATIENCE_S).rows(_NAMES)]
    import sqlalchemy as sa  # noqa: PLC0415  for servers only

    arguments = {"connect_timeout": _PATIENCE_S} if is_postgresql(url) else {}
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=arguments)
    with engine.connect() as connection:
        return [str(name) for name in connection.scalars(sa.text(_NAMES))]
