"""Slurm, 20.11 to 25.05: sbatch, squeue and scancel, and the environment of a job."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from launchers.batch_systems import reserved
from launchers.batch_systems.base import (
    JobReport,
    Refusal,
    Request,
    Scheduler,
    every_line_matches,
    find_job_id,
    refusal_of,
)
from launchers.batch_systems.numbers import trailing_number
from launchers.batch_systems.slurm_accounting import ENERGY
from launchers.batch_systems.slurm_hosts import expand_counts, expand_hosts
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

_JOB_IDS = (re.compile(r"\bSubmitted batch job (\d+)\b"), re.compile(r"^(\d+)(?:;\S+)?$"))
_SEPARATOR = "|"
_FIELDS = _SEPARATOR.join(("%i", "%T", "%r"))

_RUNNING = JobReport(JobState.RUNNING)
_SUSPENDED = JobReport(JobState.RUNNING, suspended=True)
# squeue(1), "JOB STATE CODES". States that are not listed here are transitions of a running job. Before 22.05 squeue
# does not list jobs in some of them.
_STATES: Mapping[str, JobReport] = {
    "PENDING": JobReport(JobState.QUEUED),
    "SUSPENDED": _SUSPENDED,
    "STOPPED": _SUSPENDED,
    "REQUEUED": JobReport(JobState.QUEUED),
    "REQUEUE_FED": JobReport(
        JobState.QUEUED, message="is put back into the queue for another cluster of the federation"
    ),
    "REQUEUE_HOLD": JobReport(JobState.QUEUED, message="is held by the scheduler"),
    "SPECIAL_EXIT": JobReport(JobState.QUEUED, message="is held by the scheduler"),
    "RESV_DEL_HOLD": JobReport(JobState.QUEUED, message="is held: its reservation is gone"),
    "COMPLETED": JobReport(JobState.ENDED, EndReason.EXITED, 0),
    "FAILED": JobReport(JobState.ENDED, EndReason.EXITED),
    "CANCELLED": JobReport(JobState.ENDED, EndReason.CANCELLED, message="was cancelled with scancel, not by autotune"),
    "REVOKED": JobReport(JobState.ENDED, EndReason.CANCELLED, message="was revoked by the scheduler"),
    "TIMEOUT": JobReport(JobState.ENDED, EndReason.TIMED_OUT, message="the wall time of its job was reached"),
    "DEADLINE": JobReport(JobState.ENDED, EndReason.TIMED_OUT, message="the deadline of its job was reached"),
    "OUT_OF_MEMORY": JobReport(JobState.ENDED, EndReason.EXITED, -9, "was killed for lack of memory by the scheduler"),
    "PREEMPTED": JobReport(JobState.LOST, EndReason.PREEMPTED, message="was preempted by another job"),
    "NODE_FAIL": JobReport(JobState.LOST, message="a node of its job failed"),
    "BOOT_FAIL": JobReport(JobState.LOST, message="a node of its job did not boot"),
}

# Submissions that will be accepted later: limits on the number of jobs, and a controller that is away or overloaded.
_LATER = re.compile(
    r"MaxSubmitJob|GrpSubmitJob|job limit reached|MaxJobCount|"
    r"Slurm temporarily unable to accept job|Unable to create job record, try again|Requested nodes are busy|"
    r"Unable to contact slurm controller|Socket timed out|"
    r"Connection refused|Zero Bytes were transmitted|Resource temporarily unavailable|"
    # Maintenance, and a limit on the rate of requests.
    r"Required partition not available|System submissions disabled|Partition in DOWN state|Rate limit exceeded|"
    r"in standby mode|Process is shutting down",
    re.IGNORECASE,
)
_UNKNOWN_JOB = re.compile(r"Invalid job id", re.IGNORECASE)
_NOTHING_TO_END = re.compile(r"Invalid job id|already completing or completed", re.IGNORECASE)

# src/common/slurm_errno.c of Slurm.
_REFUSALS = {
    Refusal.TOO_LARGE: re.compile(
        r"More processors requested than permitted|Requested node configuration is not available|"
        r"Node count specification invalid|CPU count specification invalid|Task count specification invalid|"
        r"Memory required by task is not available|Requested time limit is invalid|"
        # About a host that was requested by name.
        r"Invalid node name specified|Requested nodes not in this partition",
        re.IGNORECASE,
    ),
    Refusal.ALL_JOBS: re.compile(
        r"Invalid partition name specified|Invalid account or account/partition|Invalid qos specification|"
        r"User's group not permitted to use this partition|Requested reservation is invalid|"
        r"No partition specified or system default partition|Access denied to requested reservation|"
        r"Invalid (?:license|feature|wckey) specification|Invalid generic resource",
        re.IGNORECASE,
    ),
}

_RESERVED: Mapping[str, str] = {
    **dict.fromkeys(("--output", "-o", "--error", "-e"), reserved.OUTPUT),
    **dict.fromkeys(("--chdir", "-D"), reserved.FOLDER),
    **dict.fromkeys(("--job-name", "-J"), reserved.NAME),
    **dict.fromkeys(("--time", "-t"), reserved.TIME),
    **dict.fromkeys(("--nodes", "-N", "--ntasks", "-n", "--cpus-per-task", "-c"), reserved.SIZE),
    **dict.fromkeys(("--array", "-a"), reserved.ARRAY),
    **dict.fromkeys(("--clusters", "--cluster-constraint", "-M"), reserved.CLUSTER),
    **dict.fromkeys(("--wrap", "--test-only"), reserved.SCRIPT),
    **dict.fromkeys(("--wait", "-W"), reserved.WAIT),
    "--requeue": reserved.RERUN,
}
# Site directives about hardware threads, with which sbatch(1) takes no --threads-per-core.
_OF_THREADS = re.compile(r"(?:^|\s)(?:--hint|--threads-per-core|--ntasks-per-core|--extra-node-info|-B)")
_EXCLUDED = re.compile(r"(?:^|\s)(?:--exclude[=\s]\s*|-x\s*)([^\s\"']+)")
# Slurm accepts abbreviated long options; shorter abbreviations than this are not used in practice.
_SHORTEST = len("--err")

# squeue(1), "JOB REASON CODES", and src/common/job_state_reason.c of Slurm.
_IN_WORDS = {
    "Priority": "jobs of a higher priority are ahead of it",
    "Resources": "not enough of what it asks for is free",
    "Dependency": "another job has to end first",
    "DependencyNeverSatisfied": "the job that it depends on has failed: it will never start",
    "JobHeldUser": "is held by the user (scontrol release lets it go)",
    "JobHeldAdmin": "is held by an administrator",
    "JobHoldMaxRequeue": "is held: it was put back into the queue too often",
    "BeginTime": "its earliest start has not come yet",
    "Licenses": "no licence is free",
    "Reservation": "its reservation has not begun",
    "PartitionDown": "its partition is down: it takes jobs and starts none",
    "PartitionInactive": "its partition is not active",
    "PartitionNodeLimit": "it asks for more nodes than a job of its partition may have, or they are down",
    "PartitionTimeLimit": "it asks for more time than a job of its partition may have",
    "ReqNodeNotAvail": "nodes that it needs are down, or reserved",
    "NodeDown": "a node that it needs is down",
    "BadConstraints": "no node meets its constraints",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its quality of service is not valid",
    "AccountNotAllowed": "its partition does not take its account",
    "QOSNotAllowed": "its partition does not take its quality of service",
    "AccountingPolicy": "a limit of its account is reached",
    "PartitionConfig": "it asks for more than its partition may give",
    "ReservationDeleted": "its reservation is gone",
    "ReservationInvalid": "its reservation is not valid",
    "Constraints": "no node that is up meets its constraints",
    "SchedDefer": "it waits for the scheduler's next cycle",
    "DeadLine": "it can no longer end before its deadline",
    "BurstBufferResources": "not enough of the burst buffer is free",
    "BurstBufferStageIn": "its files are being copied into the burst buffer",
    "FedJobLock": "another cluster of the federation is deciding on it",
    "Prolog": "its nodes are being prepared",
    "Cleaning": "an earlier start of it is being cleaned up",
}
# Reasons of jobs that Slurm or an administrator put back into the queue (src/slurmctld/job_mgr.c); some have `_` for
# blanks.
_PUT_BACK = {
    "launch failed requeued held": "is held: its node could not start it",
    "launch failure limit exceeded requeued held": "is held: nodes failed to start it too often",
    "user env retrieval failed requeued held": "is held: its login shell on the node failed or took too long",
    "job requeued in held state": "is held: it was put back into the queue",
    "job requeued in special exit state": "is held: it was put back into the queue",
}
_LET_GO = "scontrol release lets it go"
_LIMITS = ("Assoc", "QOS", "Max")
_NO_REASON = frozenset({"", "None", "(null)"})

_CLUSTERS = "SLURM_CLUSTERS"
_CHOOSES = re.compile(r"(?:^|\s)(?:--constraint|-C|--nodelist|-w|--nodefile|-F|--partition|-p|--reservation)\b")
_LIMITS_SHOWN = ("State", "MaxTime", "DefaultTime", "MaxNodes", "MaxCPUsPerNode", "MaxMemPerNode", "PreemptMode")
_NO_LIMIT = frozenset({"", "0", "NONE", "UNLIMITED", "none"})
_NO_GRES = frozenset({"", "(null)"})


def head(request: Request, site: Site) -> list[str]:
    """Return the lines for sbatch(1), and one that makes `srun` in the job pass the environment on.

    `--export=NONE` is meant for the job, but also holds for every `srun` in it (sbatch(1), SLURM_EXPORT_ENV), including
    the one by which Open MPI starts its daemons on other nodes; these would then lack PATH and libraries.
    """
    options = [
        f"--job-name={request.name}",
        f"--nodes={request.nodes}",
        f"--ntasks={request.tasks}",
        f"--cpus-per-task={request.cores_per_task * request.threads_per_core}",
        *_threads(request.threads_per_core, site),
        *_gpus(request.gpus, request.nodes, site),
        *([f"--mem={-(-request.memory_mib // request.nodes)}M"] if request.memory_mib is not None else []),
        f"--time={request.walltime}",
        *(["--exclusive"] if site.exclusive else []),
        # Not a file in the job's folder: the job fails if the folder's name contains a % or a backslash.
        "--output=/dev/null",
        # autotune repeats a run in an empty folder; Slurm would do so in the folder of the interrupted run.
        "--no-requeue",
        # Variables of the shell that runs autotune must not change the measurement. Slurm takes the rest from the login
        # shell on the node; since 25.05, a job whose login shell does not answer is requeued and held.
        "--export=NONE",
        *site_options(site),
        *_place(request.place, site),
    ]
    return [*(f"#SBATCH {option}" for option in options), "export SLURM_EXPORT_ENV=ALL"]


def _place(place: Place, site: Site) -> list[str]:
    """Return the option for the host to use or avoid: sbatch(1), --nodelist and --exclude.

    Only the last --exclude counts, so it repeats the hosts that the site excludes.
    """
    if place.host:
        return [f"--nodelist={place.host}"]
    own = [match[1] for line in site.directives for match in _EXCLUDED.finditer(line)]
    return [f"--exclude={','.join((*own, *place.avoid))}"] if place.avoid else []


def _threads(per_core: int, site: Site | None) -> list[str]:
    """Return the option for the hardware threads per core, unless the site's directives set it.

    Slurm counts every hardware thread as a CPU: with two per core, eight tasks of one CPU would share four cores.
    """
    is_set = site is not None and any(map(_OF_THREADS.search, site.directives))
    return [] if is_set else [f"--threads-per-core={per_core}"]


def _gpus(gpus: int, nodes: int, site: Site | None) -> list[str]:
    """Return the option that requests GPUs.

    This is the site's generic resource if it has one; otherwise a total for one node, or a number per node for several.
    """
    if not gpus:
        return []
    each = -(-gpus // nodes)
    if site is not None and site.gres:
        return [f"--gres={site.gres}:{each}"]
    return [f"--gpus-per-node={each}"] if nodes > 1 else [f"--gpus={gpus}"]


def site_options(site: Site) -> list[str]:
    """Return the options that all jobs at a site share."""
    return [
        *([f"--account={site.account}"] if site.account else []),
        *([f"--partition={site.queue}"] if site.queue else []),
        *([f"--qos={site.qos}"] if site.qos else []),
        *([f"--licenses={','.join(site.licences)}"] if site.licences else []),
        *site.directives,
    ]


def submit(path: Path) -> list[str]:
    """Return the command that submits a script."""
    return ["sbatch", "--parsable", str(path)]


def job_id(answer: str) -> str | None:
    """Parse the answer of `sbatch --parsable`: `ID` or `ID;CLUSTER`; some sites' sbatch ignores the option."""
    return find_job_id(answer, _JOB_IDS)


