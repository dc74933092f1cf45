"""IBM Spectrum LSF: bsub, bjobs and bkill (manual pages of LSF 10.1).

Written from the manual and tested with a stand-in only; it has not been run on a real LSF.
"""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

from launchers.batch_systems.base import SCHEDULER_LOG, JobReport, Request, Scheduler, every_line_matches, find_job_id
from launchers.batch_systems.numbers import count_of
from launchers.batch_systems.system import Allocation, BatchSystem, ReadText, WinnerForm, WinnerRequest
from launchers.job import EndReason, JobState, Place
from launchers.site import Site

_JOB_IDS = (re.compile(r"\bJob <(\d+)> is submitted"), re.compile(r"^(\d+)$"))
_SEPARATOR = "|"
_FIELDS = f"jobid stat exit_code exit_reason pend_reason delimiter='{_SEPARATOR}'"
_NOTHING = "-"

_WAITING = frozenset({"PEND", "PSUSP", "WAIT", "PROV"})
# A job suspended while it waited (PSUSP) has not started its wall time.
_SUSPENDED = frozenset({"USUSP", "SSUSP"})
# bjobs(1), "TERM_*"; for the other reasons the exit code of the ended job says as much.
_ENDS: Mapping[str, JobReport] = {
    "TERM_RUNLIMIT": JobReport(JobState.ENDED, EndReason.TIMED_OUT, message="the wall time of its job was reached"),
    "TERM_DEADLINE": JobReport(JobState.ENDED, EndReason.TIMED_OUT, message="the deadline of its job was reached"),
    "TERM_MEMLIMIT": JobReport(
        JobState.ENDED, EndReason.EXITED, -9, "was killed by LSF for lack of memory: it used more than it asked for"
    ),
    "TERM_OWNER": JobReport(JobState.ENDED, EndReason.CANCELLED, message="was killed with bkill, not by autotune"),
    "TERM_FORCE_OWNER": JobReport(
        JobState.ENDED, EndReason.CANCELLED, message="was killed with bkill, not by autotune"
    ),
    "TERM_ADMIN": JobReport(JobState.ENDED, EndReason.CANCELLED, message="was killed by an administrator"),
    "TERM_FORCE_ADMIN": JobReport(JobState.ENDED, EndReason.CANCELLED, message="was killed by an administrator"),
    "TERM_PREEMPT": JobReport(JobState.LOST, EndReason.PREEMPTED, message="was preempted by another job"),
    "TERM_REMOVE_HUNG_JOB": JobReport(JobState.LOST, message="the host of its job stopped answering"),
    "TERM_UNKNOWN": JobReport(JobState.LOST, message="LSF does not know how its job ended"),
}

_UNKNOWN_JOB = re.compile(r"Job <\S+> is not found|No (unfinished )?job found", re.IGNORECASE)
_NOTHING_TO_END = re.compile(r"is not found|No matching job found|Job has already finished", re.IGNORECASE)
_LATER = re.compile(
    r"Pending job threshold|job limit|Too many (pending )?jobs|batch (daemon|system) (is )?(not responding|down)|"
    r"System (temporarily )?(unavailable|busy)|LSF is down|Please wait|try (again )?later|"
    r"Failed in (an )?LSF library call",
    re.IGNORECASE,
)


