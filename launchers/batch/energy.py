"""What ended jobs took of energy, where a scheduler's accounting counts it: it is asked when a job has ended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf

from launchers.batch.commands import Commands, split_ids
from launchers.batch.known_job import KnownJob
from launchers.batch_systems.base import EnergyQuery
from launchers.job import EndReason, JobState, JobStatus
from launchers.meters.figures import ENERGY

_PATIENCE_S = 60.0  # a job is booked some seconds after its script has ended
_PAUSE_S = 5.0
# Where so many jobs were not booked before any was, as where Slurm counts no energy, later ones are asked for once.
_UNBOOKED = 3
_WAITS = JobStatus(JobState.RUNNING, is_accounted=False)


class EnergyAccounting:
    """Adds the energies of jobs to their ends; until one is known, or given up, its job counts as running."""

    def __init__(self, query: EnergyQuery | None, ask: Commands, clock: Callable[[], float]) -> None:
        """Ask by `question`; None: not at all."""
        self._query = query
        self._commands = ask
        self._clock = clock
        self._query_at = clock()
        self._unbooked = 0
        self._is_counted = False  # the energy of some job was booked
        self._failed_at = -inf

    def add_to(self, jobs: Mapping[str, KnownJob], statuses: Mapping[str, JobStatus]) -> Mapping[str, JobStatus]:
        """Return the statuses of `jobs`, those of ended ones with their energies."""
        ended = [
            jobs[job_id]
            for job_id, status in statuses.items()
            if _ended_by_itself(status) and not jobs[job_id].is_metered
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
            if not _ended_by_itself(status) or jobs[job_id].is_metered
            else _WAITS
            for job_id, status in statuses.items()
        }

    def _record(self, job: KnownJob, joules: float | None, now: float) -> None:
        """Take note of what was told of a job that has ended; after a while it has no energy."""
        job.unmetered_since = now if job.unmetered_since is None else job.unmetered_since
        patience_s = _PATIENCE_S if self._is_counted or self._unbooked < _UNBOOKED else 0.0
        job.is_metered = joules is not None or now - job.unmetered_since >= patience_s
        if not job.is_metered or job.ended is None:
            return
        if joules is not None:
            self._is_counted = True
        elif job.unmetered_since > self._failed_at:
            # An accounting that was away meanwhile has not said that it counts nothing.
            self._unbooked += 1
        # What other meters told is no substitute: they count other things, and runs are compared.
        others = {name: figure for name, figure in job.ended.metered.items() if name != ENERGY}
        job.ended = replace(job.ended, metered=others if joules is None else {**others, ENERGY: joules})

    def _read_energies(self, query: EnergyQuery, numbers: Sequence[str], now: float) -> Mapping[str, float]:
        """Return the joules of those of the jobs of which they are booked; take note of a command that failed."""
        found: dict[str, float] = {}
        for some in split_ids(numbers):
            answer = self._commands(query.command(some))
            if answer.code == 0:
                found |= query.read(answer.stdout)
            else:
                self._failed_at = now
        return found


def _ended_by_itself(status: JobStatus) -> bool:
    """Whether a job ended by itself: what others took the energy of is not compared."""
    return status.state is JobState.ENDED and status.reason is EndReason.EXITED
