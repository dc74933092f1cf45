"""The run gate decides whether a run may start now."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from autotune.coordination.deadline import Deadline, expected_s
from autotune.coordination.walltime import WallTimes
from autotune.execution.capping import apply_cap
from autotune.execution.signals import Pause
from autotune.execution.task import Task
from autotune.records.outcome import Outcome


@dataclass
class RunGate:
    """Admits runs until a pause is requested, and only those that end before the deadline.

    Attributes:
        width: How many compared runs may be in flight together; more than one only if each has its own nodes.
        deadline: When the study must have stopped.
        pause: Whether the user asked to pause.
        slowest_s: Seconds of the slowest complete run so far.
        jobs_stay: Whether runs are jobs of a batch system, which outlive the session.
        check_held: Raises an error if another session has taken the study over.
        clock: The time of the runs, in seconds; a simulation has its own.
        walltimes: The wall times of the jobs.
    """

    width: int = 1
    deadline: Deadline | None = None
    pause: Pause = field(default_factory=Pause)
    slowest_s: float | None = None
    jobs_stay: bool = False
    check_held: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    walltimes: WallTimes = field(default_factory=WallTimes)
    _refused: bool = field(default=False, init=False)

    def admits(self, task: Task) -> bool:
        """Whether a run may start now: no pause is requested, and the run is expected to end in time."""
        if self.pause.asked:
            return False
        if self.deadline is not None:
            limit_s = apply_cap(task.job, task.cap).time_limit_s
            self._refused = not self.deadline.allows(expected_s(limit_s, self.slowest_s))
            return not self._refused
        return True

    def at_most(self, wanted: int) -> int:
        """Return how many runs may be in flight: `wanted`, or none after a pause."""
        return 0 if self.pause.asked else wanted

    def learn(self, outcome: Outcome, cores: int) -> None:
        """Learn how long a run took."""
        if outcome.complete:
            self.slowest_s = max(self.slowest_s or 0.0, outcome.usage.elapsed_s)
            self.walltimes.learn(outcome.usage.elapsed_s, cores)

    def check(self, *, idle: bool = False) -> None:
        """Check that the session may continue; `idle` says that no run is in flight.

        A pause waits for the runs in flight, but not for jobs of a batch system, which may take days: the next session
        collects those.

        Raises:
            UnfinishedError: The time is over, or an idle session cannot start another run in time.
            PausedError: A pause was requested, and no run needs to be waited for.
            BusyError: Another session has taken the study over.
        """
        self.check_held()
        if self.deadline is not None and ((idle and self._refused) or not self.deadline.allows(None)):
            raise self.deadline.over()
        if self.pause.asked and (idle or self.jobs_stay):
            raise self.pause.over(jobs_stay=self.jobs_stay)
