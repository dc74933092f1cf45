"""A batch system as one value: everything that autotune knows of it.

`launchers.batch_systems.registry` lists those that ship; another distribution adds one by an entry point.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from launchers.batch_systems.base import Request, Scheduler
from launchers.batch_systems.numbers import hours_text
from launchers.site import Site

ReadText = Callable[[str], str]
"""Returns the text of a file by its path, or raises OSError."""


@dataclass(frozen=True)
class Allocation:
    """Hosts that a batch system lent: `cores` are those of each host, as it counts them (0: it does not say).

    `system` is the batch system's label. `gpus` are those of a host; `ends_at` is in seconds since 1970, None if the
    environment does not say.
    """

    system: str
    id: str
    hosts: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    gpus: int = 0
    ends_at: float | None = None


@dataclass(frozen=True)
class EndQuery:
    """How a batch system is asked when a job ends.

    `command` asks for the job of a number; `read` reads the answer, given the time now, both in seconds since 1970. It
    returns None where the answer does not say.
    """

    command: Callable[[str], list[str]]
    read: Callable[[str, float], float | None]


@dataclass(frozen=True)
class LimitsQuery:
    """How a batch system is asked for its limits.

    `command` asks for those of a queue, or of that which jobs get by default (empty); `read` makes words of the answer.
    """

    command: Callable[[str], list[str]]
    read: Callable[[str], tuple[str, ...]]


@dataclass(frozen=True)
class WinnerRequest:
    """What the job script of a study's winner asks for.

    `memory_per_node_mib` is what each node is to have, None where nobody knows what the winner uses.
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
        """Whether nobody else may be on its nodes, as it was with the measured runs."""
        return self.site is not None and self.site.exclusive

    @property
    def as_run(self) -> Request:
        """The same as what a run asks for: ranks for which there are no cores share those that there are."""
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
    """How the winner's job script looks: the lines at its top, and the folder of submission as a word of shell.

    `submit` is the command that a person submits it with.
    """

    head: Callable[[WinnerRequest], list[str]]
    folder: str
    submit: str


@dataclass(frozen=True)
class PilotRequest:
    """What a pilot asks for: whole nodes for `walltime` (`HH:MM:00`), and the user's own `directives`.

    `cores_per_node` is None where nobody says it.
    """

    name: str
    nodes: int
    walltime: str
    cores_per_node: int | None
    directives: Sequence[str]


@dataclass(frozen=True)
class PilotForm:
    """How a pilot job is written: one job that runs a whole study on several nodes.

    `head` gives the lines at the top of the script and raises ValueError where something is missing. `directives` are
    those of a site, for so many nodes. `submit` is the command that takes the script's path. `others` is a command of
    shell that prints the hosts but the one of the script; `start` are lines that run
    `bash -l "$script" ray-node "$meeting"` on `$host`, in the background. `exports` come before all that. `after` gives
    the options with which a job is submitted that starts when the job of a number has ended, however it did.
    """

    head: Callable[[PilotRequest], list[str]]
    directives: Callable[[Site, int], list[str]]
    submit: str
    others: str
    start: Sequence[str]
    after: Callable[[str], list[str]]
    exports: Sequence[str] = ()


_OF_PBS = dict.fromkeys(("account_name", "group", "chunk"), "only PBS has this; use directives for what is like it")


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
    """A batch system. Its name, that of its scheduler, is what study files, site files and options call it.

    `label` is its name for a person. `marker_commands` are commands of which one is there where jobs can be submitted, and which
    no other batch system has; `session_variable` is set in every process of a job.
    `allocation` reads from the environment of a job what the job has, and returns None outside of one; `end` asks when
    it ends, and `limits` what a queue gives to jobs. `cautions` of a site are what its user should hear before a study
    (asked as limits are), and `obstacle` says by the environment, and by what a command answers, why no study can run;
    empty if it can. `reserved` returns the options in a line for the scheduler that a
    site may not have, each with the reason; `unsupported_settings` are the settings of a site that it does not know, each with what
    to write instead. Without `winner` there are no job scripts for the winner, without `pilot` no pilot jobs. What
    nobody has run on the real thing is `experimental`.
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
