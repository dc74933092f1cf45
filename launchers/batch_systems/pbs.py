"""PBS Professional and OpenPBS: qsub, qstat and qdel (manual pages of OpenPBS 23.06; NCI's pages on Gadi)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path

from launchers.batch_systems import reserved
from launchers.batch_systems.base import (
    SCHEDULER_LOG,
    HostsQuery,
    JobReport,
    Refusal,
    Request,
    Scheduler,
    every_line_matches,
    find_job_id,
    refusal_of,
)
from launchers.batch_systems.numbers import count_of, hours_s, trailing_number
from launchers.batch_systems.system import (
    Allocation,
    BatchSystem,
    EndQuery,
    LimitsQuery,
    PilotForm,
    PilotRequest,
    ReadText,
    WinnerForm,
    WinnerRequest,
)
from launchers.job import EndReason, JobState, Place
from launchers.site import Site

# Brackets mark an array of jobs. A server's name may begin with a digit; within a line that could be any number.
_NUMBER, _SERVER = r"\d+(?:\[\d*\])?", r"[\w-]+(?:\.[\w-]+)*"
_JOB_IDS = tuple(
    re.compile(form)
    for form in (
        rf"^({_NUMBER}\.{_SERVER})$",
        rf"(?i:\bjob\b).*?\b({_NUMBER}\.(?=[A-Za-z]){_SERVER})",
        rf"^({_NUMBER})$",
    )
)
_MIB_PER_GIB = 1024

# qstat(1B), "job_state". States that are not listed here are transitions of a running job.
_WAITING = {"Q": "", "W": "waits for its time", "T": "is moved between queues", "H": "is held"}
# pbs_job_attributes(7B), "Hold_Types".
_HOLDERS = {"u": "the user (qrls lets it go)", "o": "an operator", "s": "the system", "p": "a bad password"}
_NEVER = "Can Never Run"  # src/scheduler/constant.h of OpenPBS
_SUSPENDED = frozenset({"S", "U"})
_FINISHED = frozenset({"F", "X", "C"})
# Exit codes that PBS itself gives a job: JOB_EXEC_* in job.h of OpenPBS.
_OVER_WALLTIME = -29
_OVER_MEMORY = frozenset({-26, -27})
_NODE_LOST = -20
# A code above this is a signal. qdel sends TERM and KILL, but others may, too.
_SIGNALS = 256
_QDEL_SIGNALS = frozenset({_SIGNALS + 15, _SIGNALS + 9})
_DELETED = "91"  # substate: ended before its time, by qdel or by the server
# The scheduler deletes a job as a person does, but with its own name in the comment.
_DELETED_BY = re.compile(r"terminated by ([^\s@]+@\S+)")
_BY_THE_SCHEDULER = "terminated by Scheduler@"

_TIMED_OUT = JobReport(JobState.ENDED, EndReason.TIMED_OUT, message="the wall time of its job was reached")
_OUT_OF_MEMORY = JobReport(
    JobState.ENDED, EndReason.EXITED, -9, "was killed by PBS for lack of memory: it used more than it asked for"
)
# src/resmom/mom_main.c of OpenPBS.
_KILLED = re.compile(r"^=>> PBS: job killed: (\w+)(.*)", re.MULTILINE)

# qstat's complaints about jobs that it cannot show; any other complaint is trouble of qstat itself.
_UNKNOWN_JOB = re.compile(r"Unknown Job Id|Job has finished", re.IGNORECASE)
_NOTHING_TO_END = re.compile(r"Unknown Job Id|Job has finished|Request invalid for state of job", re.IGNORECASE)
_NO_HISTORY = "not configured to maintain job history"
# qstat(1B): one request for all jobs, where qstat otherwise opens a connection for each. PBS 14 does not have it.
_EXPRESS = "-E"
# Include jobs that have ended.
_HISTORY = "-x"
_REFUSED_OPTION = re.compile(r"\busage:|(?:invalid|illegal|unknown|unrecogni[sz]ed) (?:option|argument)", re.IGNORECASE)
# Submissions that will be accepted later: limits on the number of jobs, maintenance, and a server that is away or
# overloaded (pbs_messages.c and cnt2server.c of OpenPBS; the messages about other limits are in `_REFUSALS`).
_LATER = re.compile(
    r"would exceed|Maximum number of jobs|"
    r"Queue is not enabled|Server shutting down|"
    # From a host with many connections at a time, and from a server that drops one.
    r"Invalid credential|Premature end of message|"
    r"cannot connect to server|Connection refused|connection table full|No free connections|Too many open connections|"
    r"Communication failure|Resource temporarily unavailable|timed out|try again|(?<!not )busy",
    re.IGNORECASE,
)
_REFUSALS = {
    Refusal.NO_ROOM: re.compile(r"would exceed .*limit on resource", re.IGNORECASE),
    Refusal.TOO_LARGE: re.compile(r"violates queue and/or server resource limits|exceeds allowable", re.IGNORECASE),
    Refusal.ALL_JOBS: re.compile(
        r"Unknown queue|No default queue|Access to queue is denied|Unknown resource|Invalid Account|"
        r"Unauthorized Request|Access from host not allowed|Bad [UG]ID for job execution",
        re.IGNORECASE,
    ),
}

_RESERVED: Mapping[str, str] = {
    **dict.fromkeys(("-o", "-e", "-j"), reserved.OUTPUT),
    "-N": reserved.NAME,
    **dict.fromkeys(("-J", "-t"), reserved.ARRAY),
    "-I": reserved.SCRIPT,
    "-r": reserved.RERUN,
}
_RESERVED_RESOURCES: Mapping[str, str] = {
    "walltime": reserved.TIME,
    **dict.fromkeys(("select", "nodes", "ncpus"), reserved.SIZE),
}

# pbs_node_attributes(7B), "state": nodes that jobs use will become free; others are down, offline or asleep.
_SERVING = frozenset({"free", "job-busy", "job-exclusive", "<various>"})
_LIMIT = re.compile(r"^ {4}((?:max_|resources_max|resources_default|enabled|started)[\w.]*) = (.*)$")


def head(request: Request, site: Site) -> list[str]:
    """Return the lines for qsub(1B): in chunks (`-l select`), or in the older form of totals that Gadi wants."""
    options = [
        f"-N {request.name}",
        *(_chunks(request, site) if site.by_chunks else _totals(request, site)),
        f"-l walltime={request.walltime}",
        # autotune repeats a run in an empty folder; PBS would do so in the folder of the interrupted run.
        "-r n",
        # A relative path, because PBS takes a colon in the folder's name for the end of a host name.
        "-j oe",
        f"-o {SCHEDULER_LOG}",
        *site_options(site),
    ]
    return [*(f"#PBS {option}" for option in options), *_host_lines(request.nodes)]


def _host_lines(nodes: int) -> list[str]:
    """Return the lines that tell Open MPI its hosts, which it does not know if it was built without PBS (`tm`).

    It then starts its daemons by ssh. With `tm`, and under `--host`, the lines change nothing.
    """
    names = ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile")
    return [f'export {name}="$PBS_NODEFILE"' for name in names] if nodes > 1 else []


def site_options(site: Site) -> list[str]:
    """Return the options that all jobs at a site share."""
    counted = [licence for licence in site.licences if "=" in licence]
    named = [licence for licence in site.licences if "=" not in licence]
    return [
        *([f"-P {site.account}"] if site.account else []),
        *([f"-q {site.queue}"] if site.queue else []),
        *([f"-A {site.account_name}"] if site.account_name else []),
        *([f"-W group_list={site.group}"] if site.group else []),
        *([f"-l software={','.join(named)}"] if named else []),
        *(f"-l {licence}" for licence in counted),
        *site.directives,
    ]


def whole_node_options(nodes: int, site: Site) -> list[str]:
    """Return the options for whole nodes at a site that takes only totals."""
    memory = [] if site.memory_bytes is None else [f"-l mem={_memory(nodes * site.memory_bytes // 2**20)}"]
    return [f"-l ncpus={nodes * site.cores_per_node}", *memory]


def _totals(request: Request, site: Site) -> list[str]:
    """Return the options for the job's totals. Several nodes can only be requested with all of their cores."""
    whole = site.exclusive or request.nodes > 1
    return [
        f"-l ncpus={request.nodes * site.cores_per_node if whole else request.cores}",
        *([f"-l ngpus={request.gpus}"] if request.gpus else []),
        *([f"-l mem={_memory(request.memory_mib)}"] if request.memory_mib is not None else []),
    ]


