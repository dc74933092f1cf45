"""`autotune storage show`."""

import json
import re

import pytest

from autotune.storage import schema
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.study_store import StudyStore
from tests.autotune.storage.test_measurement_store import THREE
from tests.autotune.storage.test_versions import PAPER
from tests.support import storages
from tests.support.command_line import run_main
from tests.support.fakes import small_space, took
from tests.support.quick_study import quick_sections
from tests.support.stored import add_trial
from tests.support.warm import autotune

OPTUNA = "v3.2.0.a"
SPACE = small_space()


def test_storage_tells_what_is_there(tmp_path, sqlite, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = StudyStore.create(sqlite, "paper", PAPER)
    add_trial(store, SPACE, SPACE.default(), took(2.0))
    told = run_main("storage", "show").stdout
    assert "kind: SQLite file" in told
    assert f"version: {schema.VERSION} (this autotune writes {schema.VERSION}), Optuna's tables: {OPTUNA}" in told
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


STUDY = r"""
objective = "command"
[options]
argv = ["sh", "-c", "echo took {x}"]
metrics = [{ name = "took_s", unit = "s", pattern = 'took (\S+)' }]
""" + quick_sections(trials=2, high=4)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["study ./mine.toml", "studies", "sweep ./mine.toml --over x --repeats 1"])
def test_a_storage_that_was_never_completed_is_a_new_one(tmp_path, words):
    # A process was killed, or the disk was full, when it had just made the file.
    (tmp_path / "autotune.db").touch()
    (tmp_path / "mine.toml").write_text(STUDY)
    ended = autotune(tmp_path, *words.split())
    assert ended.returncode == 0, ended.stderr
