"""Jobs of a batch system: each is a job script in its run's folder, and outlives the process that submitted it.

The node runs the same supervisor as for local jobs, so the time limit, the usage and the end of a job mean the same
everywhere. Its status file says that a job has ended; the scheduler is queried for what the file cannot say.
"""

import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from launchers import card, node
from launchers.base import LaunchError
from launchers.batch.commands import (
    Answer,
    BoundedCommands,
    Commands,
    query_states,
    read_late_answer,
    run_command,
    split_ids,
)
from launchers.batch.energy import EnergyAccounting
from launchers.batch.job_ends import (
    GONE_FILE,
    WITHOUT_STATUS,
    gone_for_s,
    is_killed,
    status_after_suspension,
    status_of_forgotten,
    status_of_unreported_end,
    status_without_file,
    waits_for_file,
    was_ended_by_others,
    with_scheduler_reason,
)
from launchers.batch.job_files import ANSWER_FILE, SCRIPT_FILE, SUBMIT_FILE, read_claim, write_job
from launchers.batch.known_job import KnownJob, parse_job_id
from launchers.batch.refusals import QueueFullError, submission_error, unnamed_job_error
from launchers.batch_systems.base import (
    QUEUE_LOG,
    JobReport,
    Request,
    Scheduler,
    every_line_matches,
    job_script,
    make_request,
)
from launchers.detect import lacks_tm
from launchers.environment import batch_job_variables, job_environment
from launchers.job import OUTPUT_LIMIT_BYTES, STDOUT, EndReason, Job, JobState, JobStatus, Place
from launchers.mpi import CannotStartRanksError, mpi_environment, notes
from launchers.mpi_command import mpi_argv
from launchers.placement import place_job, shares_nodes
from launchers.secret import fill_masked
from launchers.sequence import prepare_command
from launchers.shell_lines import shell_lines
from launchers.site import Site
from launchers.software.software import flavour_for
from launchers.status import read_shared_status, read_status

_GRACE_S = 3.0
# Shared file systems may show a file that another machine wrote only after a delay.
_PATIENCE_S = 180.0
# A node that has failed writes no more. NFS shows what it had written within a minute (acregmax, acdirmax).
_FAILED_PATIENCE_S = 60.0
# A file that is later than this is worth a message.
_USUAL_DELAY_S = 10.0
_LONGEST_PAUSE_S = 600.0
_CANCEL_PATIENCE_S, _REPEAT_CANCEL_S = 120.0, 15.0
_PAUSE_S, _PAUSE_S_A_JOB = 0.05, 0.001
# Later jobs wait for the same reasons as the first ones in the queue.
_ASKED = 50
_PREVIEW_MARK = "TOKEN"
_IN_QUEUE = frozenset({JobState.QUEUED, JobState.RUNNING})
_node_flavour = partial(flavour_for, on_site=True)


