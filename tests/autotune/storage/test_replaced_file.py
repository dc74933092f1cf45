"""A SQLite file that is removed, replaced, moved or truncated while a session writes it."""

import errno
import os
import random
import re
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from autotune.errors import StorageError
from autotune.records.labels import Labels
from autotune.storage.sqlite import held_file
from autotune.storage.stored_study import open_stored_studies, open_stored_study
from autotune.storage.studies import StoredStudies
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from tests.support import warm
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

SPACE = small_space()
CLIENT = """
import sys
from autotune.asktell import AskTell, FinishedError, RunReport
from autotune.errors import AutotuneError
from tests.support.asking import external, seconds

try:
    with AskTell.open(external(budget={"trials": 40}), "sqlite:///autotune.db") as study:
        while True:
            asked = study.ask(wait_s=5.0)
            study.tell(asked.lease, RunReport(value=seconds(asked.configuration)))
            print("stored", asked.trial, asked.run, repr(asked.series), flush=True)
except FinishedError:
    print("finished", flush=True)
except AutotuneError as error:
    print(error, flush=True)
    sys.exit(error.exit_code)
"""


@pytest.fixture
def session(tmp_path):
    """An open session with one run in its storage, `autotune.db`."""
    url = f"sqlite:///{tmp_path / 'autotune.db'}"
    lock = StudyLock.acquire(url, "mine")
    store = StudyStore.create(url, "mine", definition(SPACE))
    add_trial(store, SPACE, SPACE.default(), took(2.0))
    yield lock, store
    lock.release()


def copied(path: Path, name: str) -> Path:
    """Back up a storage to a file beside it."""
    target = path.with_name(name)
    with closing(sqlite3.connect(path)) as there, closing(sqlite3.connect(target)) as here:
        there.backup(here)
    return target


def backup(folder: Path) -> Path:
    """Make a sound storage of another study."""
    folder.mkdir()
    url = f"sqlite:///{folder / 'autotune.db'}"
    add_trial(StudyStore.create(url, "other", definition(SPACE)), SPACE, SPACE.default(), took(3.0))
    return copied(folder / "autotune.db", "backup.db")


def dump(path: Path) -> list[str]:
    """Return the whole content of a database; an error for a damaged one."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return list(connection.iterdump())


@pytest.mark.slow
def test_a_backup_that_takes_the_place_of_the_storage_stays_whole(tmp_path, session):
    lock, store = session
    sound = backup(tmp_path / "other")
    before = dump(sound)
    path = tmp_path / "autotune.db"
    lock.check()
    sound.replace(path)
    for use in (lock.check, store.runs, lambda: add_trial(store, SPACE, SPACE.default(), took(2.5))):
        with pytest.raises(StorageError, match=r"was replaced by another file.*is in .*autotune-rescued\.db"):
            use()
    # Another process reads it while the session still has the former file open.
    listed = warm.autotune(tmp_path, "storage", "list")
    assert "other" in listed.stdout, listed.stderr
    assert dump(path) == before
    rescued = open_stored_study(f"sqlite:///{tmp_path / 'autotune-rescued.db'}", "mine")
    assert len(rescued.runs()) == 1


def test_a_storage_that_is_held_without_a_session_is_not_merged_into_its_successor(tmp_path):
    # `autotune serve` keeps the storage open, and writes labels without the lock of a study.
    path = tmp_path / "autotune.db"
    url = f"sqlite:///{path}"
    stored = StoredStudies(url)
    StudyStore.create(url, "mine", definition(SPACE))
    stored.note("mine", Labels(("tag",), "note"))
    sound = backup(tmp_path / "other")
    before = dump(sound)
    sound.replace(path)
    warm.autotune(tmp_path, "storage", "list")
    with pytest.raises(StorageError, match=r"is in .*autotune-rescued\.db"):
        stored.rename("mine", "yours")
    assert dump(path) == before
    rescued = open_stored_study(f"sqlite:///{tmp_path / 'autotune-rescued.db'}", "mine")
    assert Labels.of(rescued.attribute("labels") or {}).note == "note"


def test_no_other_process_writes_to_the_successor_of_a_storage_that_is_held(tmp_path, session):
    path = tmp_path / "autotune.db"
    sound = backup(tmp_path / "other")
    before = dump(sound)
    sound.replace(path)
    labelled = warm.autotune(tmp_path, "storage", "label", "other", "--note", "mine")
    assert labelled.returncode == 5
    assert "was replaced while another process had the former file open" in labelled.stderr
    lock, _ = session
    with pytest.raises(StorageError, match=r"is in .*autotune-rescued\.db"):
        lock.check()
    assert dump(path) == before
    held_file.close_held_files()
    assert warm.autotune(tmp_path, "storage", "label", "other", "--note", "mine").returncode == 0
    assert len(open_stored_study(f"sqlite:///{tmp_path / 'autotune-rescued.db'}", "mine").runs()) == 1


KILLED = """
import os, signal
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space