def status(ids: Sequence[str]) -> list[str]:
    """Return the command that queries jobs, including those that ended within the last minutes."""
    return ["squeue", "--noheader", "--states=all", f"--format={_FIELDS}", f"--jobs={','.join(ids)}"]


def states(answer: str, complaint: str, code: int) -> Mapping[str, JobReport] | None:
    """Parse the answer of squeue.

    squeue fails if the only job asked for is forgotten, but not if it is one of several.
    """
    if code != 0 and not every_line_matches(_UNKNOWN_JOB, complaint):
        return None
    by_number = {}
    for line in answer.splitlines():
        fields = line.strip().split(_SEPARATOR, 2)
        if len(fields) == 3:
            number, state, reason = fields
            by_number[number] = _parse_job(state, reason)
    return by_number


def _parse_job(state: str, reason: str) -> JobReport:
    known = _STATES.get(state, _RUNNING)
    if known.state is JobState.QUEUED and (why := _reason_in_words(reason)):
        return JobReport(JobState.QUEUED, message=why)
    return known


def _reason_in_words(reason: str) -> str:
    """Return a reason in words, followed by Slurm's own word; empty if there is no reason.

    A reason that is not known here is returned unchanged.
    """
    if (why := _PUT_BACK.get(reason.replace("_", " "))) is not None:
        return f"{why}; {_LET_GO} ({reason})"
    name, _, more = reason.partition(",")
    if name in _NO_REASON:
        return ""
    words = _IN_WORDS.get(name)
    if words is None and name.startswith(_LIMITS) and " " not in name:
        words = "a limit of its account, or of its quality of service, is reached"
    if words is None:
        return reason
    return f"{words} ({name}{',' if more else ''}{more})"


