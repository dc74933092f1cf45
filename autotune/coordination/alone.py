"""Alone: what changes a study as a whole waits until nobody works on it."""

from autotune.coordination.coordinators import living, shown
from autotune.errors import BusyError
from autotune.storage.address import sqlite_path
from autotune.storage.study_store import StudyStore


def check_alone(store: StudyStore, what: str) -> None:
    """Check that no coordinator works on a study. Where it is in a file, its lock says so already.

    Raises:
        BusyError: somebody does, and `what` is to be done must wait.
    """
    others = frozenset[str]() if sqlite_path(store.url) is not None else living(store.leases(""))
    if others:
        who = ", ".join(sorted(map(shown, others)))
        msg = f"study {store.name!r} is being worked on by {who}: {what} only when nobody does; stop it first"
        raise BusyError(msg)
