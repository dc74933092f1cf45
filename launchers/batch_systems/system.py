"""A batch system as one value: everything that autotune knows of it.

`launchers.batch_systems.registry` lists those that ship; another distribution adds one by an entry point.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from launchers.batch_systems.base import Request, Scheduler
from launchers.batch_systems.numbers import hours_text
from launchers.site import Site

ReadText = Callable[[str], str]
"""Returns the text of the file at a path, or raises OSError."""


@dataclass(frozen=True)
class Allocation:
    """The hosts that a batch system allocated to this process's job.

    Attributes:
        system: The label of the batch system.
        id: The job's number.
        hosts: The names of the hosts.
        cores: The cores of each host, as the batch system counts them; 0 if it does not say.
        gpus: The GPUs of a host.
        ends_at: When the job ends, in seconds since 1970; None if the environment does not say.
    """

    system: str
    id: str
    hosts: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    gpus: int = 0
    ends_at: float | None = None


@dataclass(frozen=True)
class EndQuery:
    """How to ask a batch system when a job ends.

    `command` takes the job's number. `read` takes the answer and the time now, and returns the end, or None if the
    answer does not say; times are in seconds since 1970.
    """

    command: Callable[[str], list[str]]
    read: Callable[[str, float], float | None]


@dataclass(frozen=True)
class LimitsQuery:
    """How to ask a batch system for its limits.

    `command` takes a queue, empty for the default one; `read` returns the limits in words.
    """

    command: Callable[[str], list[str]]
    read: Callable[[str], tuple[str, ...]]


@dataclass(frozen=True)
class WinnerRequest:
    """The resources that the job script of a study's winner requests.

    `memory_per_node_mib` is None if the winner's memory is not known.
    """

    name: str
    nodes: int
    ranks: int
    cores: int
    gpus: int
    memory_per_node_mib: int | None
    walltime_s: int
    site: Site | None = None
    threads_per_core: int = 1

    @property
    def walltime(self) -> str:
        """The wall time as `hours:minutes:seconds`."""
        return hours_text(self.walltime_s)

    @property
    def exclusive(self) -> bool:
        """Whether the job shares its nodes with no other job, as the measured runs did."""
        return self.site is not None and self.site.exclusive

    @property
    def as_run(self) -> Request:
        """The same as the request of a run; ranks beyond the cores share cores."""
        tasks = max(self.nodes, min(self.ranks, self.cores))
        memory_mib = self.memory_per_node_mib
        return Request(
            name=self.name,
            nodes=self.nodes,
            tasks=tasks,
            cores_per_task=max(1, self.cores // tasks),
            gpus=self.gpus,
            memory_bytes=None if memory_mib is None else self.nodes * memory_mib * 2**20,
            walltime_s=self.walltime_s,
            threads_per_core=self.threads_per_core,
        )


@dataclass(frozen=True)
class WinnerForm:
    """How the winner's job script looks.

    `head` returns the lines at its top; `folder` is a shell word for the folder of submission; `submit` is the command
    by which a person submits the script.
    """

    head: Callable[[WinnerRequest], list[str]]
    folder: str
    submit: str


@dataclass(frozen=True)
class PilotRequest:
    """The resources of a pilot: whole nodes for `walltime` (`HH:MM:00`), with the user's own `directives`.

    `cores_per_node` is None if it is not known.
    """

    name: str
    nodes: int
    walltime: str
    cores_per_node: int | None
    directives: Sequence[str]


@dataclass(frozen=True)
class PilotForm:
    """How a pilot's job script is written; a pilot is one job that runs a whole study on several nodes.

    Attributes:
        head: The lines at the top of the script. Raises ValueError if something is missing.
        directives: The directives of a site for a number of nodes.
        submit: The command that takes the script's path.
        others: A shell command that prints the hosts except the script's own.
        start: Shell lines that run `bash -l "$script" ray-node "$meeting"` on `$host` in the background.
        after: The options that make a job start when the job of a number has ended, however it ended.
        exports: Shell lines that come before everything else.
    """

    head: Callable[[PilotRequest], list[str]]
    directives: Callable[[Site, int], list[str]]
    submit: str
    others: str
    start: Sequence[str]
    after: Callable[[str], list[str]]
    exports: Sequence[str] = ()


_OF_PBS = dict.fromkeys(("account_name", "group", "chunk"), "only PBS has this; use directives for a similar setting")


def _no_allocation(_environment: Mapping[str, str], _read_text: ReadText) -> Allocation | None:
    return None


def _no_cautions(_site: Site) -> Sequence[LimitsQuery]:
    return ()


def _no_obstacle(_environment: Mapping[str, str], _ask: Callable[[list[str]], str]) -> str:
    return ""


def _nothing_reserved(_directive: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class BatchSystem:
    """A batch system.

    Attributes:
        label: Its name for a person; `name` is what study files, site files and options call it.
        scheduler: How to submit, query and end jobs.
        marker_commands: Commands that no other batch system has. One of them exists on hosts that can submit jobs.
        session_variable: Set in every process of a job.
        allocation: Returns what a job has, from its environment; None outside a job.
        end: Asks when a job ends.
        limits: Asks what a queue gives to jobs.
        cautions: For a site, queries whose answers its user should see before a study.
        obstacle: Says why no study can run here, from the environment and the answers of commands; empty if one can.
        reserved: Returns the options of a directive that a site must not set, each with the reason.
        unsupported_settings: Settings of a site that it does not have, each with what to write instead.
        winner: Writes job scripts for the winner; None if that is not supported.
        pilot: Writes pilot jobs; None if that is not supported.
        experimental: It has never been run on a real installation.
    """

    label: str
    scheduler: Scheduler
    marker_commands: tuple[str, ...]
    session_variable: str
    allocation: Callable[[Mapping[str, str], ReadText], Allocation | None] = _no_allocation
    end: EndQuery | None = None
    limits: Sequence[LimitsQuery] = ()
    cautions: Callable[[Site], Sequence[LimitsQuery]] = _no_cautions
    obstacle: Callable[[Mapping[str, str], Callable[[list[str]], str]], str] = _no_obstacle
    reserved: Callable[[str], Mapping[str, str]] = _nothing_reserved
    unsupported_settings: Mapping[str, str] = field(default_factory=lambda: _OF_PBS)
    winner: WinnerForm | None = None
    pilot: PilotForm | None = None
    experimental: bool = False

    @property
    def name(self) -> str:
        """The name by which files and options call it."""
        return self.scheduler.name