def cancel(ids: Sequence[str]) -> list[str]:
    """Return the command that ends jobs."""
    return ["scancel", *ids]


def can_wait(complaint: str) -> bool:
    """Whether a refused submission will be accepted later."""
    return _LATER.search(complaint) is not None


def reserved_in(directive: str) -> Mapping[str, str]:
    """Return the options of a directive that only the job may set, each with the reason."""
    taken = {}
    for word in directive.split():
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        whole = [name for name in _RESERVED if len(option) >= _SHORTEST and name.startswith(option)]
        for name in [option] if option in _RESERVED else whole:
            taken[name] = _RESERVED[name]
    return taken


def allocation(environment: Mapping[str, str], _read_text: ReadText) -> Allocation | None:
    """Return the job of this process, with the hosts and the end that its environment gives."""
    if not environment.get("SLURM_JOB_ID"):
        return None
    # A list that cannot be parsed counts as unknown; a study works without it.
    try:
        hosts = expand_hosts(environment.get("SLURM_JOB_NODELIST", environment.get("SLURM_NODELIST", "")))
    except ValueError:
        hosts = []
    try:
        cores = expand_counts(environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
    except ValueError:
        cores = []
    end = environment.get("SLURM_JOB_END_TIME", "")
    return Allocation(
        "Slurm",
        environment["SLURM_JOB_ID"],
        tuple(hosts),
        tuple(cores) or (0,) * len(hosts),
        trailing_number(environment.get("SLURM_GPUS_ON_NODE", "")),
        float(end) if end.isdecimal() else None,
    )


def end_of_job(answer: str, _now: float) -> float | None:
    """Parse from `squeue -o %e` when a job ends, in seconds since 1970: a local time, or `N/A`."""
    try:
        return datetime.fromisoformat(answer.strip()).astimezone().timestamp()
    except ValueError:
        return None


def partition_limits(answer: str) -> tuple[str, ...]:
    """Parse the answer of `scontrol --oneliner show partition`; of several partitions, only the default one."""
    tables = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in answer.splitlines() if "PartitionName=" in line]
    chosen = [table for table in tables if table.get("Default") == "YES"] if len(tables) > 1 else tables
    return tuple(
        f"partition {table['PartitionName']}: "
        + ", ".join(f"{name} {table[name]}" for name in _LIMITS_SHOWN if table.get(name, "") not in _NO_LIMIT)
        for table in chosen
    )


