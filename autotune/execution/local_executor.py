"""The executor of this machine: runs are jobs of this process, side by side."""

from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread

from autotune.execution.capping import apply_cap
from autotune.execution.executor import Executor
from autotune.execution.task import Task, WatchedRun, fault_outcome, not_started
from autotune.records.outcome import Outcome
from launchers import Launcher, LaunchError, LineReader
from launchers.run import FollowedJob


class LocalExecutor(Executor):
    """Runs tasks as jobs of this process. They end with it, however it ends.

    A thread follows each job, so that its lines are read, and a run that has lost is stopped, while the session
    proposes a trial or another run takes long to end.
    """

    def __init__(self, launcher: Launcher) -> None:
        """Start jobs by a `launcher` of this machine."""
        self._launcher = launcher
        self._begin()

    def _begin(self) -> None:
        self._stop = Event()
        self._running: set[str] = set()
        self._ended: SimpleQueue[tuple[Task, Outcome]] = SimpleQueue()
        self._unreported = 0

    def submit(self, task: Task) -> None:
        """Start a task; its program runs when this returns."""
        watched = WatchedRun(task)
        lines = LineReader(task.job.folder / task.job.progress_file)
        try:
            job_id = self._launcher.submit(apply_cap(task.job, task.cap))
        except LaunchError as error:
            self._ended.put((task, not_started(task, error)))
        else:
            self._running.add(job_id)
            job = FollowedJob(self._launcher, job_id, lines, watched.on_lines)
            Thread(target=self._follow, args=(watched, job, job_id, self._stop, self._ended), daemon=True).start()
        self._unreported += 1

    def _follow(
        self, watched: WatchedRun, job: FollowedJob, job_id: str, stop: Event, ended: SimpleQueue[tuple[Task, Outcome]]
    ) -> None:
        try:
            while (status := job.look()) is None:
                if stop.wait(job.next_pause_s()):
                    return
            self._running.discard(job_id)
            outcome = watched.outcome(status)
        except BaseException as error:  # noqa: BLE001  the outcome reports it, also an objective's SystemExit
            outcome = fault_outcome(watched.task, error)
            with suppress(Exception):
                self._launcher.cancel(job_id)
                self._running.discard(job_id)
        ended.put((watched.task, outcome))

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`."""
        ended: list[tuple[Task, Outcome]] = []
        with suppress(Empty):
            while self._unreported:
                ended.append(self._ended.get(timeout=0.0 if ended else timeout_s))
                self._unreported -= 1
        return ended

    def cancel_all(self) -> None:
        """End all running tasks and their jobs without reporting them."""
        self._stop.set()
        # Their followers are not waited for: one may search its output for long.
        cancels = [Thread(target=self._launcher.cancel, args=(job_id,), daemon=True) for job_id in list(self._running)]
        for one in cancels:
            one.start()
        for one in cancels:
            one.join()
        self._begin()

    def leave(self) -> None:
        """End all running tasks: none can do without this process."""
        self.cancel_all()
