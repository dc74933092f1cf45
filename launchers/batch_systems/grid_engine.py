"""Grid Engine: qsub, qstat and qdel (manual pages of Son of Grid Engine 8.1.9, and its real answers).

A job of several cores needs a parallel environment, whose name each site chooses. The site's directive `-pe NAME`,
without a number, names it, and autotune adds the number of slots. Without the directive it is `smp` on one node and
`mpi` on several.
"""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

from launchers.batch_systems import reserved
from launchers.batch_systems.base import JobReport, ReasonsQuery, Request, Scheduler, find_job_id
from launchers.batch_systems.numbers import count_of
from launchers.batch_systems.system import (
    Allocation,
    BatchSystem,
    LimitsQuery,
    ReadText,
    WinnerForm,
    WinnerRequest,
)
from launchers.job import JobState, Place
from launchers.site import Site

_JOB_IDS = (re.compile(r"\bYour job(?:-array)? (\d+)\b"), re.compile(r"^(\d+)$"))
_PARALLEL_ENVIRONMENT = re.compile(r"-pe\s+(\S+)")
_JOB = re.compile(r"<job_list\b.*?<JB_job_number>(\d+)</JB_job_number>.*?<state>(\w+)</state>", re.DOTALL)
_FAULTY = JobReport(JobState.QUEUED, message="could not be started (Eqw; `qmod -cj NUMBER` clears it)")
# An entry of `qstat -j`: a name and a value, which may continue on indented lines.
_DETAIL = re.compile(r"^(\w[^:\n]*?)(?: +\d+)?: *(.*(?:\n {4,}\S.*)*)", re.MULTILINE)
# `qstat -j` prints such a line for each queue instance; other lines summarize them.
_PLACE = re.compile(r'queue instance "')
_HELD = "Job is in hold state"
_WHEN = re.compile(r"\d+/\d+/\d+ [\d:]+ \[\d+:\d+\]: ")
_REASON_CHARACTERS = 200

# Submissions that will be accepted later: limits on the number of jobs, and a master that is away or overloaded.
_LATER = re.compile(
    r"only \d+ jobs? (is|are) allowed|commlib error|unable to (contact|send message to) qmaster|"
    r"got (select|send) error|timeout|try again",
    re.IGNORECASE,
)
_NOTHING_TO_END = re.compile(
    r"job \"\d+\" does not exist|is already in deletion|has deleted job|has registered the job \d+ for deletion",
    re.IGNORECASE,
)
_RESERVED: Mapping[str, str] = {
    **dict.fromkeys(("-o", "-e", "-j"), reserved.OUTPUT),
    **dict.fromkeys(("-wd", "-cwd"), reserved.FOLDER),
    "-N": reserved.NAME,
    "-t": reserved.ARRAY,
    **dict.fromkeys(("-b", "-S"), reserved.SCRIPT),
    "-sync": reserved.WAIT,
    "-r": reserved.RERUN,
}

_LIMIT = re.compile(r"^(max_u_jobs|max_jobs|max_aj_instances|max_aj_tasks)\s+(\S+)")
_NO_LIMIT = frozenset({"0", "NONE", "UNLIMITED", "none"})


def head(request: Request, site: Site) -> list[str]:
    """Return the lines for qsub(1)."""
    slots = _slots(request.cores, request.nodes, site)
    options = [
        f"-N {request.name}",
        *_parallel(slots, request.nodes, site),
        *([f"-l gpu={ceil(request.gpus / request.nodes)}"] if request.gpus else []),
        # Grid Engine counts memory per slot.
        *([f"-l h_vmem={ceil(request.memory_mib / slots)}M"] if request.memory_mib is not None else []),
        f"-l h_rt={request.walltime}",
        # Not in the job's own folder: the job fails if the folder's name contains a dollar sign or a line break.
        *("-wd /", "-j y", "-o /dev/null"),
        # Some sites' queues ignore the script's first line; they start this shell as a login shell, too.
        "-S /bin/bash",
        # autotune repeats a run in an empty folder; Grid Engine would do so in the folder of the interrupted run.
        "-r n",
        # Send SIGUSR2 before SIGKILL, so that the program can end in order and its supervisor can record how.
        "-notify",
        *site_options(site),
        *_place(request.place),
    ]
    return [f"#$ {option}" for option in options]


