"""The clock of leases: seconds since 1970, of which no change of the wall clock ends a lease or prolongs it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from autotune.asktell.lease import Ticket
from autotune.machines.boot import boot_id, since_boot_s


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