class BatchLauncher:
    """Submits jobs to the scheduler of a site. Several processes may poll and cancel the same jobs.

    A job is given up after `patience_s` seconds in which neither the scheduler nor a file says anything of it.
    """

    def __init__(  # noqa: PLR0913, PLR0917  the last ones are for tests
        self,
        scheduler: Scheduler,
        site: Site,
        commands: Commands | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = _PATIENCE_S,
        prefix: str = "",
    ) -> None:
        """Use `commands` to reach the scheduler; the names of jobs begin with `prefix`, the name of the study."""
        self._prefix = prefix
        self.site = site
        self.flavour = site.mpi
        self._scheduler = scheduler
        self._commands = BoundedCommands(commands or partial(run_command, variables=scheduler.variables), clock)
        self.hosts = SchedulerHostChoice(scheduler, site, self._commands)
        self._clock = clock
        self._patience_s = patience_s
        self._jobs: dict[str, KnownJob] = {}
        self._energy = EnergyAccounting(scheduler.energy if site.energy else None, self._commands, clock)
        self._pause_s = site.poll_s
        self._unanswered: set[Path] = set()
        # Jobs to end again, since the scheduler did not accept it the first time.
        self._to_end: dict[str, None] = {}
        self._query_at = self._repeat_end_at = clock()
        self._query_trouble, self._ending_trouble = "", Answer(0)

    @property
    def queue(self) -> Self:
        """This launcher: its jobs wait in a queue."""
        return self

    @property
    def trouble(self) -> str:
        """Why the scheduler cannot be queried at present, or ends no jobs; empty while it answers."""
        return self._query_trouble or (self._ending_trouble.complaint if self._to_end else "")

    def submit(self, job: Job) -> str:
        """Submit `job`.

        Raises:
            QueueFullError: The scheduler will take the job later, or takes a smaller one now (`NoRoomError`).
            LaunchError: It refuses the job, for good (`RefusedError`) or not, or the job's folder cannot be used.
        """
        job, folder = place_job(job, self.site), job.folder.absolute()
        number = read_claim(folder) if folder in self._unanswered else None
        if number is not None:
            # An earlier submission that got no answer was accepted after all.
            self._unanswered.discard(folder)
            return self._id(number, folder)
        token = secrets.token_hex(8)
        identity = {"token": token, **self._scheduler.job_variables}
        files = self._files(job, token)
        argv = self._full_command(job)
        # All parts share one file, which says how each is started.
        confined = argv if job.parts else self._full_command(job, confined=True)
        limits_s = _GRACE_S, self._request(job).walltime_s
        write_job(job, (argv, confined), job_environment({}, self._job_variables(job)), limits_s, identity, files)
        argv = self._scheduler.submit(folder / list(files)[-1])
        text = folder / SCRIPT_FILE if self._scheduler.reads_input else None
        answer = self._commands(argv, folder, folder / ANSWER_FILE, text)
        # A command that printed the number before it was given up has submitted the job.
        number = self._scheduler.job_id(answer.stdout) if answer.code in {0, 124} else None
        if number is None:
            number = self._read_number_of_unnamed(folder, argv[0], answer)
        self._unanswered.discard(folder)
        return self._id(number, folder)

    def _read_number_of_unnamed(self, folder: Path, command: str, answer: Answer) -> str:
        """Return the number of a job that was taken although the answer does not name it, from the job itself.

        Raises:
            LaunchError: No job was taken, or it has not started yet; then it ends as soon as it does.
        """
        error = submission_error(self._scheduler, command, answer)
        if isinstance(error, QueueFullError):
            self._unanswered.add(folder)
        if answer.code != 0 or type(error) is not LaunchError:
            raise error
        # A job that finds no description ends at once.
        (folder / node.JOB_FILE).unlink(missing_ok=True)
        number = read_claim(folder)
        if number is None:
            raise unnamed_job_error(command, answer)
        return number

    def find_submitted(self, folder: Path) -> str | None:
        """Return the id of the job last submitted for a run's folder; None if there was none.

        This finds a submission whose process was killed before it could report the id. It waits for a submission in
        progress.
        """
        number = None
        with suppress(OSError):
            number = self._scheduler.job_id(read_late_answer(folder / ANSWER_FILE))
        number = number or read_claim(folder)
        return None if number is None else self._id(number, folder.absolute())

    def poll(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the status of every id, with at most one query of the scheduler for all, and not too often."""
        written = {job_id: self._read_end(job_id) for job_id in ids}
        if self._to_end and self._clock() >= self._repeat_end_at:
            self.end(list(self._to_end))
        self._query_scheduler([job_id for job_id in ids if self._job_by_id(job_id).ended is None])
        judged = {
            job_id: self._job_by_id(job_id).ended or self._decide_status(job_id, own) for job_id, own in written.items()
        }
        return self._energy.add_to(self._jobs, judged)

    def forget(self, ids: Iterable[str]) -> None:
        """Stop following jobs that will not be polled again."""
        for job_id in ids:
            self._jobs.pop(job_id, None)
            self._to_end.pop(job_id, None)

    def end(self, ids: Iterable[str]) -> None:
        """Ask the scheduler to end jobs; `poll` reports when they have ended, and asks again if this fails."""
        given = list(ids)
        wanted = [job_id for job_id in given if self._has_not_ended(job_id)]
        for job_id in given:
            self._to_end.pop(job_id, None)
        for job_id in wanted:
            self._job_by_id(job_id).cancelled = True
        for some in split_ids(wanted):
            answer = self._commands(self._scheduler.cancel([self._job_by_id(job_id).number for job_id in some]))
            if not self._is_accepted(answer):
                self._to_end.update(dict.fromkeys(some))
                self._ending_trouble = answer
        if wanted:
            self._query_at = self._clock()
            self._repeat_end_at = self._query_at + _REPEAT_CANCEL_S

    def cancel(self, job_id: str) -> None:
        """End a job and wait until it has ended.

        Raises:
            LaunchError: The job keeps running although the scheduler was asked to end it, or the command for that is
                missing.
        """
        if self.cancel_all([job_id])[job_id].state in _IN_QUEUE:
            missing = self._ending_trouble.is_missing and job_id in self._to_end
            within = "" if missing else f" within {_CANCEL_PATIENCE_S:g} s"
            msg = f"job {self._job_by_id(job_id).number} could not be cancelled{within}"
            raise LaunchError(f"{msg}: {self.trouble}" if self.trouble else msg)

    def cancel_all(self, ids: Sequence[str], away_s: float = _CANCEL_PATIENCE_S) -> Mapping[str, JobStatus]:
        """End jobs and return how each ended; after two minutes, return those left as queued or running.

        A scheduler that does not answer is given up after `away_s` seconds.
        """
        begun_at = self._clock()
        repeat_at = self._clock() + _REPEAT_CANCEL_S
        while True:
            statuses = self.poll(ids)
            left = [job_id for job_id, status in statuses.items() if status.state in _IN_QUEUE]
            now = self._clock()
            missing = self._ending_trouble.is_missing and not self._to_end.keys().isdisjoint(left)
            patience_s = min(away_s, _CANCEL_PATIENCE_S) if self.trouble else _CANCEL_PATIENCE_S
            if not left or missing or now - begun_at >= patience_s:
                return statuses
            # Ask again, since the scheduler may have been away the first time.
            self.end([job_id for job_id in left if now >= repeat_at or not self._job_by_id(job_id).cancelled])
            repeat_at = now + _REPEAT_CANCEL_S if now >= repeat_at else repeat_at
            self._query_at = min(self._query_at, now + 10 * _PAUSE_S)
            time.sleep(max(_PAUSE_S, _PAUSE_S_A_JOB * len(left)))

    def command(self, job: Job) -> list[str]:
        """Return the complete command line of `job` on its node.

        Raises:
            LaunchError: The job has no command, or the site's MPI start command cannot start its ranks.
        """
        there = place_job(job, self.site)
        return self._command(there, shares=shares_nodes(there, self.site))

    def _command(self, job: Job, *, shares: bool) -> list[str]:
        if not job.argv:
            msg = f"{job.name} has no command"
            raise LaunchError(msg)
        try:
            return mpi_argv(_node_flavour(job.software, self.flavour), place_job(job, self.site), shares_nodes=shares)
        except CannotStartRanksError as error:
            raise LaunchError(str(error)) from error

    def script(self, job: Job, token: str = _PREVIEW_MARK) -> str:
        """Return the job script of `job`; each submission has its own `token`."""
        head = self._scheduler.head(self._request(job), self.site)
        folder = job.folder.absolute()
        command = [self.site.python, "-I", node.__file__, os.fspath(folder), token]
        # Export the environment before software is loaded: the node cannot unload the modules that are loaded here.
        caller = job.software.changes.apply_to(os.environ) if job.software else os.environ
        brought = {} if self.site.modules else batch_job_variables(caller)
        software = job.software.script if job.software else ()
        return job_script(head, folder / QUEUE_LOG, brought, self.site, software, command)

    def preview(self, job: Job) -> str:
        """Return the files that `submit` would write and the commands that the job would run, as lines for a person."""
        lines = shell_lines(job, self.command, self._job_variables)
        return f"{''.join(self._files(job).values())}# runs: {' && '.join(lines)}"

    def notes(self, *, ranks: bool) -> tuple[str, ...]:
        """Return what a user should know about how this launcher starts jobs, with `ranks` or without."""
        lines = [
            f"each run is a job of {self._scheduler.name} at {self.site.name}",
            *(notes(self.flavour, user_id=os.geteuid())[:1] if ranks else ()),
        ]
        if ranks and self.site.nodes > 1 and self._scheduler.name == "pbs" and lacks_tm(self.flavour):
            lines.append(
                "this Open MPI was built without PBS (tm), so ranks on several nodes need ssh between the nodes "
                "(`autotune doctor --launcher pbs` tries it)"
            )
        if not self.site.exclusive:
            lines.append(
                "runs on part of a node may share it with other users' jobs, which disturb the measurements "
                "(exclusive = true in the site file asks for whole nodes)"
            )
        return tuple(lines)

    def _files(self, job: Job, token: str = _PREVIEW_MARK) -> dict[str, str]:
        """Return the files that a job is submitted with, name -> text; the last is the one to submit."""
        files = {SCRIPT_FILE: self.script(job, token)}
        if self._scheduler.submit_file is not None:
            path = job.folder.absolute() / SCRIPT_FILE
            files[SUBMIT_FILE] = self._scheduler.submit_file(self._request(job), self.site, path)
        return files

    def _request(self, job: Job) -> Request:
        limits_s = [limit_s for limit_s in (job.time_limit_s, job.walltime_s) if limit_s is not None]
        name = f"{self._prefix}-{job.name}" if self._prefix else job.name
        return make_request(replace(job, name=name, time_limit_s=min(limits_s, default=None)), self.site)

    def _full_command(self, job: Job, *, confined: bool = False) -> list[str]:
        """Return what the node runs for a job that shares it, or for one that is `confined` to cores of its own."""
        limits, python = (_GRACE_S, OUTPUT_LIMIT_BYTES), [self.site.python, "-I", "-S"]
        shares = not confined and shares_nodes(place_job(job, self.site), self.site)
        return prepare_command(job, partial(self._command, shares=shares), self._job_variables, limits, python)

    def _job_variables(self, job: Job) -> dict[str, str]:
        start = None if job.mpi is None else _node_flavour(job.software, self.flavour)
        added = {} if start is None else mpi_environment(start, user_id=os.geteuid())
        return (
            added
            | card.visibility_variables(job.resources.cards, job.resources.gpus)
            | fill_masked(job.environment, os.environ)
        )

    def _id(self, number: str, folder: Path) -> str:
        return f"{self._scheduler.name}:{number}:{folder}"

    def _job_by_id(self, job_id: str) -> KnownJob:
        if job_id not in self._jobs:
            self._jobs[job_id] = parse_job_id(job_id, self._scheduler.name)
        return self._jobs[job_id]

    def _read_end(self, job_id: str) -> JobStatus | None:
        """Return what a job's own files say of its end; settle the job if that is all there is to know."""
        known = self._job_by_id(job_id)
        if known.ended is not None:
            return known.ended
        status = read_status(known.folder)
        if status is not None and not was_ended_by_others(status):
            self._settle(known, status)
        elif status is not None and known.cancelled:
            known.ended = replace(status, reason=EndReason.CANCELLED)
        return status

    def _has_not_ended(self, job_id: str) -> bool:
        self._read_end(job_id)
        return self._job_by_id(job_id).ended is None

    def _query_scheduler(self, ids: Sequence[str]) -> None:
        now = self._clock()
        if not ids or now < self._query_at:
            return
        complaint = ""
        for some in split_ids(ids):
            states, message = self._query_states([self._job_by_id(job_id).number for job_id in some])
            if states is None:
                complaint = message
                continue
            for job_id in some:
                self._note_report(job_id, states.get(self._job_by_id(job_id).number), now)
        self._query_trouble = complaint
        if complaint:
            # Query less often while the scheduler does not answer.
            self._pause_s = min(2 * max(self._pause_s, 1.0), max(_LONGEST_PAUSE_S, self.site.poll_s))
        else:
            self._pause_s = self.site.poll_s
        self._query_at = now + self._pause_s

    def _query_states(self, numbers: Sequence[str]) -> tuple[Mapping[str, JobReport] | None, str]:
        """Return the scheduler's reports on jobs, None if it did not answer, and its complaint."""
        self._scheduler, states, answer = query_states(self._commands, self._scheduler, numbers)
        return _add_reasons(self._scheduler, self._commands, states, list(numbers)), answer.complaint

    def _note_report(self, job_id: str, report: JobReport | None, now: float) -> None:
        known = self._job_by_id(job_id)
        is_news = known.report is None or known.gone_since is not None
        if report is not None:
            known.report = report
            known.suspended = known.suspended or report.suspended
        if report is not None and not _is_over(report):
            if is_news:
                with suppress(OSError):
                    (known.folder / GONE_FILE).unlink()
            known.gone_since = None
            return
        if known.gone_since is None:
            # A session that resumes the job continues the wait of the session before it.
            awaits_file = not known.cancelled and read_status(known.folder) is None
            known.gone_since = now - (gone_for_s(known.folder, known.number) if awaits_file else 0.0)
        known.gone_until = now

    def _decide_status(self, job_id: str, status: JobStatus | None) -> JobStatus:
        """Return the status of a job whose files do not say everything; `status` is what its own file says."""
        known = self._job_by_id(job_id)
        folder, report = known.folder, known.report
        if known.gone_since is None:
            known.started = known.started or status is not None or (folder / STDOUT).exists()
            if known.started or report is None:
                return JobStatus(JobState.RUNNING if known.started else JobState.QUEUED)
            return JobStatus(JobState.QUEUED, message=report.message, never_starts=report.never_starts)
        # The job may have ended after its files were read and before the scheduler was queried.
        status = status or read_shared_status(folder)
        over = _is_over(report)
        if status is not None:
            self._settle_by_file(known, status)
        elif self._follow_claiming_job(known):
            pass
        elif over and report is not None and (report.reason in WITHOUT_STATUS or self._has_waited(known)):
            self._settle(known, status_without_file(replace(report, message="") if known.cancelled else report, folder))
        elif known.cancelled and (self._is_forgotten(known) or not (folder / STDOUT).exists()):
            known.ended = JobStatus(JobState.ENDED, EndReason.CANCELLED)
        elif self._is_forgotten(known) and self._delete_and_confirm(known):
            known.ended = status_of_forgotten(known.number, folder)
        return known.ended or JobStatus(JobState.RUNNING, message=self._waits_for_file(known))

    def _settle_by_file(self, known: KnownJob, status: JobStatus) -> None:
        """Settle a job that is gone by what its own file says, and what its scheduler adds to that."""
        report = known.report
        if known.cancelled and was_ended_by_others(status):
            known.ended = replace(status, reason=EndReason.CANCELLED)
            return
        if _is_over(report) and report is not None:
            status = with_scheduler_reason(status, report)
        elif known.deleted_at is None:
            status = status_of_unreported_end(status, self._scheduler, known.folder)
        self._settle(known, status)

    def _waits_for_file(self, known: KnownJob) -> str:
        """Return why a job that is gone still counts as running; empty while its status file is not late."""
        if known.gone_since is None or known.cancelled:
            return ""
        report = known.report if _is_over(known.report) else None
        is_late = self._clock() - known.gone_since >= _USUAL_DELAY_S
        return waits_for_file(report, self._patience_for(known)) if is_late or is_killed(report) else ""

    def _patience_for(self, known: KnownJob) -> float:
        """Return how long the status file of a job that is gone may take to appear here."""
        failed = known.report is not None and known.report.state is JobState.LOST
        return min(_FAILED_PATIENCE_S, self._patience_s) if failed else self._patience_s

    def _follow_claiming_job(self, known: KnownJob) -> bool:
        """Whether another job of the same submission claimed the folder; if so, follow that one from now on."""
        owner = read_claim(known.folder)
        # The same server may appear under several forms of its name.
        if owner is None or owner.partition(".")[0] == known.number.partition(".")[0]:
            return False
        known.number, known.report, known.gone_since, known.started = owner, None, None, True
        if known.cancelled:
            self._commands(self._scheduler.cancel([owner]))
        self._query_at = min(self._query_at, self._clock() + self.site.poll_s)
        return True

    def _settle(self, known: KnownJob, status: JobStatus) -> None:
        known.ended = status_after_suspension(status) if known.suspended else status
        if known.deleted_at is not None and status.reason is EndReason.CANCELLED and not known.cancelled:
            known.ended = status_of_forgotten(known.number, known.folder)

    def _has_waited(self, known: KnownJob) -> bool:
        """Whether a status file written on another machine would be visible here by now."""
        return known.gone_since is not None and self._clock() - known.gone_since >= self._patience_for(known)

    def _is_forgotten(self, known: KnownJob) -> bool:
        """Whether the scheduler has reported a job as unknown at least twice, `patience_s` apart."""
        return known.gone_since is not None and known.gone_until - known.gone_since >= self._patience_s

    def _delete_and_confirm(self, known: KnownJob) -> bool:
        """Delete a job that is given up; return whether the scheduler has reported it as unknown since then."""
        if known.deleted_at is not None:
            return known.gone_until > known.deleted_at
        if self._is_accepted(self._commands(self._scheduler.cancel([known.number]))):
            known.deleted_at = self._query_at = self._clock()
        return False

    def _is_accepted(self, answer: Answer) -> bool:
        # The job may have ended already.
        return answer.code == 0 or every_line_matches(self._scheduler.nothing_to_end, answer.stderr or answer.stdout)


@dataclass(frozen=True)
class SchedulerHostChoice:
    """Chooses the hosts of a scheduler's jobs, which it queries by `commands`."""

    scheduler: Scheduler
    site: Site
    commands: Commands

    @property
    def is_free(self) -> bool:
        """Whether a job can be given its host."""
        return self.scheduler.can_place(self.site)

    def find_other(self, cores: int, known: Collection[str]) -> Place | None:
        """Return where a job of `cores` cores can start on a host outside `known`; None if no such host exists.

        If the scheduler takes hosts to avoid, the job gets those; otherwise it is asked for a host that could start the
        job.
        """
        question = self.scheduler.hosts
        if question is None:
            return Place(avoid=tuple(sorted(known)))
        answer = self.commands(question.command)
        short = {host.partition(".")[0] for host in known}
        able = question.read(answer.stdout, self.site, cores) if answer.code == 0 else ()
        return next((Place(host) for host in able if host.partition(".")[0] not in short), None)


def _is_over(report: JobReport | None) -> bool:
    return report is not None and report.state in {JobState.ENDED, JobState.LOST}


def _add_reasons(
    scheduler: Scheduler, ask: Callable[[list[str]], Answer], states: Mapping[str, JobReport] | None, mine: list[str]
) -> Mapping[str, JobReport] | None:
    """Return the reports, adding the scheduler's reasons why the queued jobs of `mine` wait."""
    question = scheduler.reasons
    if question is None or states is None:
        return states
    queued = [number for number in mine if number in states and states[number].state is JobState.QUEUED]
    if not queued:
        return states
    reasons = question.read(ask(question.command(queued[:_ASKED])).stdout)
    return {
        **states,
        **{number: _with_reason(states[number], reasons[number]) for number in queued if number in reasons},
    }


def _with_reason(report: JobReport, reason: str) -> JobReport:
    return replace(report, message=f"{report.message}: {reason}" if report.message else reason)
