"""What autotune knows of a scheduler: text in, text out. Nothing here asks one."""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import ceil
from pathlib import Path

from launchers.batch_systems.numbers import hours_text
from launchers.job import EndReason, Job, JobState, Place
from launchers.placement import place_job
from launchers.site import Site

QUEUE_LOG = ".autotune-queue.log"
"""Where a job's shell writes, in the job's folder: why a job did not even start stands there."""

SCHEDULER_LOG = ".autotune-scheduler.log"
"""Where the scheduler itself writes, in the job's folder: what it says at the end, and why it started no shell."""


@dataclass(frozen=True)
class Request:
    """What a job asks of the scheduler: `tasks` processes of `cores_per_task` cores on `nodes` nodes.

    It may use `threads_per_core` hardware threads of each core. `memory_bytes` is for all processes together, None to
    leave it to the site's default. Only a job of one node has a `place`.
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
        """The cores of all nodes."""
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
    """What a scheduler says of a job.

    `reason` and `exit_code` are those of an ended one, where it says them; a job that was taken away for another one,
    or whose node failed, is `LOST`. `message` is in words: why it waits, or what became of it. A `suspended` one has
    started and does not run, while its clock does. A `hopeless` one waits, and will never start as things are.
    """

    state: JobState
    reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""
    suspended: bool = False
    never_starts: bool = False


class Refusal(Enum):
    """A refused submission that is not simply made again later.

    `NO_ROOM`: a limit on cores or memory leaves too little; smaller jobs may be taken. `TOO_LARGE`: it is more than any
    job may have. `ALL_JOBS`: what all jobs of the site say is wrong, such as its queue or account.
    """

    NO_ROOM = auto()
    TOO_LARGE = auto()
    ALL_JOBS = auto()


def refusal_of(refusals: Mapping[Refusal, re.Pattern[str]], complaint: str) -> Refusal | None:
    """Return the first kind of refusal whose pattern is in a complaint."""
    return next((kind for kind, pattern in refusals.items() if pattern.search(complaint)), None)


def _none(_complaint: str) -> None:
    return None


def _cannot_place(_site: Site) -> bool:
    return False


def every_line_matches(pattern: re.Pattern[str], complaint: str) -> bool:
    """Whether every line of a complaint matches, and there is one: then nothing else is the matter."""
    lines = [line for line in complaint.splitlines() if line.strip()]
    return bool(lines) and all(pattern.search(line) for line in lines)


@dataclass(frozen=True)
class ReasonsQuery:
    """How a scheduler is asked why jobs wait, by their numbers, and what its answer says of each, by the number."""

    command: Callable[[Sequence[str]], list[str]]
    read: Callable[[str], Mapping[str, str]]


@dataclass(frozen=True)
class EnergyQuery:
    """How a scheduler is asked what ended jobs took, by their numbers, and what its answer says: joules by the number.

    A job of which nothing was counted is not in it.
    """

    command: Callable[[Sequence[str]], list[str]]
    read: Callable[[str], Mapping[str, float]]


@dataclass(frozen=True)
class HostsQuery:
    """How a scheduler is asked which hosts could start a job now: of so many cores, in a site's queue."""

    command: Sequence[str]
    read: Callable[[str, Site, int], Sequence[str]]


@dataclass(frozen=True)
class Scheduler:
    """A scheduler as text functions.

    `head` gives the lines at the top of a script, those for the scheduler first; `submit` the command that submits one
    (it runs in the job's folder), `job_id` reads its answer. `status` is the command that asks for all of some jobs at
    once, `states` reads its answer, whatever its exit code: jobs that it does not mention are gone from the queue.
    `None` is no answer: the scheduler could not be reached. `cancel` ends jobs; a line of its complaints that matches
    `nothing_to_end` is about a job that is over already. `can_wait` tells by the message of a refused submission
    whether the same will be taken later: a limit of the queue, a scheduler that is busy or shut down. `refusal` goes
    first, and tells of refusals that do not change, or not for a job of that size.

    A job finds its number in the environment variable `number_variable`, and the commands need of their caller's
    environment the `variables`.

    With `reads_input` the submitting command reads the script from its standard input. `fallback` gives the scheduler to
    go on with when this one complains so of `status`: some servers cannot be asked for all that others can. `reasons`
    asks why jobs wait, where `states` does not tell; `energy` asks what they took, at sites whose accounting counts it.

    Some schedulers take no script with directives in it but a file that describes the job and names its script, as
    HTCondor does. `submit_file` is the text of that file, made from the same two values as `head` and from the script's
    path; the file lies beside the script, and `submit` is given its path instead of the script's.

    `can_place` says whether `head` heeds the place of a request at a site. Where a job can be told its host, but not which
    hosts to avoid, `hosts` asks which there are. A job finds what the scheduler calls its first host in the environment
    variable `host_variable`: as the first word there, or in the file that it names; without one it is the name that the
    host has.
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


# Starting and ending take their time, and a busy file system more: a run must not be ended by its scheduler first.
_WALLTIME_MARGIN_S = 120.0
_MINUTE_S = 60
# qsub of PBS Pro takes 230 characters; a name is a word of a directive, and LSF reads brackets as an array.
_NAME_LENGTH = 200
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def safe_name(name: str) -> str:
    """Return a job's name as every scheduler takes it: it begins with a letter, and has no blanks or other signs."""
    plain = _NOT_IN_NAMES.sub("_", name)[:_NAME_LENGTH]
    return plain if plain[:1].isalpha() else f"job_{plain}"


def make_request(job: Job, site: Site) -> Request:
    """Return what a job needs of the scheduler at a site.

    A job gets its share of a node's memory; its wall time is its own limit with a margin, the site's without one.
    """
    job = place_job(job, site)
    ranks = job.ranks
    nodes = job.resources.nodes
    # Ranks that share cores are a matter between them and the cores. Without ranks each node has a share of the job.
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
    """Return a job script of these parts, in their order: of the `site` it has the modules and the setup.

    What its shell prints goes to `log`, by its own doing: schedulers see patterns in a file's name. It is added to what
    is there, so that a second job of the folder, which ends at once, takes nothing from the first. The variables that
    are `brought` come before all that may change them. A module that cannot be loaded ends the job: what would be
    measured without it is something else.
    """
    lines = [
        "#!/bin/bash -l",
        *head,
        f"exec >>{shlex.quote(os.fspath(log))} 2>&1",
        *(f"export {name}={shlex.quote(value)}" for name, value in brought.items()),
        *(f"module load {shlex.quote(module)} || exit 1" for module in site.modules),
        *site.setup,
        *software,
        f"exec {shlex.join(command)}",
    ]
    return "\n".join(lines) + "\n"
