"""Asked: a run that somebody is to make; its ticket is what storage keeps of that, in the lease of the run."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from autotune.coordination.lease_record import LeaseRecord
from autotune.records.series import RunId
from spaces import Configuration

_TICKET = "ticket"
_TOKEN_BYTES = 18


@dataclass(frozen=True)
class LeasedRun:
    """A run to be made by who asked for it, and to be told before `expires_at`, in seconds since 1970.

    `run` is its number within the `trial`, from 0; `series` says what it is for: "" is tuning, others are the
    comparisons of the best with the default. With a `cap` it may be stopped as soon as the target metric is sure to be
    worse than that: then the cap is told as a bound.
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
    """What is known of a trial once a run of it was told.

    `state` is that of the trial: `complete`, `capped`, `failed`, or `running` where the run has to be made again.
    `best` tells whether it is the best so far.
    """

    trial: int
    state: str
    best: bool


@dataclass(frozen=True)
class Ticket:
    """Who has a run, from when until when, in seconds since 1970.

    `lapsed` is how many had it before and did not come back in time.
    """

    lease: str
    who: str
    asked_at: float
    expires_at: float
    lapsed: int = 0

    @classmethod
    def new(cls, who: str, now: float, lease_s: float, lapsed: int) -> Self:
        """Return a ticket with a lease that nobody can guess."""
        return cls(secrets.token_urlsafe(_TOKEN_BYTES), who, now, now + lease_s, lapsed)

    def on(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return what storage keeps of a run in flight with this ticket."""
        return {**record, "job": {**record["job"], _TICKET: asdict(self)}}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self | None:
        """Return the ticket of a run in flight; None if nobody has asked for it."""
        found = record["job"].get(_TICKET)
        return cls(**found) if found else None

    def asked(self, record: Mapping[str, Any], lease_s: float) -> LeasedRun:
        """Return what who asked gets."""
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
