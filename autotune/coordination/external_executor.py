"""The executor of runs that other programs make, as a session needs it."""

from collections.abc import Iterable
from typing import Protocol

from autotune.execution.executor import Executor
from autotune.records.study import Run
from autotune.statistics.standings import Standings
from autotune.storage.leases import LeaseBook


class ExternalExecutor(Executor, Protocol):
    """An executor that hands runs to other programs, which request and report them."""

    def leases(self, book: LeaseBook) -> LeaseBook:
        """Return the leases of the study, which also name the program that has a run."""

    def recall(self, runs: Iterable[Run], standings: Standings) -> None:
        """Load what was reported before this session, and the standings of the trials."""

    def waiting(self) -> int:
        """Return how many requests for a run are unanswered."""