def unlike_nodes(answer: str) -> tuple[str, ...]:
    """Describe partitions whose nodes differ, from `sinfo --exact --format=%P|%D|%c|%m|%G`.

    The columns are partition, nodes, cores, memory and GRES. If one of the partitions is the default, only that one is
    described.
    """
    kinds: dict[str, list[str]] = {}
    for line in answer.splitlines():
        partition, nodes, cores, memory_mib, gres = (line.split("|") + [""] * 5)[:5]
        gpus = f" and {gres}" if gres not in _NO_GRES else ""
        kinds.setdefault(partition, []).append(f"{nodes} of {cores} cores, {memory_mib} MiB{gpus}")
    default = {name: each for name, each in kinds.items() if name.endswith("*")}
    advice = 'runs on them do not compare; choose one kind with directives = ["--constraint=..."]'
    unlike = {name.rstrip("*"): "; ".join(each) for name, each in (default or kinds).items() if len(each) > 1}
    return tuple(f"partition {name} has unlike nodes: {each}: {advice}" for name, each in unlike.items())


def federation_refusal(answer: str) -> tuple[str, ...]:
    """Say that federations are not supported, from `scontrol show federation`; empty without a federation."""
    match = re.search(r"^Federation:\s*(\S+)", answer, re.MULTILINE)
    if match is None:
        return ()
    why = "are not supported, since a job may move to a cluster that autotune does not query"
    return (f"federation {match[1]}: federations {why}; run studies where SLURM_CLUSTERS names one cluster",)


