"""The coordinators of a work queue: coordinators whose leases say who has a run, and until when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.coordination.coordinators import Coordinators
from autotune.storage.leases import Lease


@dataclass(kw_only=True)
class WorkQueueCoordinators(Coordinators):
    """The leases of a study whose runs are handed out: `take_run` stores one, `give_run_back` is told
    that one is not to be made, `left` what the dead left."""

    take_run: Callable[[str, Mapping[str, Any]], bool]
    give_run_back: Callable[[str], None]
    left: Callable[[list[Lease]], None]

    def take(self, place: str, record: Mapping[str, Any]) -> bool:
        """Take a run before it is handed out; False if somebody else has it."""
        return self.take_run(place, record)

    def release(self, place: str) -> None:
        """Give an own run up, handed out or not."""
        self.give_run_back(place)
        super().release(place)

    def inherit(self, place: str | None = None) -> list[Lease]:
        """Take over what the dead left in flight, everywhere or in one place, and return it."""
        found = super().inherit(place)
        self.left(found)
        return found
