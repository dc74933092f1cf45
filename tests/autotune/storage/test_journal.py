"""SQLite on file systems that several hosts see."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autotune.errors import StorageError
from autotune.storage.connection import prepare_sqlite
from autotune.storage.sqlite import journal
from autotune.storage.sqlite.journal import shared_file_system

LINE = "30 1 0:31 / {point} rw,relatime shared:1 - {kind} source rw{options}\n"


def _mounts(folder: Path, *lines: tuple[str, str, str]) -> Path:
    table = folder / "mountinfo"
    described = (LINE.format(point=point, kind=kind, options=options) for point, kind, options in lines)
    table.write_text("".join([LINE.format(point="/", kind="ext4", options=""), *described]))
    return table


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "fuse.sshfs", "fuse", "9p", "virtiofs"]
)
def test_network_file_systems_are_known(tmp_path: Path, kind: str) -> None:
    mounts = _mounts(tmp_path, ("/far", kind, ""))
    assert shared_file_system(Path("/far/away/autotune.db"), mounts) == kind
    assert shared_file_system(Path("/farther/autotune.db"), mounts) is None


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "zfs", "fuseblk"])
def test_others_are_of_this_host(tmp_path: Path, kind: str) -> None:
    assert shared_file_system(Path("/near/autotune.db"), _mounts(tmp_path, ("/near", kind, ""))) is None


def test_the_last_mount_on_a_point_counts_and_the_deepest_one(tmp_path: Path) -> None:
    mounts = _mounts(
        tmp_path, ("/a", "nfs4", ""), ("/a/local\\040disk", "xfs", ""), ("/b", "nfs4", ""), ("/b", "xfs", "")
    )
    assert shared_file_system(Path("/a/autotune.db"), mounts) == "nfs4"
    assert shared_file_system(Path("/a/local disk/autotune.db"), mounts) is None
    assert shared_file_system(Path("/b/autotune.db"), mounts) is None


def test_an_overlay_is_what_its_changes_lie_on(tmp_path: Path) -> None:
    far = _mounts(
        tmp_path, ("/far", "nfs4", ""), ("/image", "overlay", ",lowerdir=/low,upperdir=/far/up,workdir=/far/w")
    )
    assert shared_file_system(Path("/image/autotune.db"), far) == "nfs4"
    near = _mounts(tmp_path, ("/far", "nfs4", ""), ("/image", "overlay", ",lowerdir=/far/low,upperdir=/up,workdir=/w"))
    assert shared_file_system(Path("/image/autotune.db"), near) is None
    circle = _mounts(tmp_path, ("/image", "overlay", ",lowerdir=/low,upperdir=/image/up,workdir=/w"))
    assert shared_file_system(Path("/image/autotune.db"), circle) is None


def _mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def test_a_log_becomes_a_journal_on_a_network_file_system_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "autotune.db"
    with closing(sqlite3.connect(path)) as before, before:
        before.execute("PRAGMA journal_mode=WAL")
        before.execute("CREATE TABLE kept (value)")
        before.execute("INSERT INTO kept VALUES (1)")
    monkeypatch.setattr(journal, "shared_file_system", lambda path: "nfs4")
    prepare_sqlite(f"sqlite:///{path}")
    said = capsys.readouterr().err
    assert "is on nfs4" in said
    assert "PostgreSQL" in said
    assert _mode(path) == "delete"
    with closing(sqlite3.connect(path)) as after:
        assert after.execute("SELECT value FROM kept").fetchall() == [(1,)]
    prepare_sqlite(f"sqlite:///{path}")
    assert not capsys.readouterr().err


def test_a_log_that_others_use_on_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "autotune.db"
    monkeypatch.setattr(journal, "shared_file_system", lambda path: "lustre")
    monkeypatch.setattr("autotune.storage.connection._BUSY_TIMEOUT_S", 0)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("CREATE TABLE used (value)")
        with pytest.raises(StorageError, match=r"is on lustre, .* end what uses it"):
            prepare_sqlite(f"sqlite:///{path}")
    prepare_sqlite(f"sqlite:///{path}")
    assert _mode(path) == "delete"


def test_a_file_that_another_process_reads_gets_its_log_when_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "autotune.db"
    with closing(sqlite3.connect(path)) as reader, closing(sqlite3.connect(path, timeout=0)) as writer:
        reader.executescript("CREATE TABLE studies (name); INSERT INTO studies VALUES ('a'), ('b')")
        reading = reader.execute("SELECT name FROM studies")
        assert reading.fetchone() == ("a",)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            writer.execute("PRAGMA journal_mode=wal")
        monkeypatch.setattr(journal.time, "sleep", lambda _: reading.close())
        journal.set_journal(writer, path)
        assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
