"""Jobs as values: one run of a program, its resources and its status. Nothing here touches the machine."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from launchers.card import Card
from launchers.mpi.start_command import MpiStart
from launchers.noise.disturbance import Disturbance
from launchers.software.software import LoadedSoftware

STDOUT = "stdout"
STDERR = "stderr"

OUTPUT_LIMIT_BYTES = 2 * 2**30
"""A program that prints more than this is ended: far more than a run should print, far less than a disk holds."""


@dataclass(frozen=True)
class Resources:
    """The cores, nodes and cards of a job.

    Attributes:
        cores: The number of cores on all nodes together.
        nodes: The number of nodes.
        gpus: The number of GPUs on all nodes together.
        cpus: The CPU numbers of the only cores that the job may use, one hardware thread per core; empty for any. A job
            of several nodes has all cores of each, and these are the first node's.
        hosts: The names of its hosts, beginning with the one it starts on; empty for this host or the allocation's.
        cards: The accelerators reserved for the job; empty for those that the machine shows it.
        threads_per_core: How many hardware threads of each core the job may use.
    """

    cores: int = 1
    nodes: int = 1
    gpus: int = 0
    cpus: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    threads_per_core: int = 1


@dataclass(frozen=True)
class Place:
    """The host on which a batch system must start a one-node job, or hosts to avoid; any host if both are empty."""

    host: str = ""
    avoid: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the place restricts the job."""
        return bool(self.host or self.avoid)

    def __str__(self) -> str:
        """Return the place in words."""
        if self.host:
            return f"on {self.host}"
        return f"on another node than {', '.join(self.avoid)}" if self.avoid else "anywhere"


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of a command that runs as its user would start it, with all variables of the caller.

    Attributes:
        folder: The folder in which it starts; its output still goes to the job's folder.
        stdin: The file that is its standard input; None for an empty one.
    """

    folder: Path
    stdin: Path | None = None


@dataclass(frozen=True)
class LoadSearch:
    """The search for the highest load of a server that keeps limits, within one run.

    Attributes:
        name: The name of the load's value; `{run:name}` in words and files stands for it.
        low: The lowest value.
        high: The highest value; the values are whole numbers if both are.
        judge: The path of a program of our own that reads the output of a load and says which limit it breaks.
        options: What the judge needs, as JSON.
        files: The files that a load writes and that its figures are read from.
        start: A value near which the highest load may be; None if nothing is known.
        shift: By what part of the spread of chance all loads are shifted, from -0.5 to 0.5.
    """

    name: str
    low: float
    high: float
    judge: str
    options: str
    files: tuple[str, ...] = ()
    start: float | None = None
    shift: float = 0.0


@dataclass(frozen=True)
class Server:
    """A server that a job starts before its command, the load, and stops after it (`launchers.server`).

    `{run:port}` in its words and variables, and in those of the job, stands for a free port, which the run finds.

    Attributes:
        argv: The server's command line.
        environment: Variables of the server, beside those of the job.
        ready: The sign that it is ready: `port`, `url` or `line`; and the URL, or the regular expression of the line.
        ready_within_s: After how many seconds without that sign the server has failed.
        warm_up: Commands that run once after that.
        reset: Commands that run before each load.
        stop: The name of the signal that stops it.
        stop_within_s: After how many seconds more it is killed.
        failure: Regular expressions of lines of its log that mean that it has failed.
        files: The files of the job's folder in which the port, or the value of the search, is to be filled in.
        search: The loads to run; None for one.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: tuple[str, str] = ("port", "")
    ready_within_s: float = 60.0
    warm_up: tuple[tuple[str, ...], ...] = ()
    reset: tuple[tuple[str, ...], ...] = ()
    stop: str = "SIGTERM"
    stop_within_s: float = 10.0
    failure: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    search: LoadSearch | None = None

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Server":
        """Return the server that `asdict` has described, also after it has been through JSON."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list | tuple) else value for name, value in stored.items()
        }
        for name in ("warm_up", "reset"):
            values[name] = tuple(map(tuple, stored[name]))
        if search := stored["search"]:
            values["search"] = LoadSearch(**{**search, "files": tuple(search["files"])})
        return cls(**values)

    def map_commands(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> "Server":
        """Return the server with `change` applied to each of its command lines."""
        warm_up, reset = (tuple(map(change, steps)) for steps in (self.warm_up, self.reset))
        return replace(self, argv=change(self.argv), warm_up=warm_up, reset=reset)

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The command lines of the server, of its warm-up and of its reset."""
        return (self.argv, *self.warm_up, *self.reset)


