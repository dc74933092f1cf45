"""The run scheduler seam: which run comes next in a session."""

from collections.abc import Collection
from typing import ClassVar, Protocol

from autotune.execution.capping import Cap
from autotune.records.study import Purpose, TrialRecord
from autotune.scheduling.repeats import Step
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation


class RunScheduler(Protocol):
    """Decides on the runs of a session, from how the trials stand and which are `busy`: a run of them is in flight.

    `apart` tells whether an observation of a trial depends on its own runs alone; `block` is the number of the present
    block of time.
    """

    apart: ClassVar[bool]
    block: int

    def next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the next run; None when a new trial may start, or the running ones have to end first."""

    def idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return a run for a worker that has nothing else to do, since no new trial can start."""

    def ready(self, standings: Standings) -> bool:
        """Whether the default configuration has run as often as is needed before others."""

    def deserving(self, standings: Standings) -> list[TrialRecord]:
        """Return the settled trials that deserve another run."""

    def starts(self, step: Step, standings: Standings) -> None:
        """Take note of a run that starts."""

    def ended(self, purpose: Purpose, standings: Standings) -> None:
        """Take note of a run that ended."""

    def leave_alone(self, trial: TrialRecord) -> None:
        """Run a trial no more in this session: the machine fails it."""

    def cap(self, trial: TrialRecord, standings: Standings) -> Cap | None:
        """Return from where on the next run of a trial has lost; None if it is run to its end."""

    def is_settled(self, trial: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        """Whether no further run could change what a trial is worth."""

    def observation(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return what a trial tells the sampler."""
