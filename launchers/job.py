"""A job: one run of a program, as a value. Launchers start jobs; nothing here touches the machine."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from launchers.card import Card
from launchers.mpi.start_command import MpiStart
from launchers.noise.disturbance import Disturbance
from launchers.software.software import LoadedSoftware

STDOUT = "stdout"
STDERR = "stderr"

OUTPUT_LIMIT_BYTES = 2 * 2**30
"""Far more than a run has to say, far less than a disk holds: a program that prints without end is ended."""


@dataclass(frozen=True)
class Resources:
    """What a job occupies while it runs.

    `cpus` are the operating system's numbers of the cores that the job may use, and no other; empty means any core.
    `cards` are the accelerators that it has to itself; empty means those that the machine shows it. `hosts` are the
    names of the hosts that it has, the one first that it is started on; empty means this one, or those of the
    allocation. A job of several hosts has all cores of each: `cpus` are then those of the first.

    A job may use `threads_per_core` hardware threads of each core; `cpus` has one of each nevertheless.
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
    """Where a batch system is to start a job of one node: on `host`, on any but those to `avoid`, or anywhere."""

    host: str = ""
    avoid: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether it matters."""
        return bool(self.host or self.avoid)

    def __str__(self) -> str:
        """Say it."""
        if self.host:
            return f"on {self.host}"
        return f"on another node than {', '.join(self.avoid)}" if self.avoid else "anywhere"


@dataclass(frozen=True)
class Job:
    """One run of a program.

    `argv` is the program's own command line, without the MPI start command: that is the launcher's business
    (`mpi` is None for a program that is started directly). `environment` is added to the few variables of the
    caller that a job needs; it is not merged with everything that happens to be set. The job runs in `folder`,
    where its output is kept as `stdout` and `stderr`. What a parameter fills in of it is `tuned`, and no secret.

    `prepare` are commands that run before it, one after the other, once however many ranks there are, in the same
    folder and environment: see `launchers.steps`. `software` is where its programs come from: `argv` is inside of the
    image already, if that is one, and the launcher brings the rest.

    `copies` are the files of its folder that were copied there: name, and the path of the original. `progress_file` is
    the file of the folder whose lines say how far it is.

    A job of `parts` has no command of its own: they run one after the other, each in its own folder, on the job's
    cores (see `launchers.sequence`). A part that has run for `lost_after_s` is stopped, and none runs after it.

    A job that is seen to use more than `memory_limit_bytes`, all its processes on a node together, is stopped. Its
    `place` is for batch systems. The `meter` is a command that prints a counter of energy, before the job and after it.
    """

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    mpi: MpiStart | None = None
    resources: Resources = Resources()
    time_limit_s: float | None = None
    name: str = "job"
    prepare: tuple[tuple[str, ...], ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    progress_file: str = STDOUT
    software: LoadedSoftware | None = None
    parts: tuple["Job", ...] = ()
    lost_after_s: float | None = None
    memory_limit_bytes: int | None = None
    tuned: frozenset[str] = frozenset()
    place: Place = Place()
    meter: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """The ranks that run together, at most."""
        return max((part.ranks for part in self.parts), default=self.mpi.ranks if self.mpi is not None else 1)

    @property
    def placed_parts(self) -> tuple["Job", ...]:
        """The parts on the cores and hosts of the job, of which one that needs fewer has the first."""
        return tuple(replace(part, resources=self._share(part.resources)) for part in self.parts)

    def _share(self, wanted: Resources) -> Resources:
        own = self.resources
        cpus = own.cpus if wanted.nodes > 1 else own.cpus[: wanted.cores]
        return replace(wanted, cpus=cpus, hosts=own.hosts[: wanted.nodes], cards=own.cards[: wanted.gpus])


class JobState(StrEnum):
    """Where a job is in its life. `LOST` means that nobody can say how it ended."""

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
    """What a job used. `cpu_s` and `peak_memory_bytes` are those of the whole process tree."""

    elapsed_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True)
class Affinity:
    """Which CPUs of its node a job's program could use when it began, as Linux lists them (`0-3,8`).

    The node has `node_cpus` of them. `began_at` are seconds since 1970, by the node's clock. `threads` are all hardware
    threads of the cores of these CPUs; empty for a job that may use the whole node. `host` is what the batch system
    calls the node; empty without one.
    """

    node: str
    cpus: str
    node_cpus: int
    began_at: float
    threads: str = ""
    host: str = ""

    def as_dict(self) -> dict[str, str | int | float]:
        """Return what is known, by name."""
        return {name: value for name, value in asdict(self).items() if name != "host" or value}


@dataclass(frozen=True)
class JobStatus:
    """What is known of a job. `exit_code` is negative for a signal, as in `subprocess`; None while it runs.

    `affinity` is None where its supervisor did not get so far, or is not known to have. `disturbance` has what its
    supervisor could read, `metered` what meters told of energy and cards (`launchers.meters.figures.UNITS`).
    A `hopeless` one is queued, and its batch system says that it will never start. One that is not `booked` has ended,
    and counts as running until it is known what it took.
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
