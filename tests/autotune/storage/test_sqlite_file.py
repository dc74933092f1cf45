"""A storage's file with SQLite's log: complete when its writers have ended, and readable in read-only folders."""

import gc
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from autotune.errors import StorageError
from autotune.locks import LockFile
from autotune.storage.contents import read_contents
from autotune.storage.sqlite import file
from autotune.storage.stored_study import open_stored_studies, open_stored_study
from autotune.storage.study_store import StudyStore, study_names
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
WRITER = """
import builtins, signal, sys
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial
store = StudyStore.create(sys.argv[1], "paper", definition(small_space()))
builtins.kept = store, store.runs, (lambda: store)
add_trial(store, small_space(), small_space().default(), took(2.0))
if sys.argv[2] == "interrupted":
    signal.raise_signal(signal.SIGINT)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a storage whose newest transaction is in the log only, as after a `kill -9`."""
    there = tmp_path / "theirs"
    there.mkdir()
    store = StudyStore.create(f"sqlite:///{there / 'autotune.db'}", "paper", definition(SPACE))
    add_trial(store, SPACE, SPACE.default(), took(2.0))
    with sqlite3.connect(there / "autotune.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    add_trial(store, SPACE, SPACE.default(), took(2.5))
    copy = tmp_path / "ours"
    copy.mkdir()
    for name in ("autotune.db", "autotune.db-wal"):
        shutil.copy(there / name, copy / name)
    return copy


@contextmanager
def read_only(folder):
    """Make a folder one that cannot be written: by its mode, and for root by a mount."""
    if os.geteuid():
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    commands = (["mount", "--bind", folder, folder], ["mount", "-o", "remount,ro,bind", folder])
    if any(subprocess.run(command, check=False, capture_output=True).returncode for command in commands):
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        # A reader that is not collected yet may keep a file open.
        subprocess.run(["umount", "--lazy", folder], check=True)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("end", ["finished", "interrupted"])
def test_what_a_process_wrote_is_in_the_file_when_it_has_ended(tmp_path, end):
    path = tmp_path / "autotune.db"
    url = f"sqlite:///{path}"
    store = StudyStore.create(url, "before", definition(SPACE))
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        # A read-only process that closes the file last cannot merge the log.
        assert reader.execute("SELECT count(*) FROM trials").fetchone() == (0,)
        del store
        subprocess.run(
            [sys.executable, "-c", WRITER, url, end],
            check=end == "finished",
            stderr=subprocess.DEVNULL,
        )
        shutil.copy(path, tmp_path / "copy.db")
    assert len(open_stored_study(f"sqlite:///{tmp_path / 'copy.db'}", "paper").runs()) == 1


def test_a_storage_that_nobody_uses_any_more_is_closed(tmp_path):
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "mine", definition(SPACE))
    add_trial(store, SPACE, SPACE.default(), took(2.0))
    assert open_below(tmp_path)
    del store
    gc.collect()
    assert open_below(tmp_path) == []


def open_below(folder):
    found = map(os.path.realpath, Path("/proc/self/fd").iterdir())
    return [path for path in found if path.startswith(str(folder))]


def test_who_reads_leaves_nothing_beside_the_file(folder):
    url = f"sqlite:///{folder / 'autotune.db'}"
    assert len(open_stored_study(url, "paper").trials()) == 2
    assert files(folder) == ["autotune.db"]
    assert len(StudyStore.read(url, "paper").trials()) == 2
    assert read_contents(url).trials == 2
    assert study_names(url) == ["paper"]
    assert files(folder) == ["autotune.db"]


def test_what_cannot_be_written_can_be_read(folder):
    url = f"sqlite:///{folder / 'autotune.db'}"
    open_stored_studies(url)  # the last one who closes a file takes the log away
    (folder / "autotune.db-shm").touch()  # an index alone says nothing
    with read_only(folder):
        (study,) = open_stored_studies(url)
        assert len(study.trials()) == 2
        runs = StudyStore.read(url, "paper").runs()
        assert [list(run.outcome.metrics.values()) for run in runs] == [[2.0], [2.5]]
        assert read_contents(url).runs == 2
        with pytest.raises(
            StorageError, match=r"cannot be written: the folder .*ours is read-only.*autotune storage merge"
        ):
            StudyStore.create(url, "paper", definition(SPACE))
    assert files(folder) == ["autotune.db", "autotune.db-shm"]


def test_a_log_that_cannot_be_read_is_an_error_that_says_what_to_do(folder, monkeypatch):
    monkeypatch.setattr(file.time, "sleep", lambda _: None)
    url = f"sqlite:///{folder / 'autotune.db'}"
    with read_only(folder):
        for read in (open_stored_studies, read_contents, lambda url: StudyStore.read(url, "paper")):
            with pytest.raises(StorageError, match=r"newest results in autotune\.db-wal.*copy both files"):
                read(url)
    assert files(folder) == ["autotune.db", "autotune.db-wal"]


def test_who_reads_while_the_last_writer_removes_its_log_waits_for_it(folder, monkeypatch):
    # That writer has removed the index, and still holds the log.
    log = LockFile.open(folder / "autotune.db-wal", create=False)
    assert log.lock(shared=True)
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        log.close()

    monkeypatch.setattr(file.time, "sleep", sleep)
    assert len(open_stored_study(f"sqlite:///{folder / 'autotune.db'}", "paper").trials()) == 2
    assert slept


def test_who_opens_a_log_that_its_last_writer_takes_away_asks_again(folder, monkeypatch):
    connect = file._connect
    url = f"sqlite:///{folder / 'autotune.db'}"

    def connect_late(address, timeout_s):
        monkeypatch.setattr(file, "_connect", connect)
        connect(address, timeout_s).close()  # the last connection merges the log, and removes it
        assert files(folder) == ["autotune.db"]
        missing = sqlite3.OperationalError("unable to open database file")
        missing.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise missing

    monkeypatch.setattr(file, "_connect", connect_late)
    assert len(open_stored_study(url, "paper").trials()) == 2


def test_a_limit_of_the_size_of_files_is_named(sqlite):
    store = StudyStore.create(sqlite, "paper", definition(SPACE))
    stored = []

    def store_runs():
        while len(stored) < 1000:
            stored.append(add_trial(store, SPACE, SPACE.default(), took(2.0)))

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200 * 1024, before[1]))
    try:
        with pytest.raises(StorageError, match=r"larger than 200 KiB \(ulimit -f\): raise that limit"):
            store_runs()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(open_stored_study(sqlite, "paper").runs()) >= len(stored)
