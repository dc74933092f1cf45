"""`autotune storage`, what it refuses, and Optuna's own versions."""

import json
import re
import shutil
import subprocess
import sys
from collections import namedtuple

import pytest

from autotune.errors import BusyError, StorageError
from autotune.storage import schema
from autotune.storage.address import sqlite_path
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.study_store import StudyStore, study_names
from autotune.storage.versions.upgrade import upgrade
from tests.autotune.storage.test_measurement_store import THREE
from tests.autotune.storage.test_upgrade import PAPER
from tests.support import storages
from tests.support.fakes import small_space, took
from tests.support.stored import add_trial
from tests.support.warm import autotune

OLDER, NOW, NEWER = "v3.0.0.d", "v3.2.0.a", "v99.0.0.a"
SPACE = small_space()


def older(address):
    """Write a study, and let Optuna's tables be of an older revision."""
    store = StudyStore.create(address, "paper", PAPER)
    add_trial(store, SPACE, SPACE.default(), took(2.0))
    storages.set_revision(address, OLDER)


def test_storage_tells_what_is_there_and_upgrade_what_it_did(tmp_path, sqlite):
    older(sqlite)
    told = autotune(tmp_path, "storage").stdout
    assert "kind: SQLite file" in told
    assert f"version: {schema.VERSION} (this autotune writes {schema.VERSION}), Optuna's tables: {OLDER}" in told
    assert "older: Optuna's tables: `autotune storage upgrade` brings that up to date" in told
    done = autotune(tmp_path, "storage", "upgrade").stdout
    assert done.splitlines()[0].endswith(f"; autotune.db.{OLDER}.bak is a copy of what it was")
    assert "up to date" in autotune(tmp_path, "storage", "upgrade").stdout
    told = autotune(tmp_path, "storage").stdout
    assert "trials: 1, runs: 1, imported measurements: 0" in told
    assert "older" not in told
    listed = autotune(tmp_path, "list", "--json")
    assert [one["study"] for one in json.loads(listed.stdout)] == ["paper"]


def test_storage_as_json(tmp_path, address):
    storages.foreign(address)
    StudyStore.create(address, "paper", PAPER)
    MeasurementStore.create(address).add(THREE)
    found = json.loads(autotune(tmp_path, "storage", "--json", "--storage", address).stdout)
    secret = re.search(r":([^:/@]+)@", address)
    assert secret is None or secret[1] not in found["storage"]
    assert found["size_bytes"] > 10_000
    known = {key: found[key] for key in ("version", "studies", "others", "trials", "runs", "imported", "outdated")}
    assert known == {
        "version": schema.VERSION,
        "studies": 1,
        "others": 1,
        "trials": 1,
        "runs": 0,
        "imported": 3,
        "outdated": [],
    }


@pytest.mark.parametrize("words", [["storage"], ["storage", "upgrade"]])
def test_a_storage_that_is_not_there_is_not_made(tmp_path, words):
    ended = autotune(tmp_path, *words)
    assert ended.returncode == 5
    assert "no storage at autotune.db" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_upgrade_of_nothing_makes_no_tables(postgresql):
    with pytest.raises(StorageError, match="nothing to bring up to date"):
        upgrade(postgresql)
    with pytest.raises(StorageError, match="no studies in"):
        study_names(postgresql)


@pytest.mark.parametrize("words", [["list"], ["storage"], ["storage", "upgrade"], ["import", "--list"]])
def test_a_newer_storage_ends_each_command_with_a_line(tmp_path, sqlite, words):
    StudyStore.create(sqlite, "paper", PAPER)
    storages.set_version(sqlite, schema.VERSION + 1)
    ended = autotune(tmp_path, *words)
    assert (ended.returncode, ended.stdout) == (5, "")
    (line,) = ended.stderr.splitlines()
    assert "written by a newer autotune" in line