def head(request: Request, site: Site) -> list[str]:
    """Return the lines for bsub(1). A slot is a core."""
    per_node = ceil(request.cores / request.nodes)
    memory_mib = None if request.memory_mib is None else -(-request.memory_mib // request.nodes)
    reserved = [
        *([f"mem={memory_mib}MB/host"] if memory_mib is not None else []),
        *(licence if "=" in licence else f"{licence}=1" for licence in site.licences),
    ]
    options = [
        f"-J {request.name}",
        *_site_options(site),
        f"-n {request.cores}",
        f'-R "span[ptile={per_node}]"',
        *([f'-R "rusage[{",".join(reserved)}]"'] if reserved else []),
        *([f'-gpu "num={ceil(request.gpus / request.nodes)}"'] if request.gpus else []),
        f"-W {request.walltime.rpartition(':')[0]}",
        *(["-x"] if site.exclusive else []),
        # autotune repeats a run in an empty folder; LSF would do so in the folder of the interrupted run.
        "-rn",
        # Variables of the shell that runs autotune must not change the measurement.
        "-env none",
        f"-oo {SCHEDULER_LOG}",
        *site.directives,
        *_place(request.place),
    ]
    return [f"#BSUB {option}" for option in options]


def _place(place: Place) -> list[str]:
    """Return the option for the host to use or avoid: bsub(1), -m and -R. Several `select` sections must all hold."""
    if place.host:
        return [f'-m "{place.host}"']
    others = " && ".join(f"hname!='{host}'" for host in place.avoid)
    return [f'-R "select[{others}]"'] if others else []


def _site_options(site: Site) -> list[str]:
    return [
        *([f"-P {site.account}"] if site.account else []),
        *([f"-q {site.queue}"] if site.queue else []),
        *([f"-sla {site.qos}"] if site.qos else []),
    ]


def winner_head(request: WinnerRequest) -> list[str]:
    """Return the lines at the top of the winner's job script."""
    site = request.site
    memory_mib = request.memory_per_node_mib
    reserved = [f"mem={memory_mib}MB/host"] if memory_mib is not None else []
    reserved += [licence if "=" in licence else f"{licence}=1" for licence in (site.licences if site else ())]
    options = [
        f"-J {request.name}",
        f"-n {request.cores}",
        f'-R "span[ptile={ceil(request.cores / request.nodes)}]"',
        *([f'-R "rusage[{",".join(reserved)}]"'] if reserved else []),
        *([f'-gpu "num={ceil(request.gpus / request.nodes)}"'] if request.gpus else []),
        f"-W {request.walltime.rpartition(':')[0]}",
        *(["-x"] if request.exclusive else []),
        *([*_site_options(site), *site.directives] if site else []),
    ]
    return [f"#BSUB {option}" for option in options]


def submit(_path: Path) -> list[str]:
    """Return the command that submits a script, which bsub reads from standard input.

    Given the script's name instead, bsub would run it as a command, and not in all versions read its `#BSUB` lines.
    """
    return ["bsub"]


def job_id(answer: str) -> str | None:
    """Parse the answer of bsub: `Job <ID> is submitted to queue <QUEUE>.`"""
    return find_job_id(answer, _JOB_IDS)


def status(ids: Sequence[str]) -> list[str]:
    """Return the command that queries jobs, including those that ended within the last hour."""
    return ["bjobs", "-a", "-noheader", "-o", _FIELDS, *ids]


def states(answer: str, complaint: str, code: int) -> Mapping[str, JobReport] | None:
    """Parse the answer of bjobs, which fails if it has forgotten one of the jobs but lists the others."""
    if code != 0 and not every_line_matches(_UNKNOWN_JOB, complaint):
        return None
    by_number = {}
    for line in answer.splitlines():
        fields = [field.strip() for field in line.split(_SEPARATOR, 4)]
        if len(fields) == 5:
            number, state, exit_code, reason, waits_for = fields
            by_number[number] = _parse_job(state, exit_code, reason, waits_for)
    return by_number


def _parse_job(state: str, exit_code: str, reason: str, waits_for: str) -> JobReport:
    if state in _WAITING:
        return JobReport(JobState.QUEUED, message=f"waits: {waits_for}" if waits_for not in {"", _NOTHING} else "")
    if state == "DONE":
        return JobReport(JobState.ENDED, EndReason.EXITED, 0)
    if state == "ZOMBI":
        return JobReport(JobState.LOST, message="the host of its job stopped answering")
    if state != "EXIT":
        return JobReport(JobState.RUNNING, suspended=state in _SUSPENDED)
    known = _ENDS.get(reason.partition(":")[0])
    return known or JobReport(JobState.ENDED, EndReason.EXITED, count_of(exit_code))


def cancel(ids: Sequence[str]) -> list[str]:
    """Return the command that ends jobs."""
    return ["bkill", *ids]


def can_wait(complaint: str) -> bool:
    """Whether a refused submission will be accepted later."""
    return _LATER.search(complaint) is not None


def allocation(environment: Mapping[str, str], _read_text: ReadText) -> Allocation | None:
    """Return the job of this process, with the hosts that its environment lists."""
    if not environment.get("LSB_JOBID"):
        return None
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    counts = map(count_of, words[1::2])
    pairs = [(host, count) for host, count in zip(words[::2], counts, strict=False) if count is not None]
    return Allocation(
        "LSF", environment["LSB_JOBID"], tuple(host for host, _ in pairs), tuple(count for _, count in pairs)
    )


LSF = BatchSystem(
    "LSF",
    Scheduler(
        name="lsf",
        head=head,
        submit=submit,
        job_id=job_id,
        status=status,
        states=states,
        cancel=cancel,
        can_wait=can_wait,
        nothing_to_end=_NOTHING_TO_END,
        number_variable="LSB_JOBID",
        variables=("LSF_ENVDIR", "LSF_SERVERDIR", "LSF_LIBDIR", "LSF_BINDIR"),
        reads_input=True,
        can_place=lambda _: True,
        host_variable="LSB_HOSTS",
    ),
    marker_commands=("bsub",),
    session_variable="LSB_JOBID",
    allocation=allocation,
    winner=WinnerForm(winner_head, "${LS_SUBCWD:-$PWD}", "bsub <"),
    experimental=True,
)
