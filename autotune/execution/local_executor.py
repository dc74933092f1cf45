"""The executor of a session with one worker on this machine, which needs no Ray: its start takes seconds."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.execution.capping import apply_cap
from autotune.execution.executor import Executor
from autotune.execution.task import Task, WatchedRun, not_started
from autotune.records.outcome import Outcome
from launchers import Launcher, LaunchError, LineReader
from launchers.run import FollowedJob


@dataclass(frozen=True)
class _Followed:
    watched: WatchedRun
    job: FollowedJob


class LocalExecutor(Executor):
    """Runs tasks as jobs of this process. They end with it, however it ends."""

    def __init__(self, launcher: Launcher) -> None:
        """Start jobs by a `launcher` of this machine."""
        self._launcher = launcher
        self._running: dict[str, _Followed] = {}
        self._refused: list[tuple[Task, Outcome]] = []

    def submit(self, task: Task) -> None:
        """Start a task; its program runs when this returns."""
        watched = WatchedRun(task)
        lines = LineReader(task.job.folder / task.job.progress_file)
        try:
            job_id = self._launcher.submit(apply_cap(task.job, task.cap))
        except LaunchError as error:
            self._refused.append((task, not_started(task, error)))
            return
        self._running[job_id] = _Followed(watched, FollowedJob(self._launcher, job_id, lines, watched.on_lines))

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`."""
        give_up_at = time.monotonic() + timeout_s
        while True:
            ended, self._refused = self._refused, []
            for job_id, one in list(self._running.items()):
                status = one.job.look()
                if status is not None:
                    del self._running[job_id]
                    ended.append((one.watched.task, one.watched.outcome(status)))
            left_s = give_up_at - time.monotonic()
            if ended or left_s <= 0.0 or not self._running:
                return ended
            time.sleep(min(left_s, *(one.job.next_pause_s() for one in self._running.values())))

    def cancel_all(self) -> None:
        """End all running tasks and their jobs without reporting them."""
        while self._running:
            self._launcher.cancel(self._running.popitem()[0])

    def leave(self) -> None:
        """End all running tasks: none can do without this process."""
        self.cancel_all()