@dataclass(frozen=True)
class Job:
    """One run of a program.

    Attributes:
        argv: The program's own command line; the launcher adds the MPI start command.
        folder: The folder in which the job runs and writes its output as `stdout` and `stderr`.
        environment: Variables added to the few that a job inherits from the caller (`launchers.environment`).
        mpi: How ranks are started; None for a program that is started directly.
        resources: The cores, nodes and cards of the job.
        time_limit_s: After how many seconds the job is stopped; None for no limit.
        walltime_s: Seconds that are expected to suffice, for the wall time that a batch system is asked for; None or
            infinite for that of the site.
        name: The name that people see.
        prepare: Commands that run before `argv`, in order, in the same folder and environment, once whatever the number
            of ranks (`launchers.steps`).
        server: The server that runs meanwhile; `argv` is then its load.
        copies: The files that were copied into the folder: name and path of the original.
        progress_file: The file in the folder whose lines report progress.
        software: The source of its programs. `argv` already includes the container command if there is one; the
            launcher adds the rest.
        parts: Jobs to run one after the other, each in its own folder, on this job's cores (`launchers.sequence`). A
            job with parts has no command of its own.
        lost_after_s: As a part: after how many seconds the run has lost; the part is stopped and no part runs after it.
        memory_limit_bytes: The job is stopped when its processes on a node use more than this together.
        tuned: The names of the variables and options that parameters fill in; these are never secrets.
        place: The host on which a batch system must start the job.
        meter: A command that prints an energy counter; it runs before and after the job.
        surroundings: Those of the caller, in place of `folder` and of the few variables; on this machine only.
    """

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    mpi: MpiStart | None = None
    resources: Resources = Resources()
    time_limit_s: float | None = None
    walltime_s: float | None = None
    name: str = "job"
    prepare: tuple[tuple[str, ...], ...] = ()
    server: Server | None = None
    copies: tuple[tuple[str, str], ...] = ()
    progress_file: str = STDOUT
    software: LoadedSoftware | None = None
    parts: tuple["Job", ...] = ()
    lost_after_s: float | None = None
    memory_limit_bytes: int | None = None
    tuned: frozenset[str] = frozenset()
    place: Place = Place()
    meter: tuple[str, ...] = ()
    surroundings: Surroundings | None = None

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """All command lines of a job without parts: its own, those that prepare it, those of its server."""
        return (self.argv, *self.prepare, *(self.server.commands if self.server else ()))

    @property
    def ranks(self) -> int:
        """The largest number of ranks that run together."""
        return max((part.ranks for part in self.parts), default=self.mpi.ranks if self.mpi is not None else 1)

    @property
    def placed_parts(self) -> tuple["Job", ...]:
        """The parts with the job's cores, hosts and cards; a part that needs fewer gets the first ones."""
        return tuple(replace(part, resources=self._share(part.resources)) for part in self.parts)

    def _share(self, wanted: Resources) -> Resources:
        own = self.resources
        cpus = own.cpus if wanted.nodes > 1 else own.cpus[: wanted.cores]
        return replace(wanted, cpus=cpus, hosts=own.hosts[: wanted.nodes], cards=own.cards[: wanted.gpus])


class JobState(StrEnum):
    """The state of a job. `LOST` means that it cannot be known how the job ended."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


class EndReason(StrEnum):
    """Why an ended job ended."""

    EXITED = "exited"
    TIMED_OUT = "timed out"
    OUTPUT_LIMIT = "output limit"
    MEMORY_LIMIT = "memory limit"
    CANCELLED = "cancelled"
    NOT_STARTED = "not started"
    PREEMPTED = "preempted"


@dataclass(frozen=True)
class Usage:
    """The elapsed time of a job, and the CPU time and peak memory of its whole process tree."""

    elapsed_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True)
class Affinity:
    """The CPUs that a job's program could use when it began.

    Attributes:
        node: The name of the node.
        cpus: The CPUs in the kernel's list format (`0-3,8`).
        node_cpus: How many CPUs the node has.
        began_at: Seconds since 1970, by the node's clock.
        threads: All hardware threads of the cores of `cpus`, as a list; empty for a job that may use the whole node.
        host: The batch system's name of the node; empty without a batch system.
    """

    node: str
    cpus: str
    node_cpus: int
    began_at: float
    threads: str = ""
    host: str = ""

    def as_dict(self) -> dict[str, str | int | float]:
        """Return the known fields by name."""
        return {name: value for name, value in asdict(self).items() if name != "host" or value}


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, how it ended and what it used, as far as known.

    Attributes:
        state: The state of the job.
        reason: Why it ended; None before that, or if it is not known.
        exit_code: Negative for a signal, as in `subprocess`; None while the job runs.
        usage: The time and memory that it used.
        message: More about its state, for a person.
        never_starts: The job is queued, and its batch system says that it will never start.
        affinity: The CPUs it began with; None if its supervisor did not get that far, or it is not known.
        disturbance: Other load on the machine, as its supervisor measured it.
        metered: The figures of meters, by the names of `launchers.meters.figures.UNITS`.
        is_accounted: False for a job that has ended but counts as running until the energy it took is known.
    """

    state: JobState
    reason: EndReason | None = None
    exit_code: int | None = None
    usage: Usage = Usage()
    message: str = ""
    never_starts: bool = False
    affinity: Affinity | None = None
    disturbance: Disturbance = field(default_factory=Disturbance)
    metered: Mapping[str, float] = field(default_factory=dict)
    is_accounted: bool = True
