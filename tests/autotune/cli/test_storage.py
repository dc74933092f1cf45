"""`autotune storage show`, what it refuses, and Optuna's own versions."""

import json
import re

import pytest

from autotune.errors import StorageError
from autotune.storage import schema
from autotune.storage.contents import read_contents
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.study_store import StudyStore, study_names
from tests.autotune.storage.test_measurement_store import THREE
from tests.autotune.storage.test_versions import PAPER
from tests.support import storages
from tests.support.command_line import run_main
from tests.support.fakes import small_space, took
from tests.support.stored import add_trial

OLDER, NOW, NEWER = "v3.0.0.d", "v3.2.0.a", "v99.0.0.a"
SPACE = small_space()


def test_storage_tells_what_is_there(tmp_path, sqlite, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = StudyStore.create(sqlite, "paper", PAPER)
    add_trial(store, SPACE, SPACE.default(), took(2.0))
    told = run_main("storage", "show").stdout
    assert "kind: SQLite file" in told
    assert f"version: {schema.VERSION} (this autotune writes {schema.VERSION}), Optuna's tables: {NOW}" in told
    assert "trials: 1, runs: 1, imported measurements: 0" in told


def test_storage_as_json(address):
    storages.foreign(address)
    StudyStore.create(address, "paper", PAPER)
    MeasurementStore.create(address).add(THREE)
    found = json.loads(run_main("storage", "show", "--json", "--storage", address).stdout)
    secret = re.search(r":([^:/@]+)@", address)
    assert secret is None or secret[1] not in found["storage"]
    assert found["size_bytes"] > 10_000
    known = {key: found[key] for key in ("version", "studies", "others", "trials", "runs", "imported")}
    assert known == {
        "version": schema.VERSION,
        "studies": 1,
        "others": 1,
        "trials": 1,
        "runs": 0,
        "imported": 3,
    }


def test_a_storage_that_is_not_there_is_not_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = run_main("storage", "show")
    assert ended.returncode == 5
    assert "no storage at autotune.db" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_studies_gets_no_tables_by_being_read(postgresql):
    with pytest.raises(StorageError, match="no studies in"):
        study_names(postgresql)


@pytest.mark.parametrize("words", [["storage", "list"], ["storage", "show"], ["storage", "import", "--list"]])
def test_a_newer_storage_ends_each_command_with_a_line(tmp_path, sqlite, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    StudyStore.create(sqlite, "paper", PAPER)
    storages.set_version(sqlite, schema.VERSION + 1)
    ended = run_main(*words)
    assert (ended.returncode, ended.stdout) == (5, "")
    (line,) = ended.stderr.splitlines()
    assert "written by a newer autotune" in line


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        (OLDER, r"older Optuna \(revision v3\.0\.0\.d\).*optuna storage upgrade"),
        (NEWER, r"newer Optuna \(revision v99\.0\.0\.a\).*pip install"),
    ],
)
def test_the_tables_of_another_optuna_are_refused_in_words(address, revision, said):
    StudyStore.create(address, "paper", PAPER)
    storages.set_revision(address, revision)
    before = storages.rows(address)
    secret = re.search(r":([^:/@]+)@", address)
    for use in (
        lambda: StudyStore.read(address, "paper"),
        lambda: StudyStore.create(address, "other", PAPER),
        lambda: MeasurementStore.create(address),
        lambda: study_names(address),
        lambda: read_contents(address),
    ):
        with pytest.raises(StorageError, match=said) as caught:
            use()
        assert "\n" not in str(caught.value)
        assert secret is None or secret[1] not in str(caught.value)
    assert storages.rows(address) == before
