"""A scheduler as text functions: text in, text out. Nothing here runs a command."""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import ceil
from pathlib import Path

from launchers.batch_systems.numbers import hours_text
from launchers.environment import read_umask
from launchers.job import EndReason, Job, JobState, Place
from launchers.placement import place_job
from launchers.site import Site

QUEUE_LOG = ".autotune-queue.log"
"""The log of the job's shell, in the job's folder; it says why a job did not start its program."""

SCHEDULER_LOG = ".autotune-scheduler.log"
"""The scheduler's own log, in the job's folder: its last messages, and why it did not start a shell."""


@dataclass(frozen=True)
class Request:
    """The resources that a job requests from the scheduler.

    Attributes:
        name: The job's name in the queue.
        nodes: The number of nodes.
        tasks: The number of processes on all nodes together.
        cores_per_task: The cores of each process.
        gpus: The number of GPUs on all nodes together.
        memory_bytes: The memory of all nodes together; None for the site's default.
        walltime_s: The wall time in seconds, a multiple of 60.
        place: The host to start on or the hosts to avoid; only for a job of one node.
        threads_per_core: How many hardware threads of each core the job may use.
    """

    name: str
    nodes: int
    tasks: int
    cores_per_task: int
    gpus: int
    memory_bytes: int | None
    walltime_s: int
    place: Place = field(default_factory=Place)
    threads_per_core: int = 1

    @property
    def cores(self) -> int:
        """The number of cores on all nodes."""
        return self.tasks * self.cores_per_task

    @property
    def walltime(self) -> str:
        """The wall time as `hours:minutes:seconds`."""
        return hours_text(self.walltime_s)

    @property
    def memory_mib(self) -> int | None:
        """The memory in MiB, rounded up."""
        return None if self.memory_bytes is None else ceil(self.memory_bytes / 2**20)


@dataclass(frozen=True)
class JobReport:
    """A scheduler's report on a job.

    Attributes:
        state: The job's state; `LOST` for a job that was preempted or whose node failed.
        reason: Why it ended, if the scheduler says.
        exit_code: Its exit code, if the scheduler says; negative for a signal.
        message: Why it waits or how it ended, for a person.
        suspended: It has started but does not run at present, although its wall time does.
        never_starts: It is queued and will never start unless something changes.
    """

    state: JobState
    reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""
    suspended: bool = False
    never_starts: bool = False


class Refusal(Enum):
    """Why a submission was refused that will not succeed if simply repeated later.

    `NO_ROOM`: a limit on cores or memory leaves too little; smaller jobs may be taken. `TOO_LARGE`: it exceeds what any
    job may have. `ALL_JOBS`: a setting that all jobs of the site share is wrong, such as the queue or account.
    """

    NO_ROOM = auto()
    TOO_LARGE = auto()
    ALL_JOBS = auto()


def refusal_of(refusals: Mapping[Refusal, re.Pattern[str]], complaint: str) -> Refusal | None:
    """Return the first kind of refusal whose pattern occurs in a complaint."""
    return next((kind for kind, pattern in refusals.items() if pattern.search(complaint)), None)


def _none(_complaint: str) -> None:
    return None


def _cannot_place(_site: Site) -> bool:
    return False


def every_line_matches(pattern: re.Pattern[str], complaint: str) -> bool:
    """Whether a complaint has lines and every one matches, so that it reports no other trouble."""
    lines = [line for line in complaint.splitlines() if line.strip()]
    return bool(lines) and all(pattern.search(line) for line in lines)


# Sequences that colour a terminal or set its title (ECMA-48), and characters that move its cursor.
_FOR_TERMINALS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\].*?(?:\x07|\x1b\\)|[\x00-\x08\r]")


def plain_text(answer: str) -> str:
    """Return the answer of a command without what only a terminal understands."""
    return _FOR_TERMINALS.sub("", answer)


def find_job_id(answer: str, forms: Sequence[re.Pattern[str]]) -> str | None:
    """Return the number of the job that was submitted, whatever a site's own command prints around it.

    The forms are searched for in each line, the most certain one first; group 1 is the number. None if no line has a
    number, or lines have several in the most certain form: a wrong number would be another job's.
    """
    lines = [line.strip() for line in plain_text(answer).splitlines()]
    for form in forms:
        found = {match[1] for line in lines for match in form.finditer(line)}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


@dataclass(frozen=True)
class ReasonsQuery:
    """How to ask a scheduler why jobs wait.

    `command` takes their numbers; `read` returns the reasons by number.
    """

    command: Callable[[Sequence[str]], list[str]]
    read: Callable[[str], Mapping[str, str]]


@dataclass(frozen=True)
class EnergyQuery:
    """How to ask a scheduler for the energy of ended jobs.

    `command` takes their numbers; `read` returns joules by number, without jobs whose energy was not counted.
    """

    command: Callable[[Sequence[str]], list[str]]
    read: Callable[[str], Mapping[str, float]]


@dataclass(frozen=True)
class HostsQuery:
    """How to ask a scheduler which hosts could start a job now.

    `read` takes the answer, the site and the number of cores that the job needs.
    """

    command: Sequence[str]
    read: Callable[[str, Site, int], Sequence[str]]


