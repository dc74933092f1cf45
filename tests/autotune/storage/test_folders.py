"""A storage lies where its path says, whatever the folder is called."""

import pytest
import sqlalchemy

from autotune.storage.connection import prepare_sqlite, tables_engine, write_transaction
from autotune.storage.optuna_storage import connect

NAMES = ["a?b", "a%20b", "a#b {c}\nd", "ä ñ 数&mode=ro"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_in_a_folder_is_read_there(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    url = f"sqlite:///{folder / 'autotune.db'}"
    prepare_sqlite(url)
    with write_transaction(url) as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE kept (value)"))
    storage = connect(url)
    tables = sqlalchemy.inspect(tables_engine(url)).get_table_names()
    storage.engine.dispose()
    assert {"kept", "studies"} <= set(tables)
    assert [path.name for path in tmp_path.iterdir()] == [name]
