"""The names of the studies in a storage, for completion by a shell: read quickly, and without Optuna."""

import sqlite3
from contextlib import closing
from urllib.parse import quote

from autotune.storage.address import is_postgresql, sqlite_path

_PATIENCE_S = 2
# Tables of Optuna's. Another program's study has no definition.
_NAMES = (
    "SELECT study_name FROM studies JOIN study_user_attributes ON studies.study_id = study_user_attributes.study_id "
    "WHERE study_user_attributes.key = 'definition' ORDER BY study_name"
)


def stored_names(url: str) -> list[str]:
    """Return the names of a storage's studies.

    Raises:
        Exception: whatever the driver raises where the storage cannot be read at once.
    """
    path = sqlite_path(url)
    if path is not None:
        # SQLAlchemy takes longer to import than all of this.
        address = f"file:{quote(str(path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE_S)) as connection:
            return [str(name) for (name,) in connection.execute(_NAMES)]
    import sqlalchemy as sa  # noqa: PLC0415  for servers only

    arguments = {"connect_timeout": _PATIENCE_S} if is_postgresql(url) else {}
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=arguments)
    with engine.connect() as connection_to_server:
        return [str(name) for name in connection_to_server.scalars(sa.text(_NAMES))]
