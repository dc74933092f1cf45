"""PBS Professional and OpenPBS: qsub, qstat and qdel (manual pages of OpenPBS 23.06; NCI's pages on Gadi)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from launchers.batch_systems.base import SCHEDULER_LOG, Request, Scheduler, Seen, is_only_of
from launchers.job import EndReason, JobState
from launchers.site import Site

_MIB_PER_GIB = 1024

# qstat(1B), "job_state"; one that is not known here is one that a job passes through.
_WAITING = {"Q": "", "W": "waits for its time", "T": "is moved between queues", "H": "is held by the scheduler"}
_SUSPENDED = frozenset({"S", "U"})
_FINISHED = frozenset({"F", "X", "C"})
# Codes that PBS itself gives a job: JOB_EXEC_* in job.h of OpenPBS.
_OVER_WALLTIME = -29
_OVER_MEMORY = frozenset({-26, -27})
# A code above this is a signal; TERM and KILL are what qdel sends.
_SIGNALS = 256
_QDEL_SIGNALS = frozenset({_SIGNALS + 15, _SIGNALS + 9})
_DELETED = "91"  # substate: ended before its time, by qdel or by the server

_CANCELLED = Seen(JobState.ENDED, EndReason.CANCELLED, message="was deleted with qdel, not by autotune")

# What qstat says of jobs that it has nothing to show for; everything else it complains of is trouble of its own.
_OF_A_JOB = re.compile(r"Unknown Job Id|Job has finished", re.IGNORECASE)
_NOTHING_TO_END = re.compile(r"Unknown Job Id|Job has finished|Request invalid for state of job", re.IGNORECASE)
_NO_HISTORY = "not configured to maintain job history"
# Submissions that will be taken later: limits on the number of jobs, and a server that is away or overloaded.
_LATER = re.compile(
    r"would exceed|Maximum number of jobs|already in (queue|complex)|per-user limit|queued jobs? limit|"
    r"cannot connect to server|Connection refused|No Permission to connect|No free connections|"
    r"Communication failure|timed out|try again|(?<!not )busy",
    re.IGNORECASE,
)


def head(request: Request, site: Site) -> list[str]:
    """Return the lines for qsub(1B): in chunks (`-l select`), or in the older form that Gadi wants."""
    options = [
        f"-N {request.name}",
        *(_chunks(request, site) if site.by_chunks else _totals(request, site)),
        f"-l walltime={request.walltime}",
        # A run is made again by autotune, in an empty folder, not by PBS in the one it was interrupted in.
        "-r n",
        # Relative, so that no sign of the folder's name is taken for the end of a host's.
        "-j oe",
        f"-o {SCHEDULER_LOG}",
        *of_site(site),
    ]
    return [f"#PBS {option}" for option in options]


def of_site(site: Site) -> list[str]:
    """Return the options that are the same for every job at a site."""
    counted = [licence for licence in site.licences if "=" in licence]
    named = [licence for licence in site.licences if "=" not in licence]
    return [
        *([f"-P {site.account}"] if site.account else []),
        *([f"-q {site.queue}"] if site.queue else []),
        *([f"-l qos={site.qos}"] if site.qos else []),
        *([f"-l software={','.join(named)}"] if named else []),
        *(f"-l {licence}" for licence in counted),
        *site.directives,
    ]


def of_nodes(nodes: int, site: Site) -> list[str]:
    """Return the options for whole nodes of a site that knows totals only."""
    memory = [] if site.memory_bytes is None else [f"-l mem={_memory(nodes * site.memory_bytes // 2**20)}"]
    return [f"-l ncpus={nodes * site.cores_per_node}", *memory]


def _totals(request: Request, site: Site) -> list[str]:
    """Return what the job needs in all. Several nodes can only be asked for by all of their cores."""
    whole = site.exclusive or request.nodes > 1
    return [
        f"-l ncpus={request.nodes * site.cores_per_node if whole else request.cores}",
        *([f"-l ngpus={request.gpus}"] if request.gpus else []),
        *([f"-l mem={_memory(request.memory_mib)}"] if request.memory_mib is not None else []),
    ]


def _chunks(request: Request, site: Site) -> list[str]:
    """Return what the job needs of each node; nodes may differ by a rank, or by a GPU."""
    memory_mib = None if request.memory_mib is None else -(-request.memory_mib // request.nodes)
    nodes = zip(_shares(request.tasks, request.nodes), _shares(request.gpus, request.nodes), strict=True)
    chunks = []
    for (ranks, gpus), alike in groupby(nodes):
        parts = [
            f"{sum(1 for _ in alike)}:ncpus={max(1, ranks) * request.cores_per_task}:mpiprocs={ranks}",
            *([f"ngpus={gpus}"] if gpus else []),
            *([f"mem={_memory(memory_mib)}"] if memory_mib is not None else []),
        ]
        chunks.append(":".join(parts))
    place = ["-l place=scatter:excl"] if site.exclusive else ["-l place=scatter"] if request.nodes > 1 else []
    return [f"-l select={'+'.join(chunks)}", *place]


def _shares(number: int, nodes: int) -> list[int]:
    """Share things out among nodes, the first ones getting one more."""
    each, more = divmod(number, nodes)
    return [each + (node < more) for node in range(nodes)]


def _memory(mib: int) -> str:
    return f"{mib}MB" if mib % _MIB_PER_GIB else f"{mib // _MIB_PER_GIB}GB"


def submit(path: Path) -> list[str]:
    """Return the command that submits a script; by its name alone, whatever the name of its folder."""
    return ["qsub", path.name]


def job_id(answer: str) -> str | None:
    """Read what qsub printed: `NUMBER.SERVER`. Sites let it print more, before or after."""
    match = re.search(r"^(\d+(?:\.[\w.-]+)?)\s*$", answer, re.MULTILINE)
    return match[1] if match else None


def status(ids: Sequence[str]) -> list[str]:
    """Return the command that asks for jobs, those included that have ended.

    As text: as JSON, OpenPBS's newest qstat shows only the first of several jobs (its issue 2672).
    """
    return ["qstat", "-x", "-f", *ids]


def status_without_history(ids: Sequence[str]) -> list[str]:
    """Return the command that asks a server which forgets the jobs that have ended, and refuses `-x`."""
    return ["qstat", "-f", *ids]


def states(answer: str, complaint: str, code: int) -> Mapping[str, Seen] | None:
    """Read what qstat printed. Its code is that of its last complaint, and others may be shown nevertheless."""
    if code != 0 and not is_only_of(_OF_A_JOB, complaint):
        return None
    return {number: _seen(attributes) for number, attributes in _jobs(answer)}


def _jobs(answer: str) -> Iterator[tuple[str, dict[str, str]]]:
    for part in re.split(r"^Job Id: *", answer, flags=re.MULTILINE)[1:]:
        number, _, lines = part.partition("\n")
        attributes: dict[str, str] = {}
        # A long value goes on after a tabulator. The first of a name is the job's own: variables may hold any lines.
        for name, value in re.findall(r"^ {4}([\w.]+) = (.*(?:\n\t.*)*)", lines, re.MULTILINE):
            attributes.setdefault(name, value.replace("\n\t", ""))
        yield number.strip(), attributes


def _seen(attributes: Mapping[str, str]) -> Seen:
    state, comment = attributes.get("job_state", ""), attributes.get("comment", "")
    if state in _WAITING:
        return Seen(JobState.QUEUED, message="; ".join(filter(None, (_WAITING[state], comment))))
    return _ended(attributes, comment) if state in _FINISHED else Seen(JobState.RUNNING, suspended=state in _SUSPENDED)


def _ended(attributes: Mapping[str, str], comment: str) -> Seen:
    code = _number(attributes.get("Exit_status", ""))
    if "preempted" in comment.lower():
        return Seen(JobState.LOST, EndReason.PREEMPTED, message=f"was preempted: {comment}")
    if code == _OVER_WALLTIME or "exceeded resource walltime" in comment:
        return Seen(JobState.ENDED, EndReason.TIMED_OUT, message="the wall time of its job was over")
    if code in _OVER_MEMORY:
        return Seen(JobState.ENDED, EndReason.EXITED, -9, "was killed by PBS for more memory than it asked for")
    if code is not None and code < 0:
        return Seen(JobState.LOST, message=f"PBS could not run it (Exit_status {code}): {comment or 'no comment'}")
    if code is None or attributes.get("substate") == _DELETED or code in _QDEL_SIGNALS:
        return _CANCELLED
    return Seen(JobState.ENDED, EndReason.EXITED, _SIGNALS - code if code > _SIGNALS else code)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def cancel(ids: Sequence[str]) -> list[str]:
    """Return the command that ends jobs."""
    return ["qdel", *ids]


def can_wait(complaint: str) -> bool:
    """Whether a refused submission will be taken later."""
    return _LATER.search(complaint) is not None


def simpler(complaint: str) -> Scheduler | None:
    """Return how a server is asked that keeps no history; how a job ended, its own status file tells there."""
    return PBS_WITHOUT_HISTORY if _NO_HISTORY in complaint else None


PBS = Scheduler("pbs", head, submit, job_id, status, states, cancel, can_wait, _NOTHING_TO_END, simpler=simpler)
PBS_WITHOUT_HISTORY = replace(PBS, status=status_without_history)
