"""Jobs of a batch system: each is a job script in its run's folder, and outlives the process that submitted it.

What is run on the node is the supervisor of local jobs, so that the time limit, the usage and the end of a job are the
same thing everywhere. Its status file says that a job has ended; the scheduler is asked for what a file cannot say.
"""

import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from launchers import node
from launchers.base import STDERR, STDOUT, LaunchError
from launchers.commands import Commands, late_answer, run_command
from launchers.ends import WITHOUT_STATUS, merged, was_ended, without_status
from launchers.environment import job_environment
from launchers.job import EndReason, Job, JobState, JobStatus
from launchers.mpi import CannotStartRanksError, mpi_argv, mpi_environment, notes
from launchers.schedulers.base import QUEUE_LOG, SCHEDULER_LOG, Scheduler, Seen, request, script
from launchers.site import Site
from launchers.status import read_status
from launchers.supervisor import STATUS_FILE

SCRIPT_FILE = ".autotune-job.sh"
ANSWER_FILE = ".autotune-submitted"

_GRACE_S = 3.0
_OUTPUT_LIMIT_BYTES = 2 * 2**30
# Shared file systems show a file that another machine wrote only after a while.
_PATIENCE_S = 60.0
_LONGEST_PAUSE_S = 600.0
# Command lines have a limit, and schedulers a patience.
_AT_ONCE = 500
_CANCEL_PATIENCE_S = 120.0
_SAY_AGAIN_S = 15.0
_PAUSE_S = 0.05
_OF_A_RUN = frozenset({STATUS_FILE, ANSWER_FILE, QUEUE_LOG, SCHEDULER_LOG, STDOUT, STDERR})
_ACTIVE = frozenset({JobState.QUEUED, JobState.RUNNING})
# What a job needs of the environment that its study was started in, where no modules are loaded for it.
_CARRIED = (
    *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "MKLROOT"),
    *("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"),
)


class QueueFullError(LaunchError):
    """The scheduler takes no further job now; it will later."""


@dataclass
class _Known:
    """What this process knows of a job: what the scheduler said last, and since when it has been gone from there.

    Its `number` is the scheduler's, its `folder` that of its run.
    """

    number: str
    folder: Path
    seen: Seen | None = None
    gone_since: float | None = None
    started: bool = False
    cancelled: bool = False
    ended: JobStatus | None = None


