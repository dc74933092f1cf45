"""The coordinators of a work queue: their leases say which client has a run, and until when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.coordination.coordinators import Coordinators
from autotune.storage.leases import Lease


@dataclass(kw_only=True)
class WorkQueueCoordinators(Coordinators):
    """The leases of a study whose runs are handed out.

    `take_run` stores the lease of a run, `give_run_back` gets a run that is not to be made, and `left` gets the leases
    of dead coordinators.
    """

    take_run: Callable[[str, Mapping[str, Any]], bool]
    give_run_back: Callable[[str], None]
    left: Callable[[list[Lease]], None]

    def take(self, place: str, record: Mapping[str, Any]) -> bool:
        """Take a run before it is handed out; False if another coordinator has it."""
        return self.take_run(place, record)

    def release(self, place: str) -> None:
        """Give up a run of this coordinator, handed out or not."""
        self.give_run_back(place)
        super().release(place)

    def inherit(self, place: str | None = None) -> list[Lease]:
        """Take over the leases of dead coordinators, all or those of one place, and return them."""
        leases = super().inherit(place)
        self.left(leases)
        return leases
