"""Exclusive use of a study while it is deleted: it may also be running from a command line."""

from collections.abc import Iterator
from contextlib import contextmanager

from autotune.coordination.coordinators import Coordinators, new_coordinator_id, shown
from autotune.errors import BusyError
from autotune.storage.address import lock_path, sqlite_path
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore


@contextmanager
def held(url: str, name: str) -> Iterator[None]:
    """Hold a study in the storage at `url`; where coordinators may share a study, check that it has none.

    Raises:
        BusyError: another process works on it; the message names the process.
        StorageError: there is no such study, or the storage cannot be used.
    """
    if sqlite_path(url) is not None:
        lock = StudyLock.acquire(lock_path(url, name), name)
        try:
            yield
        finally:
            lock.release()
        return
    holder = new_coordinator_id()
    coordinators = Coordinators(StudyStore.read(url, name, read_only=False).leases(holder), holder, alone=False)
    coordinators.look()
    if coordinators.others:
        holders = ", ".join(sorted(map(shown, coordinators.others)))
        raise BusyError(f"study {name!r} is being worked on by {holders}: stop that first")
    yield
