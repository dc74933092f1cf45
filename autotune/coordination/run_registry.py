"""The run registry: which runs of a study are in flight, here and in the hands of other coordinators."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from autotune.coordination.coordinators import Coordinators
from autotune.coordination.kept_results import RESULT_FILE
from autotune.coordination.lease_record import LeaseRecord
from autotune.coordination.runs import RunInFlight
from autotune.execution.executor import Executor
from autotune.files import discard
from autotune.records.series import RunId, Series
from autotune.records.study import Run
from launchers.local import sweep


@dataclass
class RunRegistry:
    """Takes a lease for each run, and takes over the runs of coordinators that died.

    `coordinators` are those of the study, where there may be others, or where jobs outlive theirs; `scheduler` is the
    batch system of those jobs, which `executor` finds and ends. `stored` tells how many runs of a trial are in storage.
    """

    executor: Executor
    coordinators: Coordinators | None = None
    scheduler: str = ""
    stored: Callable[[int], int] = lambda _: 0
    # By name: runs of dead coordinators, and their jobs.
    _inherited: dict[str, tuple[LeaseRecord, str]] = field(default_factory=dict, init=False)

    @property
    def holder(self) -> str:
        """The coordinator that has the leases of this session's runs; empty where runs have none."""
        return self.coordinators.book.stored_holder if self.coordinators is not None else ""

    @property
    def elsewhere(self) -> Mapping[str, Path]:
        """The runs that other coordinators have in flight, by name, with their folders."""
        return self.coordinators.in_flight if self.coordinators is not None else {}

    def own(self, series: Series) -> str:
        """Return the name of a run that each coordinator makes for itself."""
        alone = self.coordinators is None or self.coordinators.alone
        return str(RunId(series, coordinator="" if alone or self.coordinators is None else self.coordinators.folder))

    def inherit(self, stored: Iterable[Run]) -> list[LeaseRecord]:
        """Take over the runs that dead coordinators left; return those with jobs that may go on, or wait to be read.

        `stored` are the runs that are stored: a coordinator may have died just after.
        """
        self._take_over(None, frozenset((run.started, run.job.get("folder")) for run in stored))
        return [lease for lease, _ in self._inherited.values()]

    def inherited(self, name: str) -> tuple[LeaseRecord, str] | None:
        """Return a run that a dead coordinator left, and its job, for this coordinator to resume or to end."""
        self._take_over(name)
        return self._inherited.pop(name, None)

    def _take_over(self, name: str | None, known: Set[tuple[str, str | None]] | None = None) -> None:
        """Take over what dead coordinators left, everywhere or of one name, but for runs that are `known`."""
        for lease in self.coordinators.inherit(name) if self.coordinators is not None else ():
            assert self.coordinators is not None
            record = LeaseRecord.from_dict(lease.record)
            folder = Path(record.job["folder"])
            job_id = self.executor.find_job(folder) or lease.job_id
            is_known = known is not None and (record.started, record.job["folder"]) in known
            if job_id is None or is_known:
                sweep(folder)
                if known is not None and not is_known and not (folder / RESULT_FILE).exists():
                    # It is made again, in a folder of this coordinator's.
                    with suppress(OSError):
                        discard(folder)
                self.coordinators.release(lease.place)
            else:
                self._inherited[lease.place] = record, job_id

    def end_left_over(self) -> None:
        """End the inherited jobs that nobody has resumed."""
        given_up, self._inherited = self._inherited, {}
        self.executor.end_jobs([job_id for _, job_id in given_up.values()])
        for name in given_up:
            self.release(name)

    def take_all(self, runs: Sequence[RunInFlight]) -> frozenset[str]:
        """Take the leases of runs before they start; return the names of those that no other coordinator has.

        Nor has had: it may have stored the run and given it up since.
        """
        if self.coordinators is None:
            return frozenset(run.name for run in runs)
        taken = self.coordinators.take_all({run.name: run.lease(self.scheduler).to_dict() for run in runs})
        return frozenset(run.name for run in runs if run.name in taken and not self._was_made(run))

    def _was_made(self, run: RunInFlight) -> bool:
        """Whether another coordinator has made a run of ours meanwhile; then it is given up."""
        trial, known = run.purpose.trial, run.planned.known
        alone = self.coordinators is None or self.coordinators.alone
        if known is None or trial is None or alone or self.stored(trial) <= known:
            return False
        self.release(run.name)
        return True

    def release(self, name: str) -> None:
        """Give up a run that will not be made again now."""
        if self.coordinators is not None:
            self.coordinators.release(name)

    def give_up(self, name: str) -> None:
        """Give up a run that was tried enough: no session is to follow its job.

        Where runs have no jobs, its lease tells the next session whose folder is left.
        """
        if self.scheduler:
            self.release(name)

    def beat(self) -> None:
        """Tell the other coordinators that this one lives."""
        if self.coordinators is not None:
            self.coordinators.beat()
