"""The run scheduler seam: which run comes next in a session."""

from collections.abc import Collection
from typing import Protocol

from autotune.execution.capping import Cap
from autotune.records.study import Purpose, TrialRecord
from autotune.scheduling.repeats import Step
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation


class RunScheduler(Protocol):
    """Decides which run comes next, from the standings of the trials and from those that are `busy` with a run.

    Attributes:
        block: The number of the present block of time.
        together: Whether the runs of the default that come before all others may be in flight together.
    """

    block: int
    together: bool

    def next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the next run; None if a new trial may start, or the runs in flight have to end first."""

    def next_when_idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return a run for an idle worker when no new trial can start."""

    def rest_of_default(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the run of the default that the comparison of a complete trial waits for, even after a time-out."""

    def is_ready(self, standings: Standings) -> bool:
        """Whether the default configuration has run as often as is needed before others."""

    def deserving(self, standings: Standings) -> list[TrialRecord]:
        """Return the settled trials that deserve another run."""

    def start(self, step: Step, standings: Standings) -> None:
        """Note the start of a run."""

    def finish(self, purpose: Purpose, standings: Standings) -> None:
        """Note the end of a run."""

    def leave_alone(self, trial: TrialRecord) -> None:
        """Run a trial no more in this session, since the machine keeps failing it."""

    def cap(self, trial: TrialRecord, standings: Standings) -> Cap | None:
        """Return the cap at which the next run of a trial has lost; None if it runs to its end."""

    def is_settled(self, trial: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        """Whether no further run of a trial can change a decision."""

    def observation(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return what the sampler learns from a trial."""
