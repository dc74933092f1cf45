"""A storage with one damaged value: an error in words, never a traceback, and the other studies are still read."""

import json
import random
import shutil
import sqlite3
from contextlib import closing, suppress

import pytest

from autotune.errors import AutotuneError, StorageError
from autotune.records.labels import Labels
from autotune.results.importance import importance_of
from autotune.results.known_configurations import known_configurations
from autotune.results.summary import summarise
from autotune.storage.connection import prepare_sqlite, storage_errors
from autotune.storage.contents import read_contents
from autotune.storage.damage import content_errors
from autotune.storage.merging.merge import merge
from autotune.storage.optuna_storage import open_for_reading
from autotune.storage.stored_study import open_stored_studies, open_stored_study
from autotune.storage.studies import StoredStudies
from autotune.storage.study_store import StudyStore
from tests.support import warm
from tests.support.command_line import run_main
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
VALUES = ["", "[", "null", '{"a": 1}', -1, 2**62, 1e308, b"\xff\xfe\x00", None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A sound storage with two studies."""
    path = tmp_path_factory.mktemp("sound") / "sound.db"
    url = f"sqlite:///{path}"
    for name in ("mine", "other"):
        store = StudyStore.create(url, name, definition(SPACE))
        for number in range(3):
            add_trial(store, SPACE, SPACE.default() | {"np": number + 1}, took(2.0 + number))
    StoredStudies(url).note("mine", Labels(("tag",), "note"))
    copy = path.with_name("copy.db")
    with closing(sqlite3.connect(path)) as there, closing(sqlite3.connect(copy)) as here:
        there.backup(here)
    return copy


def columns(path):
    """Return the columns of all tables that have rows."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            (table, column[1])
            for table in tables
            if connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for column in connection.execute(f"PRAGMA table_info({table})")
        ]


def broken(value, chance):
    """Return JSON of which one value was replaced, or any text with one character replaced."""
    if isinstance(value, str) and value and chance.random() < 0.7:
        with suppress(ValueError):
            return json.dumps(_replaced(json.loads(value), chance))
        at = chance.randrange(len(value))
        return f"{value[:at]}?{value[at + 1 :]}"
    return chance.choice(VALUES)


def _replaced(document, chance):
    if document and isinstance(document, dict | list) and chance.random() < 0.8:
        key = chance.choice(sorted(document)) if isinstance(document, dict) else chance.randrange(len(document))
        document[key] = _replaced(document[key], chance)
        return document
    return chance.choice([None, "?", -1, 10**400, float("nan"), [], {}, [[]]])


def change(path, table, column, changed):
    """Change one value in a column, to what `changed` makes of it."""
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.IntegrityError, OverflowError):
        row, value = connection.execute(f"SELECT rowid, {column} FROM {table} ORDER BY rowid LIMIT 1").fetchone()
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed(value), row))
        connection.commit()


def read_everything(url):
    """Read a storage in each way that commands do."""
    ways = [
        lambda: [summarise(study).to_dict() for study in open_stored_studies(url)],
        lambda: importance_of(summarise(open_stored_study(url, "mine"))),
        lambda: [trial.state for trial in StudyStore.read(url, "mine").trials()],
        lambda: known_configurations(open_stored_studies(url)),
        lambda: read_contents(url),
        lambda: StoredStudies(url, read_only=True).versions(),
        lambda: merge([url], f"{url}.target", lambda _: None, dry_run=True),
    ]
    for way in ways:
        with suppress(AutotuneError):
            way()


@pytest.mark.slow
def test_no_value_of_a_storage_gives_a_traceback(tmp_path, sound):
    path = tmp_path / "autotune.db"
    for seed, (table, column) in enumerate(columns(sound)):
        chance = random.Random(seed)
        shutil.copy(sound, path)
        change(path, table, column, lambda value, chance=chance: broken(value, chance))
        read_everything(f"sqlite:///{path}")


def test_a_warning_about_damage_has_no_control_characters(tmp_path, sound):
    path = tmp_path / "autotune.db"
    shutil.copy(sound, path)
    change(path, "autotune_runs", "record", lambda text: json.dumps(json.loads(text) | {"\x1b[31m\u202e": 1}))
    known = warm.autotune(tmp_path, "studies", "--known")
    assert (known.returncode, "left out: study 'mine'" in known.stderr) == (0, True)
    assert "\x1b" not in known.stderr
    assert "\u202e" not in known.stderr


@pytest.mark.parametrize(
    "damage",
    [
        ("autotune_runs", "series", "seleot"),
        ("autotune_runs", "record", '{"outcome": '),
        ("autotune_runs", "record", "[]"),
        ("autotune_runs", "record", "[" * 100_000),
        ("study_user_attributes", "value_json", "{"),
        ("trial_params", "distribution_json", "0"),
        ("trial_params", "param_value", None),
    ],
)
def test_one_damaged_study_is_listed_with_the_others(tmp_path, sound, monkeypatch, damage):
    monkeypatch.chdir(tmp_path)
    shutil.copy(sound, "autotune.db")
    table, column, value = damage
    change("autotune.db", table, column, lambda _: value)
    listed = run_main("storage", "list")
    assert listed.returncode == 0, listed.stderr
    assert "damaged" in listed.stdout
    assert "other" in listed.stdout
    assert "study 'mine' in sqlite:///autotune.db is damaged" in listed.stderr
    assert "other" in run_main("studies", "--known").stdout
    best = run_main("best", "mine")
    assert (best.returncode, best.stdout) == (5, "")
    assert "restore the storage from a backup" in best.stderr


def test_the_traceback_of_damage_is_logged_for_the_mistakes_of_autotune_itself(caplog):
    caplog.set_level("DEBUG", logger="autotune")
    with pytest.raises(StorageError, match="study 'mine' is damaged"), content_errors("study 'mine'"):
        raise TypeError("a mistake")
    assert "test_damage.py" in caplog.text


def _read_as_holder(url):
    held = prepare_sqlite(url)
    held.connection.execute("SELECT study_id FROM studies").fetchone()


@pytest.mark.parametrize(
    ("table", "columns", "use"),
    [
        ("studies", "study_name, user_version AS study_id", open_stored_studies),
        ("studies", "study_name, user_version AS study_id", _read_as_holder),
        ("version_info", "schema_version, library_version, user_version AS version_info_id", open_for_reading),
    ],
)
def test_a_strange_storage_runs_no_function_of_its_own(tmp_path, sound, table, columns, use):
    path = tmp_path / "autotune.db"
    shutil.copy(sound, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO hidden")
        connection.execute(f"CREATE VIEW {table} AS SELECT {columns} FROM hidden, pragma_user_version")
        connection.commit()
    url = f"sqlite:///{path}"
    with pytest.raises(StorageError, match="unsafe use of"), storage_errors(url):
        use(url)