_FEDERATION = LimitsQuery(lambda _queue: ["scontrol", "show", "federation"], federation_refusal)

# Without --exact, sinfo merges unlike nodes into one line with the minimum and a plus sign.
NODE_KINDS = LimitsQuery(
    lambda queue: [
        *("sinfo", "--noheader", "--exact", "--format=%P|%D|%c|%m|%G"),
        *([f"--partition={queue}"] if queue else []),
    ],
    unlike_nodes,
)


def obstacle(environment: Mapping[str, str], ask: Callable[[list[str]], str]) -> str:
    """Say why jobs cannot be followed here, because they might go to several clusters; empty if they can."""
    named = environment.get(_CLUSTERS, "").strip()
    if "," in named or named == "all":
        return (
            f"{_CLUSTERS}={named} names several clusters, and a job could go to one that autotune does not query; "
            "name the one cluster of the study"
        )
    return "" if named else "".join(_FEDERATION.read(ask(_FEDERATION.command("")))[:1])


def cautions(site: Site) -> list[LimitsQuery]:
    """Return the queries to make before a study: none if the site's directives already choose among the nodes."""
    return [] if any(_CHOOSES.search(directive) for directive in site.directives) else [NODE_KINDS]


def winner_head(request: WinnerRequest) -> list[str]:
    """Return the lines at the top of the winner's job script."""
    options = [
        f"--job-name={request.name}",
        f"--nodes={request.nodes}",
        f"--ntasks={request.ranks}",
        f"--cpus-per-task={max(1, request.cores * request.threads_per_core // request.ranks)}",
        *_threads(request.threads_per_core, request.site),
        *_gpus(request.gpus, request.nodes, request.site),
        # --mem is per node.
        *([f"--mem={request.memory_per_node_mib}M"] if request.memory_per_node_mib is not None else []),
        f"--time={request.walltime}",
        *(["--exclusive"] if request.exclusive else []),
        *(site_options(request.site) if request.site else []),
    ]
    return [f"#SBATCH {option}" for option in options]


