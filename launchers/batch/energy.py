"""What ended jobs took of energy, where a scheduler's accounting counts it: it is asked when a job has ended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from launchers.batch.commands import Commands, in_parts
from launchers.batch.known_job import KnownJob
from launchers.batch_systems.base import EnergyQuestion
from launchers.job import EndReason, JobState, JobStatus
from launchers.meters.metered import ENERGY

_PATIENCE_S = 60.0  # a job is booked some seconds after its script has ended
_PAUSE_S = 5.0
# Where so many jobs in a row were not booked, as where Slurm counts no energy, later ones are asked for once.
_UNANSWERED = 3
_WAITS = JobStatus(JobState.RUNNING, booked=False)


class Energies:
    """Adds the energies of jobs to their ends; until one is known, or given up, its job counts as running."""

    def __init__(self, question: EnergyQuestion | None, ask: Commands, clock: Callable[[], float]) -> None:
        """Ask by `question`; None: not at all."""
        self._question = question
        self._ask = ask
        self._clock = clock
        self._ask_at = clock()
        self._unanswered = 0

    def added(self, jobs: Mapping[str, KnownJob], statuses: Mapping[str, JobStatus]) -> Mapping[str, JobStatus]:
        """Return the statuses of `jobs`, those of ended ones with their energies."""
        ended = [jobs[job_id] for job_id, status in statuses.items() if _counts(status) and not jobs[job_id].is_metered]
        if self._question is None or not ended:
            return statuses
        now = self._clock()
        if now >= self._ask_at:
            self._ask_at = now + _PAUSE_S
            told = _told(self._question, self._ask, [job.number for job in ended])
            for job in ended:
                self._take(job, told.get(job.number), now)
        return {
            job_id: (jobs[job_id].ended or status) if not _counts(status) or jobs[job_id].is_metered else _WAITS
            for job_id, status in statuses.items()
        }

    def _take(self, job: KnownJob, joules: float | None, now: float) -> None:
        """Take note of what was told of a job that has ended; after a while it has no energy."""
        job.unmetered_since = now if job.unmetered_since is None else job.unmetered_since
        patience_s = _PATIENCE_S if self._unanswered < _UNANSWERED else 0.0
        job.is_metered = joules is not None or now - job.unmetered_since >= patience_s
        if not job.is_metered or job.ended is None:
            return
        self._unanswered = 0 if joules is not None else self._unanswered + 1
        # What other meters told is no substitute: they count other things, and runs are compared.
        others = {name: figure for name, figure in job.ended.metered.items() if name != ENERGY}
        job.ended = replace(job.ended, metered=others if joules is None else {**others, ENERGY: joules})


def _told(question: EnergyQuestion, ask: Commands, numbers: Sequence[str]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for some in in_parts(numbers):
        found |= question.read(ask(question.command(some)).stdout)
    return found


def _counts(status: JobStatus) -> bool:
    """Whether a job ended by itself: what others took the energy of is not compared."""
    return status.state is JobState.ENDED and status.reason is EndReason.EXITED
