"""The run gate decides whether a run may start now."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from autotune.coordination.deadline import Deadline, expected_s
from autotune.execution.capping import apply_cap
from autotune.execution.signals import Pause
from autotune.execution.task import Task
from autotune.records.outcome import Outcome

# A wall time that a run exceeds costs the run; one that is too long only makes its job wait longer. Configurations may
# be much slower than those that are known.
_ENOUGH = 3.0
_LEAST_WALLTIME_S = 60.0


@dataclass(frozen=True)
class LongestRuns:
    """The longest of the complete runs of one input so far.

    Attributes:
        elapsed_s: The most seconds of a run.
        core_s: The most core-seconds of a run.
    """

    elapsed_s: float = 0.0
    core_s: float = 0.0

    def with_run(self, elapsed_s: float, cores: int) -> "LongestRuns":
        """Return these with one more run."""
        return LongestRuns(max(self.elapsed_s, elapsed_s), max(self.core_s, elapsed_s * cores))

    def enough_s(self, cores: int) -> float | None:
        """Return the seconds that suffice for a run on `cores`; None without runs. Fewer cores may take longer."""
        if not self.elapsed_s:
            return None
        return max(_LEAST_WALLTIME_S, _ENOUGH * max(self.elapsed_s, self.core_s / cores))


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
        walltime_s: The wall time of the batch system's jobs at this site; None if runs are not jobs.
        longest: What the runs so far took, for the wall time of the next ones.
    """

    width: int = 1
    deadline: Deadline | None = None
    pause: Pause = field(default_factory=Pause)
    slowest_s: float | None = None
    jobs_stay: bool = False
    check_held: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    walltime_s: float | None = None
    longest: LongestRuns = field(default_factory=LongestRuns)
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

    def with_walltime(self, task: Task) -> Task:
        """Return the task with the wall time that suffices by the runs so far.

        It stays without one if that is not known, or not less than the site's wall time or its own limit. The legs of a
        training differ in length, so nothing is known of the next.
        """
        job = task.job
        enough_s = self.longest.enough_s(job.resources.cores)
        if self.walltime_s is None or job.walltime_s is not None or task.segment is not None or enough_s is None:
            return task
        limit_s = apply_cap(job, task.cap).time_limit_s
        if enough_s >= min(self.walltime_s, self.walltime_s if limit_s is None else limit_s):
            return task
        return replace(task, job=replace(job, walltime_s=enough_s))

    def at_most(self, wanted: int) -> int:
        """Return how many runs may be in flight: `wanted`, or none after a pause."""
        return 0 if self.pause.asked else wanted

    def learn(self, outcome: Outcome, cores: int) -> None:
        """Learn how long a run took."""
        if outcome.complete:
            self.slowest_s = max(self.slowest_s or 0.0, outcome.usage.elapsed_s)
            self.longest = self.longest.with_run(outcome.usage.elapsed_s, cores)

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
