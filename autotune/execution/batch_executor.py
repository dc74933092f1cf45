"""The executor of batch systems: one process follows many jobs, and may leave them to the next session."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median

from autotune.errors import BusyError
from autotune.execution.capping import apply_cap
from autotune.execution.executor import Executor
from autotune.execution.task import Task, WatchedRun, not_started
from autotune.records.outcome import Outcome
from launchers import STDOUT, BatchQueue, JobState, JobStatus, LaunchError, LineReader
from launchers.batch import NoRoomError, QueueFullError, RefusedError

# How often to read files on a shared file system, in seconds; many jobs make it less often.
_LOOK_S = 0.25
_LOOK_S_A_JOB = 0.001
_LEAST_PAUSE_S = 0.001
_SAY_AGAIN_S = 30.0
_MINUTE_S = 60.0
# Trouble that returns within this time is not reported again.
_QUIET_S = 600.0
# A batch system may say that a job can never run only because nodes are down for a while.
_HOPELESS_S = 300.0
# A job that needs certain nodes may wait for ever, and few batch systems report that.
_FOR_A_PLACE_S = 1800.0
_AS_OTHERS = 2.0
# Advise a pilot after this number of runs, if they wait at least this long: a pilot waits in the queue as well.
_KNOWN_AFTER = 3
_SHORT_WAIT_S = 10.0
IN_QUEUE = "its job is in the queue"
_NOT_SUBMITTED = "its job is not submitted yet"
_OVER = frozenset({JobState.ENDED, JobState.LOST})


@dataclass
class _Followed:
    """A job in the queue or running.

    Attributes:
        task: The task of the job.
        lines: The reader of its output.
        since: When it was submitted or found, by the executor's clock.
        watched: The run, once the job was seen running.
        stopped: Whether the run should be stopped.
        say_at: When to ask for the stop again.
        hopeless_since: Since when the batch system has said that the job can never start.
    """

    task: Task
    lines: LineReader
    since: float
    watched: WatchedRun | None = None
    stopped: bool = False
    say_at: float = 0.0
    hopeless_since: float | None = None

    def look(self, status: JobStatus, now: float) -> bool:
        """Read new output; return True to stop the run, and again after a while if it continues."""
        ended = status.state in _OVER
        if self.watched is None:
            if not ended and status.state is not JobState.RUNNING:
                return False
            # For a job that has ended, the times of its lines are unknown.
            self.watched = WatchedRun(self.task, from_start=not ended and status.is_accounted)
        on_lines = self.watched.on_lines
        while on_lines and not self.stopped and (new := self.lines.new_lines(ended=ended)):
            self.stopped = bool(on_lines(new))
        if ended or not self.stopped or now < self.say_at:
            return False
        self.say_at = now + _SAY_AGAIN_S
        return True

    def is_hopeless(self, status: JobStatus, now: float) -> bool:
        """Whether the batch system has said for a while that the job will never start."""
        if not status.never_starts:
            self.hopeless_since = None
        elif self.hopeless_since is None:
            self.hopeless_since = now
        return self.hopeless_since is not None and now - self.hopeless_since >= _HOPELESS_S

    def outcome(self, status: JobStatus) -> Outcome:
        """Return how the run ended."""
        return (self.watched or WatchedRun(self.task, from_start=False)).outcome(status)


class BatchExecutor(Executor):
    """Runs tasks as jobs of a batch system."""

    def __init__(
        self,
        launcher: BatchQueue,
        note: Callable[[str, str], None],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Follow the jobs of one study.

        Args:
            launcher: Submits, polls and ends jobs.
            note: Stores the job id of a run; raises `BusyError` if another session has taken the study over.
            say: Gets messages about what keeps the study waiting.
            clock: Returns seconds that never go back.
            sleep: Pauses for a number of seconds.
        """
        self._launcher = launcher
        self._note = note
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._followed: dict[str, _Followed] = {}
        self._waiting: list[Task] = []
        self._refused: list[tuple[Task, Outcome]] = []
        self._later = False
        self._next_at = clock()
        self._submit_at = self._look_at = clock()
        self._reported_at: dict[str, float] = {}
        self._waits: dict[str, str] = {}
        self._longest_s = 0.0
        # Seconds that complete runs took, and that they waited; empty once the user knows.
        self._times: list[tuple[float, float]] = []
        self._advises = True

    def submit(self, task: Task) -> None:
        """Submit a task's job, later if the queue is full; follow a job that the task already has."""
        if task.job_id is None:
            self._waiting.append(task)
            self._submit_waiting()
            return
        followed = self._following(task)
        if (task.job.folder / STDOUT).exists():
            followed.watched = WatchedRun(task, from_start=False)
        self._followed[task.job_id] = followed

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`."""
        give_up_at = self._clock() + timeout_s
        while True:
            self._submit_waiting()
            ended, self._refused = self._refused, []
            if self._clock() >= self._look_at:
                ended += self._poll()
                self._look_at = self._clock() + max(_LOOK_S, _LOOK_S_A_JOB * len(self._followed))
            left_s = give_up_at - self._clock()
            if ended or left_s <= 0.0:
                return ended
            self._sleep(min(left_s, max(self._look_at - self._clock(), _LEAST_PAUSE_S)))

    def cancel_all(self) -> None:
        """End all jobs without reporting them."""
        self._launcher.end(self._followed)
        self.leave()

    def leave(self) -> None:
        """Leave the jobs, which outlive this process, to the study's next session."""
        self._followed.clear()
        self._waiting.clear()

    def find_job(self, folder: Path) -> str | None:
        """Return the newest job in the folder of a run, also one of an earlier session."""
        return self._launcher.find_submitted(folder)

    def end_jobs(self, job_ids: Sequence[str]) -> None:
        """End jobs of an earlier session that this one does not resume."""
        self._launcher.end(job_ids)

    def why_waits(self, run: str) -> str:
        """Return why a job waits, in the batch system's last words."""
        return _NOT_SUBMITTED if any(task.job.name == run for task in self._waiting) else self._waits.get(run, "")

    def _submit_waiting(self) -> None:
        """Submit waiting runs while there is room; a run that exceeds a limit lets smaller ones go first."""
        most, place = self._launcher.site.max_jobs, 0
        while place < len(self._waiting) and len(self._followed) < most and self._may_submit():
            task = self._waiting[place]
            try:
                job_id = self._launcher.submit(apply_cap(task.job, task.cap))
            except NoRoomError as error:
                if self._followed:
                    self._report_retry(error)
                    place += 1
                    continue
                msg = f"{error}: the study has no other job in the queue, so this job alone exceeds the limit"
                self._refused.append((task, not_started(task, RefusedError(msg))))
            except QueueFullError as error:
                self._report_retry(error)
                break
            except LaunchError as error:
                self._refused.append((task, not_started(task, error)))
            else:
                # The job exists even if `note` fails; `find_job` finds it then.
                del self._waiting[place]
                try:
                    self._note(task.job.name, job_id)
                except BusyError:
                    # Another session counts this one as dead and makes the run itself. It will not find this job.
                    self._launcher.end([job_id])
                    raise
                self._followed[job_id] = self._following(task)
                self._waits[task.job.name] = IN_QUEUE
                continue
            self._waiting.pop(place)
        if self._waiting and len(self._followed) >= most:
            self._report(f"{most} jobs are in the queue: max_jobs in the site file allows no more at a time")
        if self._later:
            self._later = False
            self._submit_at = self._clock() + self._launcher.site.poll_s

    def _following(self, task: Task) -> _Followed:
        return _Followed(task, LineReader(task.job.folder / task.job.progress_file), self._clock())

    def _may_submit(self) -> bool:
        """Return whether a job may be submitted now; if so, delay the next one by the site's interval."""
        now, limit = self._clock(), self._launcher.site.submissions_per_minute
        if now < max(self._submit_at, self._next_at):
            return False
        self._next_at = now if limit is None else now + _MINUTE_S / limit
        return True

    def _report_retry(self, error: QueueFullError) -> None:
        self._later = True
        self._report(f"{error}; tried again every {self._launcher.site.poll_s:g} s")

    def _poll(self) -> list[tuple[Task, Outcome]]:
        statuses = self._launcher.poll(list(self._followed))
        if self._launcher.trouble:
            trouble, jobs = self._launcher.trouble, len(statuses)
            on = f" ({jobs} jobs)" if jobs > 1 else ""
            self._report(f"the scheduler does not answer: {trouble}{on}; jobs continue meanwhile", trouble)
        self._note_waits({self._followed[job_id].task.job.name: status for job_id, status in statuses.items()})
        now = self._clock()
        self._launcher.end([job_id for job_id, status in statuses.items() if self._followed[job_id].look(status, now)])
        hopeless = [job_id for job_id, status in statuses.items() if self._followed[job_id].is_hopeless(status, now)]
        self._give_up(hopeless, "its job can never run, and was deleted")
        waiting = {job_id: self._followed[job_id] for job_id in statuses if job_id in self._followed}
        for job_id, one in waiting.items():
            self._give_up_misplaced(job_id, one, statuses[job_id], now - one.since)
        over = [(job_id, status) for job_id, status in statuses.items() if status.state in _OVER]
        followed = [(self._followed.pop(job_id), status) for job_id, status in over]
        self._launcher.forget(job_id for job_id, _ in over)
        if over:
            # There may be room in the queue.
            self._submit_at = self._clock()
        ended = [(run.task, run.outcome(status)) for run, status in followed]
        # When the job of an earlier session was submitted is not known.
        self._advise_pilot(
            (outcome.usage.elapsed_s, now - run.since - outcome.usage.elapsed_s)
            for (run, _), (task, outcome) in zip(followed, ended, strict=True)
            if outcome.complete and task.job_id is None
        )
        return ended

    def _advise_pilot(self, times: Iterable[tuple[float, float]]) -> None:
        """Report once if runs take less time than they wait in the queue."""
        self._times += times if self._advises else ()
        if len(self._times) < _KNOWN_AFTER:
            return
        took_s, waited_s = (median(column) for column in zip(*self._times, strict=True))
        self._times = self._times[-_KNOWN_AFTER:]
        if waited_s >= max(_SHORT_WAIT_S, took_s):
            self._advises, self._times = False, []
            compared = f"runs take {took_s:.3g} s and wait {waited_s:.0f} s in the queue"
            self._say(f"{compared}: `autotune pilot` makes them in one job")

    def _give_up_misplaced(self, job_id: str, followed: _Followed, status: JobStatus, waited_s: float) -> None:
        """Delete a job that has waited for certain nodes much longer than others waited for any node."""
        place = followed.task.job.place
        if status.state is not JobState.QUEUED:
            return
        if not place:
            self._longest_s = max(self._longest_s, waited_s)
        elif waited_s >= max(_FOR_A_PLACE_S, _AS_OTHERS * self._longest_s):
            self._give_up(
                [job_id], f"its job waited {waited_s / _MINUTE_S:.0f} minutes to start {place}, and was deleted"
            )

    def _give_up(self, hopeless: Sequence[str], what: str) -> None:
        """Delete jobs that will not start, and report their runs as refused."""
        self._launcher.end(hopeless)
        for job_id in hopeless:
            task = self._followed.pop(job_id).task
            why = self._waits.pop(task.job.name, "")
            msg = what if why in {"", IN_QUEUE} else f"{what}: {why}"
            self._refused.append((task, not_started(task, RefusedError(msg))))

    def _note_waits(self, statuses: Mapping[str, JobStatus]) -> None:
        """Store why each job waits in the queue or for its result file, and report each new reason."""
        queued = {run: status.message for run, status in statuses.items() if status.state is JobState.QUEUED}
        gone = {run: status.message for run, status in statuses.items() if _lacks_file(status)}
        self._waits = {run: message or IN_QUEUE for run, message in queued.items()} | gone
        for told, what in ((queued, " waits"), (gone, "")):
            for reason in dict.fromkeys(filter(None, told.values())):
                run, *others = (run for run, message in told.items() if message == reason)
                more = f" and {len(others)} more" if others else ""
                self._report(f"the job of run {run}{more}{what}: {reason}", reason)

    def _report(self, text: str, about: str = "") -> None:
        """Report what keeps the study waiting, once while it lasts; `about` identifies the reason, else the text."""
        now, about = self._clock(), about or text
        if now - self._reported_at.get(about, -inf) > _QUIET_S:
            self._say(text)
        self._reported_at[about] = now


def _lacks_file(status: JobStatus) -> bool:
    """Whether a job is gone, and its result file is late."""
    return status.state is JobState.RUNNING and status.message != ""
