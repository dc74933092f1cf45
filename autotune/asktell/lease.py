"""Leased runs: runs that clients make. Storage keeps the ticket of such a run in the lease of the run."""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from autotune.coordination.lease_record import LeaseRecord
from autotune.machines.boot import boot_id, since_boot_s
from autotune.records.series import RunId
from spaces import Configuration

_TICKET = "ticket"
_TOKEN_BYTES = 18


@dataclass(frozen=True)
class LeasedRun:
    """A run for the client to make, and to report on before `expires_at`, in seconds since 1970.

    `run` is its number within the `trial`, from 0; `series` says what it is for: "" is tuning, others are the
    comparisons of the best with the default. With a `cap` it may be stopped as soon as the target metric is sure to be
    worse than the cap; the client then reports the cap as a bound.
    """

    lease: str
    trial: int
    run: int
    configuration: Configuration
    cap: float | None
    expires_at: float
    lease_s: float
    series: str = ""


@dataclass(frozen=True)
class Reply:
    """How a trial stands after a report on a run of it.

    `state` is that of the trial: `complete`, `capped`, `failed`, or `running` where the run has to be made again.
    `best` tells whether it is the best so far.
    """

    trial: int
    state: str
    best: bool


@dataclass(frozen=True)
class Ticket:
    """The client that has a run, and from when until when, in seconds since 1970.

    `lapsed` counts the earlier clients whose leases of the run ran out. The times count from `booted_at`, when the
    machine of the session had its `boot`, by the wall clock of then. The client's own `key` for its request, unless
    empty, finds the run again whose answer was lost.
    """

    lease: str
    who: str
    asked_at: float
    expires_at: float
    lapsed: int = 0
    boot: str = ""
    booted_at: float = 0.0
    key: str = ""

    @classmethod
    def new(cls, who: str, now: float, lease_s: float, lapsed: int, key: str = "") -> Self:
        """Return a ticket whose lease cannot be guessed."""
        return cls(secrets.token_urlsafe(_TOKEN_BYTES), who, now, now + lease_s, lapsed, key=key)

    def on(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of a run in flight with this ticket in it."""
        return {**record, "job": {**record["job"], _TICKET: asdict(self)}}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self | None:
        """Return the ticket of a run in flight; None if no client has asked for it."""
        ticket = record["job"].get(_TICKET)
        return cls(**ticket) if ticket else None

    def leased_run(self, record: Mapping[str, Any], lease_s: float) -> LeasedRun:
        """Return the run as its client gets it."""
        run = LeaseRecord.from_dict(record)
        purpose = run.purpose
        return LeasedRun(
            lease=self.lease,
            trial=-1 if purpose.trial is None else purpose.trial,
            run=RunId.parse(run.name).number if purpose.series.is_tuning else purpose.round,
            configuration=purpose.configuration,
            cap=run.cap.bound if run.cap else None,
            expires_at=self.expires_at,
            lease_s=lease_s,
            series=str(purpose.series),
        )


@dataclass(frozen=True)
class LeaseClock:
    """Counts from `booted_at`, when the boot was by the wall clock as this clock was made; the rest is `elapsed_s`."""

    boot: str
    booted_at: float
    elapsed_s: Callable[[], float] = since_boot_s

    @classmethod
    def of_this_boot(cls) -> Self:
        """Return a clock that shows now what the wall clock shows."""
        return cls(boot_id(), time.time() - since_boot_s())

    def __call__(self) -> float:
        """Return the seconds since 1970."""
        return self.booted_at + self.elapsed_s()

    def ticket(self, who: str, lease_s: float, lapsed: int, key: str = "") -> Ticket:
        """Return a ticket that is good for so long from now on."""
        return replace(Ticket.new(who, self(), lease_s, lapsed, key), boot=self.boot, booted_at=self.booted_at)

    def read(self, ticket: Ticket | None) -> Ticket | None:
        """Return a stored ticket by this clock: that of the same boot, whatever the wall clock was then."""
        if ticket is None or ticket.boot != self.boot:
            return ticket
        by_s = self.booted_at - ticket.booted_at
        asked_at, expires_at = ticket.asked_at + by_s, ticket.expires_at + by_s
        return replace(ticket, asked_at=asked_at, expires_at=expires_at, booted_at=self.booted_at)
