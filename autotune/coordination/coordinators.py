"""Coordinators: those of a study, living and dead, and the runs that each has in flight.

On a SQLite storage a coordinator is alone, and the leases of others are jobs of earlier sessions. On a
server several work together; a coordinator silent for three minutes is taken for dead, by the server's clock, unless
nobody could be heard meanwhile.
"""

import hashlib
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from autotune.machines.boot import boot_id, since_boot_s
from autotune.records.series import Series
from autotune.storage.leases import Lease, LeaseBook

SILENT_S = 180.0
"""Who has not been heard of for so long is taken for dead."""

# Who has reached the storage at last after so long knows nothing of the others: it was away, or this machine slept.
_DEAF_S = SILENT_S - 60.0
# Whoever has waited for the storage for a quarter of an hour has ended itself.
_GIVEN_UP_S = 900.0 + SILENT_S
_PRESENCE = "tuner:"
_ROLE = "role:"
_LOOK_S = 5.0


def new_coordinator_id() -> str:
    """Return a name for this process as a coordinator: its host, its number there, and a word of its own.

    The word begins with that of all processes whose numbers can be compared with this one's.
    """
    return f"{socket.gethostname()}:{os.getpid()}:{_numbered_with()}{secrets.token_hex(3)}"


def shown(holder: str) -> str:
    """Return a coordinator in words."""
    host, _, rest = holder.rpartition(":")[0].rpartition(":")
    return f"process {rest} on {host}"


def living(book: LeaseBook) -> frozenset[str]:
    """Return the coordinators that work on a study, on a storage where several may."""
    return frozenset(one.holder for one in book.all() if one.place.startswith(_PRESENCE) and not _is_dead(one))


def has_ended(folder: str) -> bool:
    """Whether a folder has the name of a coordinator that was a process of this host, and is no more."""
    host, _, rest = folder.rpartition("-")[0].rpartition("-")
    return _has_ended(f"{host}:{rest}:{folder.rpartition('-')[2]}")


