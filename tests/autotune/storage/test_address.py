from pathlib import Path

import pytest

from autotune.storage.address import hide_password, sqlite_path, state_folder, storage_url


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("autotune.db", "sqlite:///autotune.db"),
        ("/data/all.db", "sqlite:////data/all.db"),
        ("sqlite:///x.db", "sqlite:///x.db"),
        ("postgresql://me@host/db", "postgresql+psycopg://me@host/db"),
        ("postgres://me@host/db", "postgresql+psycopg://me@host/db"),
        ("postgresql+psycopg2://me@host/db", "postgresql+psycopg2://me@host/db"),
    ],
)
def test_a_file_name_is_an_sqlite_file(typed, url):
    assert storage_url(typed) == url


def test_state_lies_beside_the_file():
    assert state_folder(storage_url("/data/all.db")) == Path("/data")
    assert state_folder("postgresql://me@host/db") == Path()
    assert sqlite_path("postgresql://me@host/db") is None


def test_passwords_are_not_shown():
    assert "secret" not in hide_password("postgresql://me:secret@host/db")
    assert hide_password("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"
    assert hide_password("postgresql://me@host/db") == "postgresql://me@host/db"
    assert (
        hide_password("postgresql://host/db?user=me&password=secret&x=1")
        == "postgresql://host/db?user=me&password=***&x=1"
    )
    assert hide_password("sqlite:///x.db") == "sqlite:///x.db"
