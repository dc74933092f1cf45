"""The run registry: the leases of the runs that a session has in flight, and of those that a killed one left."""

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
    """Takes a lease for each run that may outlive its session, and resumes the runs that an earlier session left.

    `leases` is None where no run outlives its session; `scheduler` is the batch system whose jobs the runs are, which
    `executor` finds and ends.
    """

    executor: Executor
    leases: LeaseBook | None = None
    scheduler: str = ""
    # By name: the runs of earlier sessions, and their jobs.
    _inherited: dict[str, tuple[LeaseRecord, str]] = field(default_factory=dict, init=False)

    def inherit(self, stored: Iterable[Run]) -> None:
        """Find the runs that an earlier session left. Those without a job are given up, and are made again.

        `stored` are the runs that are stored: a session may have been killed just after it stored one.
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
                # It is made again, maybe in another folder.
                with suppress(OSError):
                    discard(folder)
            self.leases.release(lease.place)

    @property
    def left(self) -> list[LeaseRecord]:
        """The inherited runs that are not resumed yet: their jobs may go on, or wait to be read."""
        return [lease for lease, _ in self._inherited.values()]

    def inherited(self, name: str) -> tuple[LeaseRecord, str] | None:
        """Return an inherited run, and its job, for this session to resume or to end."""
        return self._inherited.pop(name, None)

    def end_left_over(self) -> None:
        """End the inherited jobs that nobody has resumed."""
        given_up, self._inherited = self._inherited, {}
        self.executor.end_jobs([job_id for _, job_id in given_up.values()])
        for name in given_up:
            self.release(name)

    def take(self, runs: Sequence[RunInFlight]) -> None:
        """Store the leases of runs before they start."""
        if self.leases is not None:
            self.leases.take({run.name: (run.lease(self.scheduler).to_dict(), None) for run in runs})

    def release(self, name: str) -> None:
        """Give up a run that will not be made again now."""
        if self.leases is not None:
            self.leases.release(name)

    def give_up(self, name: str) -> None:
        """Give up a run that was tried enough: no session is to follow its job.

        Where runs have no jobs, its lease tells the next session whose folder is left.
        """
        if self.scheduler:
            self.release(name)
