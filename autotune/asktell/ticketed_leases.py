"""The leases of a work queue: they say which client has a run, and until when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from autotune.storage.leases import Lease, LeaseBook, Taking


@dataclass
class TicketedLeases:
    """The leases in `book` of a study whose runs are handed out.

    `take_runs` stores the leases of runs, with the tickets of the clients that get them; `left` gets the leases that an
    earlier session left.
    """

    book: LeaseBook
    take_runs: Callable[[Mapping[str, Taking]], None]
    left: Callable[[list[Lease]], None]

    def take(self, runs: Mapping[str, Taking]) -> None:
        """Store the leases of runs before they are handed out."""
        self.take_runs(runs)

    def note_job(self, place: str, job_id: str) -> None:
        """Note the job of a run."""
        self.book.note_job(place, job_id)

    def release(self, place: str) -> None:
        """Give a run up, handed out or not."""
        self.book.release(place)

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""
        leases = self.book.all()
        self.left(leases)
        return leases
