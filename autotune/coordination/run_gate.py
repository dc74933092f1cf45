"""The run gate: whether a run may start now."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from autotune.coordination.deadline import Deadline, expected_s
from autotune.execution.capping import apply_cap
from autotune.execution.signals import Pause
from autotune.execution.task import Task
from autotune.records.outcome import Outcome


@dataclass
class RunGate:
    """Admits runs until a pause is asked for, and only those that end before the deadline.

    `slowest_s` is how long the slowest complete run took so far. `width` is how many of the runs that are compared with
    each other may be in flight together: more than one only where each has nodes of its own. `jobs_stay` says that runs
    are jobs of a batch system, which outlive the session. `check_held` refuses where another session has taken the
    study over. `clock` tells the time in which runs take place: that of a simulation is not ours.
    """

    width: int = 1
    deadline: Deadline | None = None
    pause: Pause = field(default_factory=Pause)
    slowest_s: float | None = None
    jobs_stay: bool = False
    check_held: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    _refused: bool = field(default=False, init=False)

    def admits(self, task: Task) -> bool:
        """Whether a run may start now: no pause was asked for, and it is expected to end in time."""
        if self.pause.asked:
            return False
        if self.deadline is not None:
            limit_s = apply_cap(task.job, task.cap).time_limit_s
            self._refused = not self.deadline.allows(expected_s(limit_s, self.slowest_s))
            return not self._refused
        return True

    def at_most(self, wanted: int) -> int:
        """Return how many runs may be in flight for another one to start: those `wanted`, none after a pause."""
        return 0 if self.pause.asked else wanted

    def learn(self, outcome: Outcome) -> None:
        """Take note of how long a run took."""
        if outcome.complete:
            self.slowest_s = max(self.slowest_s or 0.0, outcome.usage.elapsed_s)

    def check(self, *, idle: bool = False) -> None:
        """See whether the time of the runs in flight is over; with none of them (`idle`), whether a start was refused.

        A pause waits for the runs in flight, but not for jobs of a batch system, which may take days: those are left to
        the next session.

        Raises:
            UnfinishedError: the time is over.
            PausedError: a pause was asked for, and there is nothing to wait for.
            BusyError: another session has taken the study over.
        """
        self.check_held()
        if self.deadline is not None and ((idle and self._refused) or not self.deadline.allows(None)):
            raise self.deadline.over()
        if self.pause.asked and (idle or self.jobs_stay):
            raise self.pause.over(jobs_stay=self.jobs_stay)
