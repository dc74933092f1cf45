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
    lines = LineReader(job.folder / job.progress_file)
    job_id = launcher.submit(job)
    try:
        return _follow(launcher, job_id, lines, on_lines)
    except BaseException:
        launcher.cancel(job_id)
        raise


def _follow(launcher: Launcher, job_id: str, lines: LineReader, on_lines: OnLines | None) -> JobStatus:
    pause_s = _FIRST_PAUSE_S
    while True:
        status = launcher.poll([job_id])[job_id]
        ended = status.state in {JobState.ENDED, JobState.LOST}
        if on_lines is not None and _wants_stop(lines, on_lines, ended=ended):
            on_lines = None
            launcher.cancel(job_id)
            continue
        if ended:
            return status
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, _PAUSE_S)


def _wants_stop(lines: LineReader, on_lines: OnLines, *, ended: bool) -> bool:
    while new := lines.new_lines(ended=ended):
        if on_lines(new):
            return True
    return False