def _chunks(request: Request, site: Site) -> list[str]:
    """Return the options for the job's share of each node; nodes may differ by one rank or one GPU."""
    memory_mib = None if request.memory_mib is None else -(-request.memory_mib // request.nodes)
    nodes = zip(_shares(request.tasks, request.nodes), _shares(request.gpus, request.nodes), strict=True)
    chunks = []
    for (ranks, gpus), alike in groupby(nodes):
        parts = [
            f"{sum(1 for _ in alike)}:ncpus={max(1, ranks) * request.cores_per_task}:mpiprocs={ranks}",
            *([f"ngpus={gpus}"] if gpus else []),
            *([f"mem={_memory(memory_mib)}"] if memory_mib is not None else []),
            *site.chunk,
            *_host_words(request.place),
        ]
        chunks.append(":".join(parts))
    placement = ["-l place=scatter:excl"] if site.exclusive else ["-l place=scatter"] if request.nodes > 1 else []
    return [f"-l select={'+'.join(chunks)}", *placement]


def _host_words(place: Place) -> list[str]:
    """Return the words of a chunk that name its host, which PBS knows without its domain."""
    return [f"host={place.host.partition('.')[0]}"] if place.host else []


def _shares(number: int, nodes: int) -> list[int]:
    """Divide `number` things among nodes; the first ones get one more."""
    each, more = divmod(number, nodes)
    return [each + (node < more) for node in range(nodes)]


def _memory(mib: int) -> str:
    return f"{mib}MB" if mib % _MIB_PER_GIB else f"{mib // _MIB_PER_GIB}GB"


def submit(path: Path) -> list[str]:
    """Return the command that submits a script. It names the file only, so that the folder's name does not matter."""
    return ["qsub", path.name]


def job_id(answer: str) -> str | None:
    """Parse the answer of qsub: `NUMBER.SERVER`."""
    return find_job_id(answer, _JOB_IDS)


def status(options: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Return the command that queries jobs, with those of `_EXPRESS` and `_HISTORY` that work here.

    It asks for text, since OpenPBS's newest qstat shows only the first of several jobs as JSON (its issue 2672).
    """
    return ["qstat", *options, "-f", *ids]


def states(answer: str, complaint: str, code: int) -> Mapping[str, JobReport] | None:
    """Parse the answer of qstat, whose exit code is that of its last complaint although it may list other jobs.

    With `-E` it complains about the last job only, and only if it can show none. On a server without a history it lists
    no job at all and exits with 0.
    """
    if _NO_HISTORY in complaint or (code != 0 and not every_line_matches(_UNKNOWN_JOB, complaint)):
        return None
    return {number: _parse_job(attributes) for number, attributes in _jobs(answer)}


def _jobs(answer: str) -> Iterator[tuple[str, dict[str, str]]]:
    for part in re.split(r"^Job Id: *", answer, flags=re.MULTILINE)[1:]:
        number, _, lines = part.partition("\n")
        attributes: dict[str, str] = {}
        # A long value continues on lines that begin with a tab. The first value of a name is the job's own, since a
        # variable's value may contain any lines.
        for name, value in re.findall(r"^ {4}([\w.]+) = (.*(?:\n\t.*)*)", lines, re.MULTILINE):
            attributes.setdefault(name, value.replace("\n\t", ""))
        yield number.strip(), attributes


def _parse_job(attributes: Mapping[str, str]) -> JobReport:
    state, comment = attributes.get("job_state", ""), attributes.get("comment", "")
    if state in _WAITING:
        words = _WAITING[state]
        holders = [who for letter, who in _HOLDERS.items() if letter in attributes.get("Hold_Types", "")]
        if state == "H" and holders:
            words = f"{words} by {' and '.join(holders)}"
        message = "; ".join(filter(None, (words, comment)))
        return JobReport(JobState.QUEUED, message=message, never_starts=comment.startswith(_NEVER))
    return (
        _parse_ended_job(attributes, comment)
        if state in _FINISHED
        else JobReport(JobState.RUNNING, suspended=state in _SUSPENDED)
    )


def end_in_log(text: str) -> JobReport | None:
    """Parse the line that PBS adds to the output of a job that it ends for a limit; None without such a line."""
    match = _KILLED.search(text)
    if match is None:
        return None
    if match[1] == "walltime":
        return _TIMED_OUT
    if match[1].endswith("mem"):
        return _OUT_OF_MEMORY
    return JobReport(JobState.ENDED, EndReason.CANCELLED, message=f"was ended by PBS: {match[1]}{match[2]}")


def _parse_ended_job(attributes: Mapping[str, str], comment: str) -> JobReport:
    code = _number(attributes.get("Exit_status", ""))
    if _BY_THE_SCHEDULER in comment:
        return JobReport(JobState.LOST, EndReason.PREEMPTED, message="was preempted: PBS deleted it for another job")
    if code == _OVER_WALLTIME or "exceeded resource walltime" in comment:
        return _TIMED_OUT
    if code in _OVER_MEMORY:
        return _OUT_OF_MEMORY
    if code is not None and code < 0:
        what = "its node failed, or PBS lost contact with it" if code == _NODE_LOST else "PBS could not run it"
        return JobReport(JobState.LOST, message=f"{what} (Exit_status {code}): {comment or 'no comment'}")
    substate = attributes.get("substate")
    if code is None or substate == _DELETED or (substate is None and code in _QDEL_SIGNALS):
        by = _DELETED_BY.search(comment)
        message = f"was deleted with qdel{f' by {by[1]}' if by else ''}, not by autotune"
        return JobReport(JobState.ENDED, EndReason.CANCELLED, message=message)
    return JobReport(JobState.ENDED, EndReason.EXITED, _SIGNALS - code if code > _SIGNALS else code)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def able_hosts(answer: str, site: Site, cores: int) -> list[str]:
    """Parse the answer of `pbsnodes -a`: hosts with `cores` cores that serve the site's queue, free ones first.

    pbsnodes(8B) sums up the vnodes of a host. PBS can start a job on a given host but cannot be told which to avoid.
    """
    able: dict[str, list[tuple[bool, str]]] = defaultdict(list)
    for part in re.split(r"\n\s*\n", answer.strip()):
        values = dict(re.findall(r"^\s+([\w.]+) = (.*?)\s*$", part, re.MULTILINE))
        host, state = values.get("resources_available.host"), values.get("state", "")
        fits = (count_of(values.get("resources_available.ncpus", "")) or 0) >= cores
        if host is not None and fits and set(state.split(",")) <= _SERVING:
            able[values.get("queue", "")].append((state != "free", host))
    # A queue with hosts of its own uses only those, and no other queue uses them.
    return [host for _, host in sorted(able.get(site.queue, able[""]))]


def cancel(ids: Sequence[str]) -> list[str]:
    """Return the command that ends jobs."""
    return ["qdel", *ids]


def can_wait(complaint: str) -> bool:
    """Whether a refused submission will be accepted later."""
    return _LATER.search(complaint) is not None


def fallback(options: Sequence[str], complaint: str) -> Scheduler | None:
    """Return how to query without the option that a complaint is about; None if it is about something else.

    Without a history, a job's own status file tells how it ended.
    """
    refused = _HISTORY if _NO_HISTORY in complaint else _EXPRESS if _REFUSED_OPTION.search(complaint) else ""
    return _scheduler([option for option in options if option != refused]) if refused in options else None


def reserved_in(directive: str) -> Mapping[str, str]:
    """Return the options of a directive that only the job may set, each with the reason."""
    taken = {}
    for option, value in re.findall(r"(?:^|\s)(-[A-Za-z])\s*(\S*)", directive):
        if option in _RESERVED:
            taken[option] = _RESERVED[option]
        elif option == "-l":
            names = (part.partition("=")[0] for part in value.split(","))
            taken |= {f"-l {name}": _RESERVED_RESOURCES[name] for name in names if name in _RESERVED_RESOURCES}
    return taken


def allocation(environment: Mapping[str, str], read_text: ReadText) -> Allocation | None:
    """Return the job of this process, with the hosts in its node file and the counts in its environment."""
    if not environment.get("PBS_JOBID"):
        return None
    try:
        lines = Counter(read_text(environment["PBS_NODEFILE"]).split())
    except (KeyError, OSError):
        lines = Counter()
    total = trailing_number(environment.get("PBS_NCPUS", environment.get("NCPUS", "")))
    hosts = tuple(lines)
    # A node file has a line per MPI process; with one process per host it says nothing about cores.
    each = total if environment.get("PBS_NCPUS") is None else total // max(1, len(hosts))
    cores = tuple(max(count, each) for count in lines.values())
    gpus = trailing_number(environment.get("PBS_NGPUS", "")) // max(1, len(hosts))
    return Allocation("PBS", environment["PBS_JOBID"], hosts, cores, gpus)


def end_of_job(answer: str, now: float) -> float | None:
    """Parse from `qstat -f` when a job ends, in seconds since 1970: its start plus its wall time.

    Without a start, use the time left by PBS's own count, which lags behind by minutes.
    """
    values = dict(re.findall(r"^\s*([\w.]+) = (.*?)\s*$", answer.replace("\n\t", ""), re.MULTILINE))
    walltime_s = hours_s(values.get("Resource_List.walltime", ""))
    if walltime_s is None:
        return None
    try:
        return datetime.strptime(values["stime"], "%a %b %d %H:%M:%S %Y").astimezone().timestamp() + walltime_s
    except (KeyError, ValueError):
        used_s = hours_s(values.get("resources_used.walltime", ""))
        return None if used_s is None else now + walltime_s - used_s


def queue_limits(answer: str) -> tuple[str, ...]:
    """Parse the answer of `qstat -Q -f`."""
    limits = []
    for part in re.split(r"^Queue: *", answer, flags=re.MULTILINE)[1:]:
        name, *lines = part.splitlines()
        values = [f"{match[1]} {match[2]}" for line in lines if (match := _LIMIT.match(line))]
        limits.append(f"queue {name.strip()}: {', '.join(values)}")
    return tuple(limits)


def winner_head(request: WinnerRequest) -> list[str]:
    """Return the lines at the top of the winner's job script."""
    site = request.site or Site("pbs")
    options = [
        f"-N {request.name}",
        *(_chunks(request.as_run, site) if site.by_chunks else _totals(request.as_run, site)),
        f"-l walltime={request.walltime}",
        *site_options(site),
    ]
    return [*(f"#PBS {option}" for option in options), *_host_lines(request.nodes)]


def pilot_head(request: PilotRequest) -> list[str]:
    """Return the lines at the top of a pilot's job script.

    Raises:
        ValueError: The number of cores of a node is not known.
    """
    selected = any(re.search(r"-l\s*(select|nodes|ncpus)\b", directive) for directive in request.directives)
    cores = request.cores_per_node
    if not selected and cores is None:
        msg = "PBS must be told how many cores a node has: --cores-per-node 48, or a directive such as -l ncpus=96"
        raise ValueError(msg)
    options = [
        f"-N {request.name}",
        *([] if selected else [f"-l select={request.nodes}:ncpus={cores}:mpiprocs={cores}", "-l place=scatter:excl"]),
        f"-l walltime={request.walltime}",
        "-j oe",
        *request.directives,
    ]
    return [f"#PBS {option}" for option in options]


def pilot_directives(site: Site, nodes: int) -> list[str]:
    """Return the options of a site for a pilot on whole nodes."""
    if not site.by_chunks:
        return [*site_options(site), *whole_node_options(nodes, site)]
    cores = site.cores_per_node
    kind = ":".join([f"{nodes}:ncpus={cores}:mpiprocs={cores}", *site.chunk])
    return [*site_options(site), *([f"-l select={kind}", "-l place=scatter:excl"] if site.chunk else [])]


def _scheduler(options: Sequence[str] = (_EXPRESS, _HISTORY)) -> Scheduler:
    return Scheduler(
        name="pbs",
        head=head,
        submit=submit,
        job_id=job_id,
        status=partial(status, options),
        states=states,
        cancel=cancel,
        can_wait=can_wait,
        nothing_to_end=_NOTHING_TO_END,
        number_variable="PBS_JOBID",
        variables=("PBS_CONF_FILE", "PBS_SERVER", "PBS_DEFAULT", "PBS_EXEC"),
        fallback=partial(fallback, options),
        end_in_log=end_in_log,
        reports_ended=_HISTORY in options,
        refusal=partial(refusal_of, _REFUSALS),
        can_place=lambda site: site.by_chunks and not any(word.startswith("host=") for word in site.chunk),
        hosts=HostsQuery(("pbsnodes", "-a"), able_hosts),
        host_variable="PBS_NODEFILE",
    )


_NODE = 'bash -l "$script" ray-node "$meeting"'

PBS = BatchSystem(
    "PBS",
    _scheduler(),
    marker_commands=("pbsnodes",),
    session_variable="PBS_JOBID",
    allocation=allocation,
    end=EndQuery(lambda number: ["qstat", "-f", number], end_of_job),
    limits=[LimitsQuery(lambda queue: ["qstat", "-Q", "-f", *([queue] if queue else [])], queue_limits)],
    reserved=reserved_in,
    unsupported_settings={
        "qos": 'PBS has no such resource; use queue, or what your site says: directives = ["-l NAME=VALUE"]'
    },
    winner=WinnerForm(winner_head, "${PBS_O_WORKDIR:-$PWD}", "qsub"),
    pilot=PilotForm(
        pilot_head,
        pilot_directives,
        "qsub",
        # The script runs on the first host of the file.
        others="awk 'NR == 1 { first = $0 } $0 != first && !seen[$0]++' \"$PBS_NODEFILE\"",
        start=[
            "    if command -v pbs_tmrsh >/dev/null; then",
            # pbs_tmrsh passes its arguments on unchanged; ssh joins them for a shell.
            f'        pbs_tmrsh "$host" {_NODE} </dev/null &',
            "    else",
            f'        ssh -o BatchMode=yes "$host" "$(printf \'%q \' {_NODE})" </dev/null &',
            "    fi",
        ],
        after=lambda number: ["-W", f"depend=afterany:{number}"],
    ),
)