def pilot_head(request: PilotRequest) -> list[str]:
    """Return the lines at the top of a pilot."""
    options = [
        f"--job-name={request.name}",
        f"--nodes={request.nodes}",
        "--ntasks-per-node=1",
        "--exclusive",
        # If a node fails, the pilot loses the trials on that node, not the whole job.
        *(["--no-kill"] if request.nodes > 1 else []),
        f"--time={request.walltime}",
        f"--output={request.name}-%j.log",
        *request.directives,
    ]
    return [f"#SBATCH {option}" for option in options]


# Before 22.05 overlapping steps share only cores: the first step would hold the job's memory and block all others.
_STEP = "srun --overlap --mem=0 --nodes=1 --ntasks=1 --cpu-bind=none --no-kill"

SLURM = BatchSystem(
    "Slurm",
    Scheduler(
        name="slurm",
        head=head,
        submit=submit,
        job_id=job_id,
        status=status,
        states=states,
        cancel=cancel,
        can_wait=can_wait,
        nothing_to_end=_NOTHING_TO_END,
        number_variable="SLURM_JOB_ID",
        variables=("SLURM_CONF", _CLUSTERS),
        refusal=partial(refusal_of, _REFUSALS),
        energy=ENERGY,
        can_place=lambda _: True,
        host_variable="SLURMD_NODENAME",
    ),
    marker_commands=("sinfo",),
    session_variable="SLURM_JOB_ID",
    allocation=allocation,
    end=EndQuery(lambda number: ["squeue", "-h", "-j", number, "-o", "%e"], end_of_job),
    limits=[
        LimitsQuery(
            lambda queue: ["scontrol", "--oneliner", "show", "partition", *([queue] if queue else [])], partition_limits
        ),
        NODE_KINDS,
        _FEDERATION,
    ],
    cautions=cautions,
    obstacle=obstacle,
    reserved=reserved_in,
    winner=WinnerForm(winner_head, "${SLURM_SUBMIT_DIR:-$PWD}", "sbatch"),
    pilot=PilotForm(
        pilot_head,
        lambda site, _nodes: site_options(site),
        "sbatch",
        others='scontrol show hostnames "$SLURM_JOB_NODELIST" | grep -vxF -- "$SLURMD_NODENAME"',
        start=[f'    {_STEP} --nodelist="$host" \\', '        bash -l "$script" ray-node "$meeting" &'],
        after=lambda number: [f"--dependency=afterany:{number}"],
        # Ranks start beside the steps that run the nodes of the Ray cluster.
        exports=["export SLURM_OVERLAP=1"],
    ),
)
