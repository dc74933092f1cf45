"""Leased runs: runs that clients make. A run's ticket, with its client and times, is stored in the run's lease."""

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
    """A run for the client to make and report on.

    Attributes:
        lease: The secret name of the lease, for the report.
        trial: The number of the trial; -1 for a run of no trial.
        run: The number of the run within the trial, from 0, or the round of a comparison.
        configuration: The configuration to run.
        cap: The client may stop the run once the target metric is sure to be worse than this, and report it as a bound.
        expires_at: The end of the lease, in seconds since 1970.
        lease_s: The duration of the lease, in seconds.
        series: The purpose of the run: "" for tuning, else a comparison of the best trials with the default.
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
    """The standing of a trial after a report on one of its runs.

    Attributes:
        trial: The number of the trial.
        state: Its state: `complete`, `capped`, `failed`, or `running` if the run must be made again.
        best: Whether it is the best trial so far.
    """

    trial: int
    state: str
    best: bool


@dataclass(frozen=True)
class Ticket:
    """The client that has a run, and the times of its lease, in seconds since 1970.

    Attributes:
        lease: The secret name of the lease.
        who: The client's name.
        asked_at: The start of the lease.
        expires_at: The end of the lease.
        lapsed: The number of earlier clients whose leases of the run ran out.
        boot: The id of the machine's boot.
        booted_at: The time of that boot by the wall clock of the session that made the ticket.
        key: The client's key of its request, which finds the run again if the answer was lost.
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
    """Seconds since 1970 that changes of the wall clock do not affect, so that they neither end nor extend a lease.

    Attributes:
        boot: The id of the machine's boot.
        booted_at: The time of the boot, by the wall clock when this clock was made.
        elapsed_s: Returns the seconds since the boot.
    """

    boot: str
    booted_at: float
    elapsed_s: Callable[[], float] = since_boot_s

    @classmethod
    def of_this_boot(cls) -> Self:
        """Return a clock that agrees with the wall clock now."""
        return cls(boot_id(), time.time() - since_boot_s())

    def __call__(self) -> float:
        """Return the seconds since 1970."""
        return self.booted_at + self.elapsed_s()

    def ticket(self, who: str, lease_s: float, lapsed: int, key: str = "") -> Ticket:
        """Return a new ticket that expires in `lease_s` seconds."""
        return replace(Ticket.new(who, self(), lease_s, lapsed, key), boot=self.boot, booted_at=self.booted_at)

    def read(self, ticket: Ticket | None) -> Ticket | None:
        """Return a stored ticket with its times on this clock; unchanged if it is from another boot."""
        if ticket is None or ticket.boot != self.boot:
            return ticket
        by_s = self.booted_at - ticket.booted_at
        asked_at, expires_at = ticket.asked_at + by_s, ticket.expires_at + by_s
        return replace(ticket, asked_at=asked_at, expires_at=expires_at, booted_at=self.booted_at)