class BatchLauncher:
    """Submits jobs to the scheduler of a site. Several processes may poll and cancel the same jobs."""

    def __init__(  # noqa: PLR0913, PLR0917  the last ones are for tests
        self,
        scheduler: Scheduler,
        site: Site,
        commands: Commands = run_command,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = _PATIENCE_S,
        prefix: str = "",
    ) -> None:
        """Use `commands` to reach the scheduler; a job nobody knows of is given up after `patience_s`.

        Its users see the names of jobs behind `prefix`, that of the study.
        """
        self._prefix = prefix
        self.site = site
        self.flavour = site.mpi
        self._scheduler = scheduler
        self._commands = commands
        self._clock = clock
        self._patience_s = patience_s
        self._jobs: dict[str, _Known] = {}
        self._ask_at = clock()
        self._pause_s = site.poll_s
        self.trouble = ""
        """Why the scheduler cannot be asked at present; empty while it answers."""

    def submit(self, job: Job) -> str:
        """Submit `job`.

        Raises:
            QueueFullError: the scheduler will take it later.
            LaunchError: it refuses the job, or the job's folder cannot be used.
        """
        self._write(job)
        folder = job.folder.absolute()
        argv = self._scheduler.submit(folder / SCRIPT_FILE)
        answer = self._commands(argv, folder, folder / ANSWER_FILE, self._input(folder))
        # A command that was given up after it told the number has submitted the job.
        number = self._scheduler.job_id(answer.stdout) if answer.code in {0, 124} else None
        if number is None:
            msg = f"{argv[0]} does not take the job: {answer.complaint}"
            if self._scheduler.can_wait(answer.complaint) or answer.code == 124:
                raise QueueFullError(msg)
            raise LaunchError(msg)
        return self._id(number, folder)

    def submitted(self, folder: Path) -> str | None:
        """Return the id of the job that was last submitted in a run's folder; None if none was.

        This is for a submission whose process was killed before it could tell the id to anybody. One that still goes
        on is waited for.
        """
        with suppress(OSError):
            number = self._scheduler.job_id(late_answer(folder / ANSWER_FILE))
            return None if number is None else self._id(number, folder.absolute())
        return None

    def poll(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the status of every id; the scheduler is asked once for all of them, and not too often."""
        written = {job_id: self._written(job_id) for job_id in ids}
        self._ask([job_id for job_id in ids if self._known(job_id).ended is None])
        return {job_id: self._known(job_id).ended or self._judged(job_id, status) for job_id, status in written.items()}

    def forget(self, ids: Iterable[str]) -> None:
        """Forget jobs that nobody will ask for again."""
        for job_id in ids:
            self._jobs.pop(job_id, None)

    def end(self, ids: Iterable[str]) -> None:
        """Ask the scheduler to end jobs; `poll` tells when they have."""
        wanted = [job_id for job_id in ids if self._has_not_ended(job_id)]
        for job_id in wanted:
            self._known(job_id).cancelled = True
        for some in _parts(wanted):
            self._commands(self._scheduler.cancel([self._known(job_id).number for job_id in some]))
        if wanted:
            self._ask_at = self._clock()

    def cancel(self, job_id: str) -> None:
        """End a job, and return when it has ended.

        Raises:
            LaunchError: it goes on, whatever is said to the scheduler.
        """
        self.cancel_all([job_id])

    def cancel_all(self, ids: Sequence[str], away_s: float = _CANCEL_PATIENCE_S) -> None:
        """End jobs, and return when all have ended; a scheduler that does not answer is given up after `away_s`.

        Raises:
            LaunchError: some go on, whatever is said to the scheduler.
        """
        begun_at = say_at = self._clock()
        while left := [job_id for job_id, status in self.poll(ids).items() if status.state in _ACTIVE]:
            now = self._clock()
            patience_s = min(away_s, _CANCEL_PATIENCE_S) if self.trouble else _CANCEL_PATIENCE_S
            if now - begun_at >= patience_s:
                numbers = ", ".join(self._known(job_id).number for job_id in left)
                msg = f"job {numbers} could not be cancelled within {patience_s:g} s"
                raise LaunchError(f"{msg}: {self.trouble}" if self.trouble else msg)
            if now >= say_at:
                # The scheduler may have been away the first time.
                self.end(left)
                say_at = now + _SAY_AGAIN_S
            self._ask_at = min(self._ask_at, now + 10 * _PAUSE_S)
            time.sleep(_PAUSE_S)

    def command(self, job: Job) -> list[str]:
        """Return the whole command line of `job` on its node.

        Raises:
            LaunchError: there is none, or what starts ranks at this site cannot start them so.
        """
        if not job.argv:
            msg = f"{job.name} has no command"
            raise LaunchError(msg)
        try:
            return mpi_argv(self.flavour, job)
        except CannotStartRanksError as error:
            raise LaunchError(str(error)) from error

    def script(self, job: Job) -> str:
        """Return the job script of `job`."""
        named = replace(job, name=f"{self._prefix}-{job.name}") if self._prefix else job
        head = self._scheduler.head(request(named, self.site), self.site)
        folder = job.folder.absolute()
        command = [self.site.python, "-I", node.__file__, os.fspath(folder)]
        return script(head, self.site, folder / QUEUE_LOG, command)

    def shown(self, job: Job) -> str:
        """Return what would be submitted, and what it runs, as lines for a person."""
        own = job_environment({}, self._added(job))
        words = [*(f"{name}={value}" for name, value in sorted(own.items())), *self.command(job)]
        return f"{self.script(job)}# runs: env {shlex.join(words)}"

    def notes(self) -> tuple[str, ...]:
        """Return what a user should know about how jobs are started here."""
        said = [
            f"each run is a job of {self._scheduler.name} at {self.site.name}",
            *notes(self.flavour, user_id=os.geteuid())[:1],
        ]
        if not self.site.exclusive:
            said.append(
                "runs of less than a node may share it with other people's jobs, whose noise they then measure "
                "(exclusive = true in the site file asks for whole nodes)"
            )
        return tuple(said)

    def _write(self, job: Job) -> None:
        if not job.folder.is_dir():
            msg = f"the job's folder {job.folder} is not there, or not a folder; make it first"
            raise LaunchError(msg)
        argv, environment = self.command(job), self._environment(job)
        for word in (*argv, *environment, *environment.values()):
            if "\0" in word:
                msg = f"{word!r} holds a zero byte, which no command line and no environment can"
                raise LaunchError(msg)
        spec = {
            "argv": argv,
            "environment": environment,
            "folder": os.fspath(job.folder.resolve()),
            "stdout": STDOUT,
            "stderr": STDERR,
            "cpus": [],
            "time_limit_s": job.time_limit_s,
            "grace_s": _GRACE_S,
            "output_limit_bytes": _OUTPUT_LIMIT_BYTES,
        }
        try:
            # One look is less for a shared file system than six files that are not there.
            for entry in list(job.folder.iterdir()):
                if entry.name in _OF_A_RUN:
                    entry.unlink()
            (job.folder / node.JOB_FILE).write_text(json.dumps(spec), encoding="utf-8")
            (job.folder / SCRIPT_FILE).write_text(self.script(job), encoding="utf-8")
        except OSError as error:
            msg = f"the job's folder {job.folder} cannot be written to: {error.strerror}"
            raise LaunchError(msg) from error

    def _environment(self, job: Job) -> dict[str, str]:
        """Return what is set on the node beside what its modules set."""
        carried = {} if self.site.modules else {name: os.environ[name] for name in _CARRIED if name in os.environ}
        return job_environment({}, carried | self._added(job))

    def _added(self, job: Job) -> dict[str, str]:
        added = mpi_environment(self.flavour, user_id=os.geteuid()) if job.mpi is not None else {}
        return added | dict(job.environment)

    def _input(self, folder: Path) -> Path | None:
        return folder / SCRIPT_FILE if self._scheduler.reads_input else None

    def _id(self, number: str, folder: Path) -> str:
        return f"{self._scheduler.name}:{number}:{folder}"

    def _parsed(self, job_id: str) -> tuple[str, Path]:
        kind, _, rest = job_id.partition(":")
        number, colon, folder = rest.partition(":")
        if kind != self._scheduler.name or not colon:
            msg = f"{job_id!r} is not the id of a job of {self._scheduler.name}, which looks like {kind}:NUMBER:FOLDER"
            raise ValueError(msg)
        return number, Path(folder)

    def _known(self, job_id: str) -> _Known:
        known = self._jobs.get(job_id)
        if known is None:
            known = self._jobs[job_id] = _Known(*self._parsed(job_id))
        return known

    def _written(self, job_id: str) -> JobStatus | None:
        """Return what a job's own files say of its end, and take note of it if that is all there is to know."""
        known = self._known(job_id)
        if known.ended is not None:
            return known.ended
        status = read_status(known.folder)
        if status is not None and not was_ended(status):
            known.ended = status
        elif status is not None and known.cancelled:
            known.ended = replace(status, reason=EndReason.CANCELLED)
        return status

    def _has_not_ended(self, job_id: str) -> bool:
        self._written(job_id)
        return self._known(job_id).ended is None

    def _ask(self, ids: Sequence[str]) -> None:
        now = self._clock()
        if not ids or now < self._ask_at:
            return
        complaint = ""
        for some in _parts(ids):
            told, said = self._told([self._known(job_id).number for job_id in some])
            if told is None:
                complaint = said
                continue
            for job_id in some:
                self._heard(job_id, told.get(self._known(job_id).number), now)
        self.trouble = complaint
        if complaint:
            # A fast pace is for a scheduler that answers.
            self._pause_s = min(2 * max(self._pause_s, 1.0), max(_LONGEST_PAUSE_S, self.site.poll_s))
        else:
            self._pause_s = self.site.poll_s
        self._ask_at = now + self._pause_s

    def _told(self, numbers: Sequence[str]) -> tuple[Mapping[str, Seen] | None, str]:
        """Return what the scheduler tells of jobs, None if it does not; and what it complains of."""
        answer = self._commands(self._scheduler.status(numbers))
        told = self._scheduler.states(answer.stdout, answer.stderr, answer.code)
        simpler = self._scheduler.simpler(answer.complaint) if told is None else None
        if simpler is not None:
            self._scheduler = simpler
            return self._told(numbers)
        return told, answer.complaint

    def _heard(self, job_id: str, seen: Seen | None, now: float) -> None:
        known = self._known(job_id)
        if seen is not None:
            known.seen = seen
        is_over = seen is None or seen.state in {JobState.ENDED, JobState.LOST}
        if not is_over:
            known.gone_since = None
        elif known.gone_since is None:
            known.gone_since = now

    def _judged(self, job_id: str, status: JobStatus | None) -> JobStatus:
        """Return the status of a job of which no file says all; `status` is what its own says."""
        known = self._known(job_id)
        folder, seen = known.folder, known.seen
        if known.gone_since is None:
            known.started = known.started or status is not None or (folder / STDOUT).exists()
            return (
                JobStatus(JobState.RUNNING)
                if known.started
                else JobStatus(JobState.QUEUED, message=seen.message if seen else "")
            )
        # It may have ended after its files were looked at, and before the scheduler was asked.
        status = status or read_status(folder)
        over = seen is not None and seen.state in {JobState.ENDED, JobState.LOST}
        if status is not None:
            known.ended = merged(status, seen) if over and seen is not None else status
        elif over and seen is not None and (seen.reason in WITHOUT_STATUS or self._waited(known)):
            known.ended = without_status(replace(seen, message="") if known.cancelled else seen, folder)
        elif known.cancelled and (self._waited(known) or not (folder / STDOUT).exists()):
            known.ended = JobStatus(JobState.ENDED, EndReason.CANCELLED)
        elif self._waited(known):
            message = (
                f"the scheduler knows nothing of job {self._known(job_id).number}, and it left no status in {folder}"
            )
            known.ended = JobStatus(JobState.LOST, message=message)
        return known.ended or JobStatus(JobState.RUNNING)

    def _waited(self, known: _Known) -> bool:
        """Whether a status file that was written on another machine would be seen here by now."""
        return known.gone_since is not None and self._clock() - known.gone_since >= self._patience_s


def _parts(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE)]
