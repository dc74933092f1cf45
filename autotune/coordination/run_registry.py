"""The run registry has the leases of the runs in flight, and of those that a killed session left."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from autotune.coordination.lease_record import LeaseRecord
from autotune.coordination.runs import RunInFlight
from autotune.execution.executor import Executor
from autotune.files import discard
from autotune.records.study import Run
from autotune.storage.leases import LeaseBook
from launchers.local import end_jobs_below


@dataclass
class RunRegistry:
    """Leases each run that may outlive its session, and finds the runs that an earlier session left.

    Attributes:
        executor: Finds and ends jobs.
        leases: The stored leases; None if no run outlives its session.
        scheduler: The batch system that runs the jobs; empty if runs are not jobs.
    """

    executor: Executor
    leases: LeaseBook | None = None
    scheduler: str = ""
    # Runs of earlier sessions with their job ids, by name.
    _inherited: dict[str, tuple[LeaseRecord, str]] = field(default_factory=dict, init=False)

    def inherit(self, stored: Iterable[Run]) -> None:
        """Find the runs that an earlier session left. Those without a job are given up and run again.

        A session may have been killed just after it stored a run, so `stored` runs are not inherited.
        """
        if self.leases is None:
            return
        known = frozenset((run.started, run.job.get("folder")) for run in stored)
        for lease in self.leases.all():
            record = LeaseRecord.from_dict(lease.record)
            folder = Path(record.job["folder"])
            job_id = self.executor.find_job(folder) or lease.job_id
            is_known = (record.started, record.job["folder"]) in known
            if job_id is not None and not is_known:
                self._inherited[lease.place] = record, job_id
                continue
            end_jobs_below(folder)
            if not is_known:
                # It runs again, possibly in another folder.
                with suppress(OSError):
                    discard(folder)
            self.leases.release(lease.place)

    @property
    def left(self) -> list[LeaseRecord]:
        """The inherited runs that are not resumed yet."""
        return [lease for lease, _ in self._inherited.values()]

    def take_inherited(self, name: str) -> tuple[LeaseRecord, str] | None:
        """Remove and return an inherited run with its job id, for this session to resume or to end."""
        return self._inherited.pop(name, None)

    def end_left_over(self) -> None:
        """End the inherited jobs that were not resumed."""
        given_up, self._inherited = self._inherited, {}
        self.executor.end_jobs([job_id for _, job_id in given_up.values()])
        for name in given_up:
            self.release(name)

    def take(self, runs: Sequence[RunInFlight]) -> None:
        """Store the leases of runs before they start."""
        if self.leases is not None:
            self.leases.take({run.name: (run.lease(self.scheduler).to_dict(), None) for run in runs})

    def release(self, name: str) -> None:
        """Release the lease of a run that will not run again now."""
        if self.leases is not None:
            self.leases.release(name)
