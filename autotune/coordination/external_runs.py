"""Runs that other programs make: what a session needs of the executor that hands them out."""

from collections.abc import Iterable
from typing import Protocol

from autotune.execution.executor import Executor
from autotune.records.study import Run
from autotune.statistics.standings import Standings
from autotune.storage.leases import LeaseBook


class ExternalExecutor(Executor, Protocol):
    """An executor whose runs other programs ask for, make, and report."""

    def leases(self, book: LeaseBook) -> LeaseBook:
        """Return the leases of the study, which also say which program has a run."""

    def recall(self, runs: Iterable[Run], standings: Standings) -> None:
        """Take note of what was reported before this session, and how the trials stand by it."""

    def waiting(self) -> int:
        """Return how many requests for a run are unanswered."""
