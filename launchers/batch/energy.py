"""The energy of ended jobs, read from a scheduler's accounting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf

from launchers.batch.commands import Commands, split_ids
from launchers.batch.known_job import KnownJob
from launchers.batch_systems.base import EnergyQuery
from launchers.job import EndReason, JobState, JobStatus
from launchers.meters.figures import ENERGY

_PATIENCE_S = 60.0  # the accounting has a job's energy some seconds after its script has ended
_PAUSE_S = 5.0
# If the accounting had no energy for this many jobs in a row, as at sites where Slurm counts none, query later jobs
# only once.
_UNBOOKED = 3
_WAITS = JobStatus(JobState.RUNNING, is_accounted=False)


class EnergyAccounting:
    """Adds energies to the ends of jobs. A job counts as running until its energy is known or given up."""

    def __init__(self, query: EnergyQuery | None, ask: Commands, clock: Callable[[], float]) -> None:
        """Query the accounting by `query`; None: not at all."""
        self._query = query
        self._commands = ask
        self._clock = clock
        self._query_at = clock()
        self._unbooked = 0
        self._is_counted = False  # whether the accounting had the energy of any job
        self._failed_at = -inf

    def add_to(self, jobs: Mapping[str, KnownJob], statuses: Mapping[str, JobStatus]) -> Mapping[str, JobStatus]:
        """Return the statuses of `jobs`, with the energies of those that have ended."""
        ended = [
            jobs[job_id]
            for job_id, status in statuses.items()
            if _was_not_cancelled(status) and not jobs[job_id].is_metered
        ]
        if self._query is None or not ended:
            return statuses
        now = self._clock()
        if now >= self._query_at:
            self._query_at = now + _PAUSE_S
            joules_by_number = self._read_energies(self._query, [job.number for job in ended], now)
            for job in ended:
                self._record(job, joules_by_number.get(job.number), now)
        return {
            job_id: (jobs[job_id].ended or status)
            if not _was_not_cancelled(status) or jobs[job_id].is_metered
            else _WAITS
            for job_id, status in statuses.items()
        }

    def _record(self, job: KnownJob, joules: float | None, now: float) -> None:
        """Record the energy of an ended job; after `_PATIENCE_S` without one, record that it has none."""
        job.unmetered_since = now if job.unmetered_since is None else job.unmetered_since
        patience_s = _PATIENCE_S if self._is_counted or self._unbooked < _UNBOOKED else 0.0
        job.is_metered = joules is not None or now - job.unmetered_since >= patience_s
        if not job.is_metered or job.ended is None:
            return
        if joules is not None:
            self._is_counted = True
        elif job.unmetered_since > self._failed_at:
            # A failed query does not show that the accounting counts nothing.
            self._unbooked += 1
        # Do not fall back on other meters: they measure other things, and runs must be comparable.
        others = {name: figure for name, figure in job.ended.metered.items() if name != ENERGY}
        job.ended = replace(job.ended, metered=others if joules is None else {**others, ENERGY: joules})

    def _read_energies(self, query: EnergyQuery, numbers: Sequence[str], now: float) -> Mapping[str, float]:
        """Return the joules of the jobs whose energy is known, by number; record the time of a query that failed."""
        found: dict[str, float] = {}
        for some in split_ids(numbers):
            answer = self._commands(query.command(some))
            if answer.code == 0:
                found |= query.read(answer.stdout)
            else:
                self._failed_at = now
        return found


def _was_not_cancelled(status: JobStatus) -> bool:
    """Whether a job ended by itself; the energy of other jobs is never compared."""
    return status.state is JobState.ENDED and status.reason is EndReason.EXITED