def site_options(site: Site) -> list[str]:
    """Return the options that all jobs at a site share."""
    return [
        *([f"-P {site.account}"] if site.account else []),
        *([f"-q {site.queue}"] if site.queue else []),
        *(f"-l {licence if '=' in licence else f'{licence}=1'}" for licence in site.licences),
        *(directive for directive in site.directives if _PARALLEL_ENVIRONMENT.fullmatch(directive) is None),
    ]


def _place(place: Place) -> list[str]:
    """Return the option for the host to use or avoid, an expression as in sge_types(1)."""
    if place.host:
        return [f"-l hostname={place.host}"]
    return [f"-l hostname=!({'|'.join(place.avoid)})"] if place.avoid else []


def _slots(cores: int, nodes: int, site: Site | None) -> int:
    """Return the number of slots, each a core; several nodes can only be requested with all of their cores."""
    if site is None or not (site.exclusive or nodes > 1):
        return cores
    return max(cores, nodes * site.cores_per_node)


def _parallel(slots: int, nodes: int, site: Site | None) -> list[str]:
    named = (
        [match[1] for directive in site.directives if (match := _PARALLEL_ENVIRONMENT.fullmatch(directive))]
        if site
        else []
    )
    name = named[0] if named else "smp" if nodes == 1 else "mpi"
    return [f"-pe {name} {slots}"] if slots > 1 else []


def submit(path: Path) -> list[str]:
    """Return the command that submits a script. It names the file only, so that the folder's name does not matter."""
    return ["qsub", "-terse", path.name]


def job_id(answer: str) -> str | None:
    """Parse the answer of `qsub -terse`: a number; some sites' qsub ignores the option."""
    return find_job_id(answer, _JOB_IDS)


def status(_ids: Sequence[str]) -> list[str]:
    """Return the command that queries all jobs of this user: qstat takes no list of jobs."""
    return ["qstat", "-xml"]


def states(answer: str, _complaint: str, code: int) -> Mapping[str, JobReport] | None:
    """Parse the answer of qstat, which does not list ended jobs."""
    return {number: _parse_job(letters) for number, letters in _JOB.findall(answer)} if code == 0 else None


def why_waiting(ids: Sequence[str]) -> list[str]:
    """Return the command that asks why jobs wait."""
    return ["qstat", "-j", ",".join(ids)]


def reasons(answer: str) -> Mapping[str, str]:
    """Parse the answer of `qstat -j`: why a job could not be started, or else why it was not scheduled.

    Reasons of a held job are left out, since only the hold matters. A site may switch all reasons off
    (`schedd_job_info`).
    """
    found: dict[str, str] = {}
    number = ""
    for match in _DETAIL.finditer(answer):
        name, lines = match[1], [line.strip() for line in match[2].splitlines() if line.strip()]
        if name == "job_number":
            number = lines[0] if lines else ""
        elif name == "error reason":
            found[number] = _WHEN.sub("", " ".join(lines))[:_REASON_CHARACTERS]
        elif name == "scheduling info" and lines and not lines[0].startswith("(") and _HELD not in lines:
            in_all = [line for line in lines if not _PLACE.match(line)]
            found.setdefault(number, "; ".join(in_all or lines)[:_REASON_CHARACTERS])
    return found