def test_an_older_optunas_tables_are_brought_up_to_date(address, tmp_path):
    older(address)
    before = storages.rows(address)
    with pytest.raises(StorageError, match=r"older Optuna \(revision v3.0.0.d\): `autotune storage upgrade`") as caught:
        StudyStore.create(address, "paper", PAPER)
    assert "\n" not in str(caught.value)
    done = upgrade(address)
    assert (done.versions, done.revisions) == (None, (OLDER, NOW))
    assert len(StudyStore.read(address, "paper").runs()) == 1
    if sqlite_path(address) is not None:
        assert storages.copies(tmp_path) == [f"autotune.db.{OLDER}.bak"]
        assert storages.rows(f"sqlite:///{done.copy}") == before
    assert upgrade(address) is None


def test_an_older_optunas_tables_are_not_read(address):
    StudyStore.create(address, "paper", PAPER)
    storages.set_revision(address, OLDER)
    with pytest.raises(StorageError, match=r"older Optuna \(revision v3\.0\.0\.d\): `autotune storage upgrade`"):
        study_names(address)


def test_a_newer_optunas_tables_are_refused_in_words(address):
    StudyStore.create(address, "paper", PAPER)
    storages.set_revision(address, NEWER)
    before = storages.rows(address)
    secret = re.search(r":([^:/@]+)@", address)
    for use in (
        lambda: StudyStore.read(address, "paper"),
        lambda: StudyStore.create(address, "other", PAPER),
        lambda: MeasurementStore.create(address),
        lambda: upgrade(address),
    ):
        with pytest.raises(StorageError, match=r"newer Optuna \(revision v99\.0\.0\.a\).*pip install") as caught:
            use()
        assert "\n" not in str(caught.value)
        assert secret is None or secret[1] not in str(caught.value)
    assert storages.rows(address) == before


def test_without_room_for_the_copy_nothing_is_changed(sqlite, tmp_path, monkeypatch):
    older(sqlite)
    before = storages.rows(sqlite)
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
        with pytest.raises(StorageError, match=r"no space: \d+ MB are needed, 0 MB are free; nothing was changed"):
            upgrade(sqlite)
    assert storages.rows(sqlite) == before
    assert list(tmp_path.glob("*.bak*")) == []
    assert upgrade(sqlite).revisions == (OLDER, NOW)


# What a full disk does in the middle of the copy: no file may become longer than a part of it.
FULL = """
import resource, sys
from autotune.errors import BusyError, StorageError
from autotune.storage.versions.upgrade import upgrade
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
try:
    upgrade(sys.argv[1])
except StorageError as error:
    print(error)
"""


def test_a_copy_that_breaks_off_leaves_nothing_behind(sqlite, tmp_path):
    older(sqlite)
    assert sqlite_path(sqlite).stat().st_size > 70_000
    before = storages.rows(sqlite)
    ended = subprocess.run([sys.executable, "-c", FULL, sqlite], check=False, capture_output=True, text=True)
    assert "copied before they are brought up to date; that failed" in ended.stdout, ended.stderr
    assert storages.rows(sqlite) == before
    assert list(tmp_path.glob("*.bak*")) == []
    assert upgrade(sqlite).revisions == (OLDER, NOW)


def test_a_copy_never_takes_the_place_of_another(sqlite, tmp_path):
    older(sqlite)
    (tmp_path / f"autotune.db.{OLDER}.bak").write_bytes(b"precious")
    assert upgrade(sqlite).copy.name == f"autotune.db.{OLDER}.1.bak"
    assert (tmp_path / f"autotune.db.{OLDER}.bak").read_bytes() == b"precious"


def test_a_file_that_is_worked_on_is_left_alone(sqlite, tmp_path):
    older(sqlite)
    before = storages.rows(sqlite)
    lock = tmp_path / "autotune.db.paper.lock"
    hold = "import pathlib, sys; from autotune.storage.study_lock import StudyLock; "
    hold += "lock = StudyLock.acquire(pathlib.Path(sys.argv[1]), 'paper'); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=f"held by process {holder.pid} on"):
            upgrade(sqlite)
        assert storages.rows(sqlite) == before
        assert storages.copies(tmp_path) == []
        holder.stdin.close()
    assert upgrade(sqlite).revisions == (OLDER, NOW)