@dataclass(frozen=True)
class Scheduler:
    """A scheduler as text functions.

    Attributes:
        name: Its name in study files, site files and options.
        head: The lines at the top of a job script, beginning with those for the scheduler.
        submit: The command that submits a script by its path; it runs in the job's folder.
        job_id: Reads the answer to `submit`; None if it names no job, or not only one.
        status: The command that queries several jobs at once.
        states: Reads the answer to `status`: standard output, standard error and exit code. Jobs that it does not
            mention are gone from the queue; None means that the scheduler could not be reached.
        cancel: The command that ends jobs.
        can_wait: Whether the message of a refused submission means that the same will be taken later: a limit of the
            queue, or a scheduler that is busy or shut down.
        nothing_to_end: Matches the lines in which `cancel` complains of jobs that have ended already.
        number_variable: The environment variable in which a job finds its number.
        variables: The variables of their caller that the commands need.
        reads_input: Whether the submitting command reads the script from standard input.
        fallback: The scheduler to use instead if this one answers `status` with the given complaint: some servers do
            not support every query.
        end_in_log: Reads why a job was ended from the scheduler's own log in its folder, if `states` cannot tell.
        reports_ended: Whether `states` reports jobs that ended a while ago. Otherwise only a job's own status file
            tells how it ended.
        refusal: The kind of a refused submission that cannot succeed later as it is; checked before `can_wait`.
        reasons: Asks why jobs wait, if `states` cannot tell.
        energy: Asks for the energy of ended jobs, at sites whose accounting counts it.
        submit_file: The text of a file that describes a job and is submitted in place of its script, as HTCondor wants.
            Takes the same two values as `head`, and the path of the script; the file lies beside the script.
        can_place: Whether `head` respects the place of a request at a site.
        hosts: Asks for the hosts, if a job can be given a host but not a list of hosts to avoid.
        host_variable: The variable in which a job finds the scheduler's name of its first host: as the first word of
            its value, or of the file that it names. Without it, the host's own name is used.
    """

    name: str
    head: Callable[[Request, Site], list[str]]
    submit: Callable[[Path], list[str]]
    job_id: Callable[[str], str | None]
    status: Callable[[Sequence[str]], list[str]]
    states: Callable[[str, str, int], Mapping[str, JobReport] | None]
    cancel: Callable[[Sequence[str]], list[str]]
    can_wait: Callable[[str], bool]
    nothing_to_end: re.Pattern[str]
    number_variable: str
    variables: tuple[str, ...] = ()
    reads_input: bool = False
    fallback: Callable[[str], "Scheduler | None"] = _none
    end_in_log: Callable[[str], JobReport | None] = _none
    reports_ended: bool = True
    refusal: Callable[[str], Refusal | None] = _none
    reasons: ReasonsQuery | None = None
    energy: EnergyQuery | None = None
    submit_file: Callable[[Request, Site, Path], str] | None = None
    can_place: Callable[[Site], bool] = _cannot_place
    hosts: HostsQuery | None = None
    host_variable: str = ""

    @property
    def job_variables(self) -> dict[str, str]:
        """The variables in which a job finds its number and its host."""
        return {"number_variable": self.number_variable, "host_variable": self.host_variable}


# Leave time for starting and ending the job on a busy file system: a run must not be ended by its scheduler first.
_WALLTIME_MARGIN_S = 120.0
_MINUTE_S = 60
# qsub of PBS Pro takes 230 characters. A name is one word of a directive, and LSF reads brackets as an array.
_NAME_LENGTH = 200
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def safe_name(name: str) -> str:
    """Return a job name that every scheduler accepts: it begins with a letter and has no special characters."""
    plain = _NOT_IN_NAMES.sub("_", name)[:_NAME_LENGTH]
    return plain if plain[:1].isalpha() else f"job_{plain}"


def make_request(job: Job, site: Site) -> Request:
    """Return what a job asks of the scheduler at a site.

    The job gets its share of a node's memory. Its wall time is its own limit plus a margin, or else the site's.
    """
    job = place_job(job, site)
    ranks = job.ranks
    nodes = job.resources.nodes
    # Ranks may share cores, so there may be fewer tasks than ranks. Without ranks each node gets one task.
    tasks = max(nodes, min(ranks, job.resources.cores))
    cores_per_task = max(1, job.resources.cores // tasks)
    per_node = ceil(tasks * cores_per_task / nodes)
    whole = site.exclusive or per_node >= site.cores_per_node
    share = 1.0 if whole else per_node / site.cores_per_node
    limit_s = (
        site.walltime_s if job.time_limit_s is None else min(site.walltime_s, job.time_limit_s + _WALLTIME_MARGIN_S)
    )
    return Request(
        name=safe_name(job.name),
        nodes=nodes,
        tasks=tasks,
        cores_per_task=cores_per_task,
        gpus=job.resources.gpus,
        memory_bytes=None if site.memory_bytes is None else int(nodes * share * site.memory_bytes),
        walltime_s=_MINUTE_S * ceil(limit_s / _MINUTE_S),
        place=job.place if nodes == 1 else Place(),
        threads_per_core=job.resources.threads_per_core,
    )


def job_script(  # noqa: PLR0913, PLR0917  the parts of a script
    head: Sequence[str],
    log: Path,
    brought: Mapping[str, str],
    site: Site,
    software: Sequence[str],
    command: Sequence[str],
) -> str:
    """Return a job script made of these parts, in their order, with the modules and setup lines of the site.

    The umask is that of this process. The shell appends its output to `log` by itself, since schedulers expand patterns
    in file names. Appending keeps the output of the folder's first job if a second one starts and ends at once. The
    variables in `brought` are exported before anything that may change them. A module that cannot be loaded ends the
    job, since a measurement without it would be of something else.
    """
    lines = [
        "#!/bin/bash -l",
        *head,
        f"umask {read_umask():04o}",
        f"exec >>{shlex.quote(os.fspath(log))} 2>&1",
        *(f"export {name}={shlex.quote(value)}" for name, value in brought.items()),
        *(f"module load {shlex.quote(module)} || exit 1" for module in site.modules),
        *site.setup,
        *software,
        f"exec {shlex.join(command)}",
    ]
    return "\n".join(lines) + "\n"
