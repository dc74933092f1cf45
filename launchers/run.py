"""Run one job to its end while reading its output."""

import time
from collections.abc import Callable, Sequence

from launchers.base import Launcher, LineReader
from launchers.job import Job, JobState, JobStatus

# Poll often at first so that short jobs are not kept waiting, then less often so that long ones are not disturbed.
_FIRST_PAUSE_S = 0.02
_PAUSE_S = 0.1

OnLines = Callable[[Sequence[str]], bool | None]


def run(launcher: Launcher, job: Job, on_lines: OnLines | None = None) -> JobStatus:
    """Run `job` and return how it ended. Nothing of it is left running, even after an error.

    Args:
        launcher: Starts the job.
        job: The job.
        on_lines: Receives new lines of standard output, or of the job's `progress_file`, in batches. When it returns
            True, the job is cancelled and it receives no more lines.

    Raises:
        LaunchError: The job could not be started.
    """
    job_id = launcher.submit(job)
    followed = FollowedJob(launcher, job_id, LineReader(job.folder / job.progress_file), on_lines)
    try:
        while (status := followed.look()) is None:
            time.sleep(followed.next_pause_s())
    except BaseException:
        launcher.cancel(job_id)
        raise
    return status


class FollowedJob:
    """A job in flight whose output is read."""

    def __init__(self, launcher: Launcher, job_id: str, lines: LineReader, on_lines: OnLines | None) -> None:
        """Follow a job that was submitted; `lines` and `on_lines` are as in `run`."""
        self._launcher = launcher
        self._job_id = job_id
        self._lines = lines
        self._on_lines = on_lines
        self._pause_s = _FIRST_PAUSE_S

    def look(self) -> JobStatus | None:
        """Read new lines, cancel the job if they ask for it, and return how it ended; None while it runs."""
        while True:
            status = self._launcher.poll([self._job_id])[self._job_id]
            ended = status.state in {JobState.ENDED, JobState.LOST}
            if self._on_lines is None or not _wants_stop(self._lines, self._on_lines, ended=ended):
                return status if ended else None
            self._on_lines = None
            self._launcher.cancel(self._job_id)

    def next_pause_s(self) -> float:
        """Return how long to wait before the next look."""
        pause_s = self._pause_s
        self._pause_s = min(1.5 * pause_s, _PAUSE_S)
        return pause_s


def _wants_stop(lines: LineReader, on_lines: OnLines, *, ended: bool) -> bool:
    while new := lines.new_lines(ended=ended):
        if on_lines(new):
            return True
    return False
