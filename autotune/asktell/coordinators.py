"""The coordinators of a work queue: their leases say which client has a run, and until when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.coordination.coordinators import Coordinators
from autotune.storage.leases import Lease


@dataclass(kw_only=True)
class WorkQueueCoordinators(Coordinators):
    """The leases of a study whose runs are handed out.

    `take_runs` stores the leases of runs, `give_run_back` gets a run that is not to be made, and `left` gets the leases
    of dead coordinators.
    """

    take_runs: Callable[[Mapping[str, Mapping[str, Any]]], frozenset[str]]
    give_run_back: Callable[[str], None]
    left: Callable[[list[Lease]], None]

    def take_all(self, records: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
        """Take runs before they are handed out; return those that no other coordinator has."""
        return self.take_runs(records)

    def release(self, place: str) -> None:
        """Give up a run of this coordinator, handed out or not."""
        self.give_run_back(place)
        super().release(place)

    def inherit(self, place: str | None = None) -> list[Lease]:
        """Take over the leases of dead coordinators, all or those of one place, and return them."""
        leases = super().inherit(place)
        self.left(leases)
        return leases
