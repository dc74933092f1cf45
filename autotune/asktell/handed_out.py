"""Runs that were handed out: what they are, and who has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.asktell.lease import LeasedRun, Ticket
from autotune.asktell.requests import AskRequest
from autotune.execution.task import PREEMPTED, Task
from autotune.records.outcome import Outcome
from objectives.base import FailureKind

MOST_LAPSED = 5
"""After this many lapsed leases in a row, the configuration of a run is taken to crash its clients."""


@dataclass
class HandedOut:
    """A run that was handed out, or waits for a client: then it has no `ticket`."""

    task: Task
    record: Mapping[str, Any]
    ticket: Ticket | None = None


def lease_of(record: Mapping[str, Any]) -> str | None:
    """Return the lease of a run in flight; None if no client has asked for it."""
    ticket = Ticket.of(record)
    return ticket.lease if ticket is not None else None


def leased_by(request: AskRequest, record: Mapping[str, Any], ticket: Ticket | None, now: float) -> LeasedRun | None:
    """Return a run that is out if it was given for the same request, whose answer its client has not heard."""
    if ticket is None or ticket.expires_at <= now or not request.repeats(ticket.who, ticket.key):
        return None
    return ticket.asked(record, ticket.expires_at - now)


def lapsed(ticket: Ticket) -> Outcome:
    """Return what comes of a run whose lease has run out: another may have it, unless too many could not end it."""
    count = ticket.lapsed + 1
    if count >= MOST_LAPSED:
        words = f"the leases of {count} who had it ran out, one after the other"
        return Outcome(failure=FailureKind.TIMED_OUT, code="lapsed", message=words)
    words = f"the lease of {ticket.who or 'who had it'} ran out"
    return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code=PREEMPTED, message=words)