def _parse_job(letters: str) -> JobReport:
    """Parse the letters of a state: qstat(1), "Full Format"."""
    if "E" in letters:
        return _FAULTY
    if "w" in letters:
        return JobReport(JobState.QUEUED, message="is held (qrls lets it go)" if "h" in letters else "")
    return JobReport(JobState.RUNNING, suspended=not set(letters).isdisjoint("sSTN"))


def cancel(ids: Sequence[str]) -> list[str]:
    """Return the command that ends jobs."""
    return ["qdel", *ids]


def can_wait(complaint: str) -> bool:
    """Whether a refused submission will be accepted later."""
    return _LATER.search(complaint) is not None


def allocation(environment: Mapping[str, str], read_text: ReadText) -> Allocation | None:
    """Return the job of this process, from its environment and its file of hosts.

    The file has lines `HOST SLOTS QUEUE PROCESSORS`.
    """
    if not (environment.get("JOB_ID") and environment.get("SGE_ROOT")):
        return None
    try:
        lines = [line.split() for line in read_text(environment["PE_HOSTFILE"]).splitlines()]
    except (KeyError, OSError):
        lines = []
    slots = [(words[0], count) for words in lines if len(words) > 1 and (count := count_of(words[1])) is not None]
    return Allocation(
        "Grid Engine",
        environment["JOB_ID"],
        tuple(host for host, _ in slots),
        tuple(cores for _, cores in slots),
    )


def reserved_in(directive: str) -> Mapping[str, str]:
    """Return the options of a directive that only the job may set, each with the reason."""
    words = directive.split()
    taken = {word: _RESERVED[word] for word in words if word in _RESERVED}
    if "-pe" in words and _PARALLEL_ENVIRONMENT.fullmatch(directive) is None:
        taken["-pe"] = "each run sets the number of slots; write -pe NAME without it"
    resources = re.findall(r"(?:^|\s)-l\s+(\S+)", directive)
    if any(part.partition("=")[0] in {"h_rt", "s_rt"} for value in resources for part in value.split(",")):
        taken["-l h_rt"] = reserved.TIME
    return taken


def cluster_limits(answer: str) -> tuple[str, ...]:
    """Parse the answer of `qconf -sconf`."""
    matches = [match for line in answer.splitlines() if (match := _LIMIT.match(line))]
    return tuple(f"cluster: {match[1]} {match[2]}" for match in matches if match[2] not in _NO_LIMIT)


def winner_head(request: WinnerRequest) -> list[str]:
    """Return the lines at the top of the winner's job script."""
    slots, memory_mib = _slots(request.cores, request.nodes, request.site), request.memory_per_node_mib
    options = [
        f"-N {request.name}",
        *_parallel(slots, request.nodes, request.site),
        *([f"-l gpu={ceil(request.gpus / request.nodes)}"] if request.gpus else []),
        *([f"-l h_vmem={ceil(request.nodes * memory_mib / slots)}M"] if memory_mib is not None else []),
        f"-l h_rt={request.walltime}",
        "-S /bin/bash",
        *(site_options(request.site) if request.site else []),
    ]
    return [f"#$ {option}" for option in options]


GRID_ENGINE = BatchSystem(
    "Grid Engine",
    Scheduler(
        name="grid-engine",
        head=head,
        submit=submit,
        job_id=job_id,
        status=status,
        states=states,
        cancel=cancel,
        can_wait=can_wait,
        nothing_to_end=_NOTHING_TO_END,
        number_variable="JOB_ID",
        variables=("SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_CLUSTER_NAME"),
        reports_ended=False,
        reasons=ReasonsQuery(why_waiting, reasons),
        can_place=lambda _: True,
        host_variable="HOSTNAME",
    ),
    marker_commands=("qconf",),
    session_variable="SGE_TASK_ID",
    allocation=allocation,
    limits=[LimitsQuery(lambda _queue: ["qconf", "-sconf"], cluster_limits)],
    reserved=reserved_in,
    winner=WinnerForm(winner_head, "${SGE_O_WORKDIR:-$PWD}", "qsub"),
)