StudyStore.create("sqlite:///autotune.db", "mine", definition(small_space()))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("is_replaced", [True, False])
def test_the_log_of_a_killed_process_is_merged_into_its_own_file_only(tmp_path, is_replaced):
    path, log = tmp_path / "autotune.db", tmp_path / "autotune.db-wal"
    with (tmp_path / "log").open("wb") as output:
        warm.start(tmp_path, ["-c", KILLED], os.environ, output).wait(60.0)
    assert log.stat().st_size, (tmp_path / "log").read_text()
    if is_replaced:
        sound = backup(tmp_path / "other")
        before = dump(sound)
        sound.replace(path)
    names = [study.name for study in open_stored_studies(f"sqlite:///{path}")]
    assert names == ["other" if is_replaced else "mine"]
    labelled = warm.autotune(tmp_path, "storage", "label", names[0], "--tag", "word")
    assert labelled.returncode == 0, labelled.stderr
    assert ("are not in this one, but in" in labelled.stderr) == is_replaced
    assert [one.name for one in tmp_path.glob("autotune.db-*")] == ["autotune.db-wal-of-former-file"] * is_replaced
    if is_replaced:
        # Besides the label, nothing has changed.
        assert set(before) - set(dump(path)) == set()


def test_a_pipe_in_the_place_of_the_note_stops_no_command(tmp_path):
    os.mkfifo(tmp_path / "autotune.db-held")
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "mine", definition(SPACE))
    assert [study.name for study in open_stored_studies(store.url)] == ["mine"]


def test_a_removed_storage_is_copied_to_a_new_file_once(tmp_path, session):
    lock, _ = session
    for _ in range(2):
        (tmp_path / "autotune.db").unlink(missing_ok=True)
        with pytest.raises(StorageError, match=r"was removed.*autotune-rescued\.db"):
            lock.check()
    assert not (tmp_path / "autotune.db").exists()
    assert [path.name for path in tmp_path.glob("*rescued*.db")] == ["autotune-rescued.db"]


def test_a_moved_storage_is_complete_where_it_is_now(tmp_path, session):
    lock, _ = session
    moved = tmp_path / "moved.db"
    (tmp_path / "autotune.db").rename(moved)
    with pytest.raises(StorageError, match=r"was removed.*it is complete in .*moved\.db"):
        lock.check()
    assert len(open_stored_study(f"sqlite:///{moved}", "mine").runs()) == 1


def test_a_moved_storage_is_copied_while_a_reader_keeps_its_log(tmp_path, session, monkeypatch):
    monkeypatch.setattr(held_file, "_BUSY_TIMEOUT_S", 0.0)
    lock, _ = session
    path = tmp_path / "autotune.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM trials").fetchone()
        path.rename(tmp_path / "moved.db")
        with pytest.raises(StorageError, match=r"everything that was stored is in .*autotune-rescued\.db"):
            lock.check()
    assert len(open_stored_study(f"sqlite:///{tmp_path / 'autotune-rescued.db'}", "mine").runs()) == 1