@dataclass
class Coordinators:
    """The leases of a study as `holder` sees them. When alone, every other holder of a lease is dead."""

    book: LeaseBook
    holder: str
    alone: bool
    clock: Callable[[], float] = since_boot_s
    _looked_at: float = field(default=-inf, init=False)
    _beaten_at: float = field(default=-inf, init=False)
    _reached_at: float = field(default=inf, init=False)
    _deaf_until: float = field(default=-inf, init=False)
    _leases: dict[str, Lease] = field(default_factory=dict, init=False)

    @property
    def folder(self) -> str:
        """A name for what this coordinator has for itself."""
        return self.holder.replace(":", "-")

    def join(self) -> None:
        """Tell the others that this coordinator is there, and see which others live."""
        if not self.alone:
            self.book.take(_PRESENCE + self.holder, {})
        self.look()
        others = [one for one in self._leases.values() if one.place.startswith(_PRESENCE) and one.holder != self.holder]
        silent_s = min((one.age_s for one in others if not _has_ended(one.holder)), default=inf)
        if not self.alone and SILENT_S <= silent_s < _GIVEN_UP_S:
            # Nobody is heard: the storage may just be back, and the others about to be.
            self._deaf_until = self.clock() + SILENT_S
        for lease in self._leases.values():
            # Nobody else would: their names never come back. Who is only silent may speak again.
            gone = lease.holder != self.holder and (self.alone or _has_ended(lease.holder))
            if gone and lease.place.startswith((_PRESENCE, _ROLE)):
                self.book.take_over(lease.place, lease.holder, 0.0)
                self.book.release(lease.place)

    def leave(self) -> None:
        """Say that this coordinator goes; the runs that it leaves are anybody's."""
        self.book.release(_PRESENCE + self.holder)

    def look(self, *, when_due: bool = False) -> bool:
        """Say that this coordinator lives, and see what the others do; `when_due` only if the last time is long ago."""
        if when_due and (self.alone or self.clock() - self._looked_at < _LOOK_S):
            return False
        self._looked_at = self.clock()
        self.beat()
        self._leases = {lease.place: lease for lease in self.book.all()}
        self._has_reached_it()
        return True

    def beat(self) -> None:
        """Say now and then that this coordinator lives, when it has something else to do than to look."""
        if not self.alone and self.clock() - self._beaten_at >= _LOOK_S:
            self._beaten_at = self.clock()
            self.book.heartbeat()
            self._has_reached_it()

    def give_all_up(self) -> None:
        """Give up all runs of this coordinator: none of them goes on."""
        for place in self.book.heartbeat():
            self.release(place)

    @property
    def others(self) -> frozenset[str]:
        """The other coordinators that live."""
        leases = () if self.alone else self._leases.values()
        present = [lease for lease in leases if lease.place.startswith(_PRESENCE)]
        deaf = self.clock() < self._deaf_until
        return frozenset({lease.holder for lease in present if not _is_dead(lease, deaf=deaf)} - {self.holder})

    @property
    def busy(self) -> frozenset[int]:
        """The trials with a run in flight at another coordinator."""
        others = self.others
        numbers = (_trial(lease) for lease in self._leases.values() if lease.holder in others)
        return frozenset(number for number in numbers if number is not None)

    @property
    def in_flight(self) -> Mapping[str, Path]:
        """The runs that other coordinators have in flight, by name, with their folders."""
        others, records = self.others, {place: lease for place, lease in self._leases.items() if "job" in lease.record}
        return {
            place: Path(lease.record["job"]["folder"]) for place, lease in records.items() if lease.holder in others
        }

    def take_all(self, records: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
        """Take runs, by their places, before they are launched; return those that nobody else has."""
        return self.book.take_all({place: (record, None) for place, record in records.items()})

    def note_job(self, place: str, job_id: str) -> bool:
        """Note the job of an own run; False if the run is no longer its own."""
        return self.book.note_job(place, job_id)

    def release(self, place: str) -> None:
        """Give an own run up."""
        self.book.release(place)
        self._leases.pop(place, None)

    def inherit(self, place: str | None = None) -> list[Lease]:
        """Take over what the dead left in flight, everywhere or in one `place`, and return it."""
        others = self.others
        left = [
            lease
            for lease in self._leases.values()
            if lease.holder not in {*others, self.holder}
            and not lease.place.startswith((_PRESENCE, _ROLE))
            and place in {None, lease.place}
        ]
        return [lease for lease in left if self.book.take_over(lease.place, lease.holder, self._patience_s(lease))]

    def play(self, role: str) -> str | None:
        """Take a part that one coordinator plays; return the other that plays it, None if this one does."""
        place = _ROLE + role
        if self.book.take(place, {}):
            return None
        self.look()
        lease = self._leases.get(place)
        if lease is None:
            return self.play(role)
        gone = lease.holder not in self.others
        if gone and self.book.take_over(place, lease.holder, self._patience_s(lease)):
            return None
        return shown(lease.holder)

    def rest(self, role: str) -> None:
        """Give a part up."""
        self.release(_ROLE + role)

    def _has_reached_it(self) -> None:
        """Take note that the storage has answered: after a long silence the others have time to be heard again, too."""
        now = self.clock()
        if now - self._reached_at >= _DEAF_S:
            self._deaf_until = now + SILENT_S
        self._reached_at = now

    def _patience_s(self, lease: Lease) -> float:
        return (
            0.0 if self.alone or _has_ended(lease.holder) or _PRESENCE + lease.holder not in self._leases else SILENT_S
        )


def _is_dead(lease: Lease, *, deaf: bool = False) -> bool:
    return (lease.age_s >= SILENT_S and not deaf) or _has_ended(lease.holder)


def _has_ended(holder: str) -> bool:
    """Whether a coordinator was a process of this host, and is no more; of others nobody here can tell."""
    host, _, pid = holder.rpartition(":")[0].rpartition(":")
    same = host == socket.gethostname() and holder.rpartition(":")[2].startswith(_numbered_with())
    if not same or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


@cache
def _numbered_with() -> str:
    """Return a word for the processes that this one sees by their numbers: one boot of one host, one namespace.

    Containers may have the host name of one another, and numbers of their own.
    """
    there = [
        boot_id(),
        str(Path("/proc/self/ns/pid").readlink()),
    ]
    return hashlib.blake2b("".join(there).encode(), digest_size=3).hexdigest()


def _trial(lease: Lease) -> int | None:
    with suppress(KeyError, TypeError):
        purpose = lease.record["purpose"]
        series = Series.parse(purpose["series"])
        return purpose["trial"] if series.is_tuning else None
    return None
