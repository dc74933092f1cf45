"""Ctrl-C at any instant ends a command with its own exit code, whatever others make of it on its way up."""

import sys
from itertools import pairwise
from types import ModuleType

import pytest
import sqlalchemy
import typer
from optuna.storages import RDBStorage
from sqlalchemy import event
from sqlalchemy.orm import Session

from autotune.cli import main
from autotune.cli.common import open_display
from autotune.errors import AutotuneError, BusyError, ExitCode, StorageError, is_interrupt
from autotune.storage.connection import storage_errors


@pytest.fixture
def stored(sqlite, tmp_path):
    RDBStorage(sqlite)
    return tmp_path / "autotune.db"


@pytest.fixture
def interrupted(monkeypatch):
    """Let Ctrl-C come, from when it is told to, while SQLAlchemy is in the middle of something that it cannot undo."""

    def interrupt(*_):
        raise KeyboardInterrupt

    def refuse(_):
        msg = "Method 'close()' can't be called here; method 'connection()' is already in progress"
        raise sqlalchemy.exc.InvalidRequestError(msg)

    def begin():
        event.listen(Session, "after_begin", interrupt)
        monkeypatch.setattr(Session, "close", refuse)

    yield begin
    event.remove(Session, "after_begin", interrupt)


def test_the_session_that_sqlalchemy_cannot_close_then_is_no_fault_of_the_storage(stored, interrupted, capsys):
    storage = RDBStorage(f"sqlite:///{stored}")
    interrupted()
    with pytest.raises(typer.Exit) as ended, open_display("stopped, go on so"), storage_errors(f"sqlite:///{stored}"):
        storage.get_all_studies()
    assert ended.value.exit_code == ExitCode.INTERRUPTED == 130
    assert capsys.readouterr().err == "stopped, go on so\n"


def test_every_command_ends_so(stored, interrupted, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["autotune", "storage", "list", "--storage", str(stored)])
    interrupted()
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "cannot be used" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((KeyboardInterrupt(),), True),
        ((KeyboardInterrupt(), sqlalchemy.exc.InvalidRequestError(), StorageError("gone")), True),
        ((SystemExit(1),), True),  # Ray, that is asked to end while it starts
        ((BusyError("held"),), False),
        ((OSError(), StorageError("gone")), False),
    ],
)
def test_what_is_an_interrupt(errors, expected):
    for before, after in pairwise(errors):
        after.__context__ = before
    assert is_interrupt(errors[-1]) is expected


def test_a_mistake_is_none(capsys):
    with pytest.raises(AutotuneError, match="busy"), open_display():
        raise BusyError("busy")
    assert capsys.readouterr().err == ""


def test_an_import_that_is_interrupted_ends_so(monkeypatch):
    class Imported(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "autotune.cli.app", Imported("autotune.cli.app"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