@pytest.mark.parametrize("name", [".nfs0000000000a1b2c300000001", ".fuse_hidden0000000100000001"])
def test_a_file_that_the_kernel_will_remove_is_copied(tmp_path, session, name):
    lock, _ = session
    (tmp_path / "autotune.db").rename(tmp_path / name)
    with pytest.raises(StorageError, match=r"was removed.*everything that was stored is in .*autotune-rescued\.db"):
        lock.check()


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_truncated_storage_is_noticed_at_the_next_beat(tmp_path, session, share):
    lock, store = session
    path = tmp_path / "autotune.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    lock.check()
    os.truncate(path, int(share * path.stat().st_size))
    for use in (lock.check, store.runs):
        with pytest.raises(StorageError, match="was truncated by another program"):
            use()


def test_a_smaller_file_may_be_whole(tmp_path, session):
    lock, store = session
    for _ in range(20):
        add_trial(store, SPACE, SPACE.default(), took(2.0))
    with closing(sqlite3.connect(tmp_path / "autotune.db")) as connection:
        connection.execute(
            "CREATE TABLE much AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
            "LIMIT 2000) SELECT randomblob(100) FROM n"
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        lock.check()
        size = (tmp_path / "autotune.db").stat().st_size
        connection.execute("DROP TABLE much")
        connection.commit()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (tmp_path / "autotune.db").stat().st_size < size
    lock.check()
    assert len(store.runs()) == 21


def test_a_smaller_file_that_is_locked_is_looked_at_later(tmp_path, session, monkeypatch):
    class Locked:
        def execute(self, statement):
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error

    lock, _ = session
    path = tmp_path / "autotune.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    held = held_file.hold_file(path, 0.0)
    held.check()
    os.truncate(path, path.stat().st_size // 2)
    with monkeypatch.context() as patch:
        patch.setattr(held, "connection", Locked())
        lock.check()
    with pytest.raises(StorageError, match="was truncated by another program"):
        lock.check()


def test_a_file_system_that_does_not_answer_is_an_error_of_the_storage(tmp_path, session, monkeypatch):
    lock, store = session

    def fail(*_, **__):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    for use in (lock.check, store.runs):
        with monkeypatch.context() as patch:
            patch.setattr(held_file.Path, "stat", fail)
            with pytest.raises(StorageError, match="cannot be found now: Stale"):
                use()


def test_a_storage_in_a_folder_that_is_missing_is_an_error_of_the_storage(tmp_path):
    with pytest.raises(StorageError, match="No such file or directory"):
        StudyStore.create(f"sqlite:///{tmp_path / 'missing' / 'autotune.db'}", "mine", definition(SPACE))


def test_a_later_session_of_the_process_writes_to_no_other_file(tmp_path):
    # `autotune serve` opens the studies that it asks for again and again.
    path = tmp_path / "autotune.db"
    url = f"sqlite:///{path}"
    sound = backup(tmp_path / "other")
    before = dump(sound)

    def session():
        with StudyLock.hold(url, "mine") as lock:
            store = StudyStore.create(url, "mine", definition(SPACE))
            add_trial(store, SPACE, SPACE.default(), took(2.0))
            yield store
            lock.check()

    started = session()
    next(started)
    sound.replace(path)
    with pytest.raises(StorageError, match="was replaced"):
        next(started)
    with pytest.raises(StorageError, match="was replaced"):
        next(session())
    assert dump(path) == before
    (tmp_path / "autotune-rescued.db").replace(path)
    assert len(next(session()).runs()) == 2


def test_after_its_session_a_storage_may_be_replaced(tmp_path):
    url = f"sqlite:///{tmp_path / 'autotune.db'}"
    with StudyLock.hold(url, "mine"):
        store = StudyStore.create(url, "mine", definition(SPACE))
    (tmp_path / "autotune.db").unlink()
    with StudyLock.hold(url, "again") as lock:
        again = StudyStore.create(store.url, "again", definition(SPACE))
        add_trial(again, SPACE, SPACE.default(), took(2.0))
        lock.check()
    assert [study.name for study in open_stored_studies(store.url)] == ["again"]
    assert not list(tmp_path.glob("*rescued*"))


def test_what_is_kept_of_a_storage_after_its_session_writes_to_no_other_file(tmp_path):
    path = tmp_path / "autotune.db"
    url = f"sqlite:///{path}"
    kept = StudyStore.create(url, "mine", definition(SPACE))
    sound = backup(tmp_path / "other")
    before = dump(sound)
    sound.replace(path)
    assert [study.name for study in open_stored_studies(url)] == ["other"]
    for _ in range(2):
        with pytest.raises(StorageError, match="was removed or replaced after this process had opened it"):
            add_trial(kept, SPACE, SPACE.default(), took(2.0))
    assert dump(path) == before
    assert not list(tmp_path.glob("*rescued*"))
    assert [study.name for study in open_stored_studies(url)] == ["other"]


def _replace(source: Path):
    return lambda path: Path(shutil.copy(source, path.with_name("new.db"))).replace(path)


def _remove_all(path):
    for one in path.parent.glob("autotune.db*"):
        one.unlink(missing_ok=True)


def _restore(path):
    path.rename(path.with_name("away.db"))
    time.sleep(0.1)
    path.with_name("away.db").rename(path)


def _empty(path):
    path.with_name("new.db").touch()
    path.with_name("new.db").replace(path)


def _another_program(path):
    with closing(sqlite3.connect(path.with_name("new.db"))) as connection:
        connection.execute("CREATE TABLE accounts (name TEXT)")
    path.with_name("new.db").replace(path)


EVENTS = {
    "removed": lambda path: path.unlink(),
    "removed with its log": _remove_all,
    "replaced by an empty file": _empty,
    "replaced by another program's": _another_program,
    "replaced by a backup": None,
    "replaced by an older backup of itself": None,
    "truncated to nothing": lambda path: os.truncate(path, 0),
    "truncated to a half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "moved": lambda path: path.rename(path.with_name("moved.db")),
    "restored": _restore,
}
"""What happens to the file of a running session, by name."""


@pytest.mark.full
@pytest.mark.parametrize("kind", EVENTS)
def test_nothing_is_lost_or_harmed_whenever_the_file_changes(tmp_path, kind):
    sound = backup(tmp_path / "other")
    for seed in range(5):
        harm = happen(tmp_path / str(seed), kind, sound, random.Random(f"{kind} {seed}"))
        assert not harm, f"seed {seed}: {harm}"


def happen(folder: Path, kind: str, sound: Path, chance: random.Random) -> list[str]:
    """Let the event happen to the storage of a client that asks and tells; return the harm."""
    folder.mkdir()
    path, log = folder / "autotune.db", folder / "log"
    with log.open("wb") as output:
        client = warm.start(folder, ["-c", CLIENT], os.environ, output)
    at = chance.randrange(1, 20)  # of about 30 runs
    older, harm = sound, []
    while client.poll() is None and log.read_text().count("stored") < at:
        time.sleep(0.002)
        if older is sound and "older" in kind and log.read_text().count("stored") >= at // 2 and path.exists():
            older = copied(path, "older.db")
    time.sleep(chance.uniform(0.0, 0.1))
    backed = older if "older" in kind else sound
    before = dump(backed)
    (EVENTS[kind] or _replace(backed))(path)
    if chance.random() < 0.5:
        warm.autotune(folder, "storage", "list")
    code = client.wait(120.0)
    said = log.read_text()
    acknowledged = [line for line in said.splitlines() if line.startswith("stored")]
    if "backup" in kind and dump(path) != before:
        harm.append("the backup has changed")
    if code == 0 and (kind == "restored" or "truncated" in kind):
        kept = path  # nothing was missing when the session looked: all truncated pages were still in the log
    elif code != 5:
        return [*harm, f"exit code {code}: {said}"]
    else:
        place = re.search(r"is in (\S+rescued\S*\.db)|complete in (\S+\.db)", said)
        if "truncated" in kind:
            return harm if re.search("truncated|malformed|damaged", said) else [*harm, said]
        if place is None:
            return [*harm, said]
        kept = Path(place[1] or place[2]) if kind != "restored" else path
    dump(kept)
    stored = sum(run.is_kept for run in open_stored_study(f"sqlite:///{kept}", "mine").runs())
    return harm if stored >= len(acknowledged) else [*harm, f"{stored} of {len(acknowledged)} are stored: {said}"]
