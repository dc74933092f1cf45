"""The lock of a study on a server: a row, since no lock file is visible to all hosts there.

A thread renews the row while the session lives. The holder counts as dead if it was a process of this host that has
ended, or if it has not renewed the row for three minutes by the server's clock. Every transaction of a session that
writes runs also checks the row. So a session that was only cut off, and lost its study to another, stores nothing more.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from autotune.errors import BusyError, StorageError
from autotune.locks import Holder
from autotune.storage.connection import storage_errors
from autotune.storage.leases import LEASES, SESSIONS
from autotune.storage.optuna_storage import open_for_writing
from autotune.storage.run_log import SqlRunLog
from launchers.process_tree import start_time

SILENT_S = 180.0
"""A holder that has not renewed its row for this time, in seconds, counts as dead."""

_BEAT_S = 10.0
# After an outage of the server, a living holder renews its row within this time.
_ANOTHER_BEAT_S = 3 * _BEAT_S


class ServerLock:
    """The row of one study, which a session takes, renews and removes."""

    def __init__(self, url: str, study: str, sleep: Callable[[float], None] = time.sleep) -> None:
        """Open the storage at `url`; create its tables if they are missing.

        Raises:
            StorageError: The storage cannot be used.
        """
        self._url, self._study, self._sleep = url, study, sleep
        with storage_errors(url):
            self._engine = open_for_writing(url, SqlRunLog.create_table).engine
        self._now_s = _now_s(self._engine)
        self._own = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(6)}"
        self._lost = False
        self._over = threading.Event()
        self._beating: threading.Thread | None = None

    def lock(self) -> bool:
        """Take the row, also from a dead holder; return False if another session holds the study."""
        with storage_errors(self._url):
            row = self._row()
            taken = self._insert() if row is None else self._is_dead(row) and self._take_from(row)
        if taken:
            self._beating = threading.Thread(target=self._beat, name=f"session of {self._study}", daemon=True)
            self._beating.start()
        return taken

    def sign(self) -> None:
        """Do nothing: the row always names its holder."""

    def holder(self) -> Holder | None:
        """Return the process that holds the study; None if no session does, or its holder is silent for too long."""
        with storage_errors(self._url):
            row = self._row()
        is_free = row is None or row.age_s >= SILENT_S or self._has_ended(row.record)
        return None if is_free else _holder(row.record)

    def is_held_by(self, pid: int) -> bool:
        """Whether the holder is this process of this host."""
        with storage_errors(self._url):
            row = self._row()
        return row is not None and bool(row.record["pid"] == pid) and _is_seen_here(row.record)

    def describe_unclear(self, holder: Holder | None) -> str:
        """Return who holds the study, and what to do if this host cannot stop that process."""
        who = holder or "another process"
        return f"by {who}, which cannot be seen from here: stop it where it runs, and use the same command again"

    def fence(self, connection: sa.Connection) -> None:
        """Check inside a transaction that this session still holds the study.

        Raises:
            BusyError: Another session has taken the study over.
        """
        if not self._renew(connection):
            self._lost = True
            self.check()

    def renew(self) -> None:
        """Renew the row now, for an action that must not happen after another session has taken the study.

        Raises:
            BusyError: Another session has taken the study over.
        """
        with storage_errors(self._url), self._engine.begin() as connection:
            self.fence(connection)

    def check(self) -> None:
        """Check that this session still held the study at its last renewal.

        Raises:
            BusyError: Another session has taken the study over.
        """
        if not self._lost:
            return
        holder = None
        with suppress(StorageError):
            holder = self.holder()
        msg = (
            f"study {self._study!r} was taken over by {holder or 'another process'}: this session did not reach the "
            f"storage for {SILENT_S / 60:.0f} minutes; everything that it stored is safe, and the same command with "
            "--wait or --take-over continues"
        )
        raise BusyError(msg)

    def close(self) -> None:
        """Release the study, if this session holds it."""
        self._over.set()
        if self._beating is not None:
            self._beating.join()
            with suppress(StorageError), storage_errors(self._url), self._engine.begin() as connection:
                connection.execute(sa.delete(LEASES).where(self._is_ours, LEASES.c.holder == self._own))
        self._engine.dispose()

    @property
    def _is_ours(self) -> sa.ColumnElement[bool]:
        return sa.and_(LEASES.c.study == SESSIONS, LEASES.c.place == self._study)

    def _row(self) -> Any:  # noqa: ANN401  a row of the table
        wanted = sa.select(LEASES, (self._now_s - LEASES.c.heartbeat_s).label("age_s")).where(self._is_ours)
        with self._engine.connect() as connection:
            return connection.execute(wanted).one_or_none()

    def _insert(self) -> bool:
        row = {"study": SESSIONS, "place": self._study, "holder": self._own, "record": _this_process()}
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.insert(LEASES).values(heartbeat_s=self._now_s, **row))
        except IntegrityError:
            return False
        return True

    def _take_from(self, row: Any) -> bool:  # noqa: ANN401
        taking = (
            sa.update(LEASES)
            .where(self._is_ours, LEASES.c.holder == row.holder, LEASES.c.heartbeat_s == row.heartbeat_s)
            .values(holder=self._own, record=_this_process(), heartbeat_s=self._now_s)
        )
        with self._engine.begin() as connection:
            return connection.execute(taking).rowcount == 1

    def _is_dead(self, row: Any) -> bool:  # noqa: ANN401
        if self._has_ended(row.record):
            return True
        if row.age_s < SILENT_S:
            return False
        self._sleep(_ANOTHER_BEAT_S)
        again = self._row()
        return again is None or (again.holder, again.heartbeat_s) == (row.holder, row.heartbeat_s)

    @staticmethod
    def _has_ended(record: dict[str, Any]) -> bool:
        """Whether the holder was a process visible here that has ended."""
        return _is_seen_here(record) and bool(start_time(record["pid"]) != record["started"])

    def _renew(self, connection: sa.Connection) -> bool:
        renewing = sa.update(LEASES).where(self._is_ours, LEASES.c.holder == self._own)
        return connection.execute(renewing.values(heartbeat_s=self._now_s)).rowcount == 1

    def _beat(self) -> None:
        while not self._lost and not self._over.wait(_BEAT_S):
            # If the storage does not answer, the next beat tries again.
            with suppress(StorageError), storage_errors(self._url), self._engine.begin() as connection:
                self._lost = not self._renew(connection)


def _this_process() -> dict[str, Any]:
    seen = {"sees": _process_space(), "started": start_time(os.getpid())}
    return asdict(Holder.this()) | seen


def _holder(record: dict[str, Any]) -> Holder:
    return Holder(record["pid"], record["host"], record["since"], record["work"])


def _is_seen_here(record: dict[str, Any]) -> bool:
    return bool(record["host"] == socket.gethostname() and record["sees"] == _process_space())


def _process_space() -> str:
    """Return the boot and the namespace in which process numbers are valid.

    Host names do not suffice: containers may share one, and number their processes separately.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _now_s(engine: sa.Engine) -> sa.ColumnElement[float]:
    """Return the SQL expression of the server's current time, in seconds since 1970.

    PostgreSQL's `now()` would be the start of the transaction.
    """
    if engine.dialect.name == "postgresql":
        return sa.literal_column("CAST(extract(epoch FROM clock_timestamp()) AS double precision)", sa.Double)
    return sa.func.unix_timestamp(sa.func.now(6), type_=sa.Double)
