"""The wall time that jobs of a batch system ask for: the runs so far show how much suffices."""

from dataclasses import dataclass, field, replace

from autotune.execution.capping import apply_cap
from autotune.execution.task import Task

# A wall time that a run exceeds costs the run; one that is too long only makes its job wait longer. Configurations may
# be much slower than those that are known.
_ENOUGH = 3.0
_LEAST_S = 60.0


@dataclass
class WallTimes:
    """The wall times of the runs of one input.

    Attributes:
        site_s: The wall time of the site's jobs; None if runs are not jobs of a batch system.
    """

    site_s: float | None = None
    _longest_s: float = field(default=0.0, init=False)
    _most_core_s: float = field(default=0.0, init=False)

    def learn(self, elapsed_s: float, cores: int) -> None:
        """Learn from a complete run."""
        self._longest_s = max(self._longest_s, elapsed_s)
        self._most_core_s = max(self._most_core_s, elapsed_s * cores)

    def set_for(self, task: Task) -> Task:
        """Return the task with the wall time that suffices by the runs so far.

        It stays without one if that is not known, or not less than the site's wall time or its own limit. The legs of a
        training differ in length, so nothing is known of the next.
        """
        job = task.job
        if self.site_s is None or job.walltime_s is not None or task.segment is not None or not self._longest_s:
            return task
        # Fewer cores may take longer.
        enough_s = max(_LEAST_S, _ENOUGH * max(self._longest_s, self._most_core_s / job.resources.cores))
        limit_s = apply_cap(job, task.cap).time_limit_s
        if enough_s >= min(self.site_s, self.site_s if limit_s is None else limit_s):
            return task
        return replace(task, job=replace(job, walltime_s=enough_s))
