"""What an MPI start command is: a value that says how it is recognised and what its options are."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MpiStart:
    """How the ranks of a job are started.

    `bind_to` and `map_by` are what the MPI start command calls them (`core`, `socket`, `none`, ...); None leaves the
    choice to it. `options` are further arguments for the start command itself, passed as they are.
    """

    ranks: int
    bind_to: str | None = None
    map_by: str | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class RankStart:
    """What is to be started: `cores` are those that the job is kept to, empty if it may use the whole machine.

    `capacity` is how many cores the job has. `shared` means that other jobs may use the same cores: default bindings
    would put all of them on the first ones. `hosts` are the hosts of the job, the one first that it is started on; none
    if nobody says which.

    A job that has several hardware threads of each core, `threads_per_core`, counts these in place of cores: `capacity`
    and `threads` are numbers of hardware threads then, and `cores` has all of them, those of a core side by side.
    """

    mpi: MpiStart
    cores: tuple[int, ...]
    capacity: int
    shared: bool
    nodes: int
    hosts: tuple[str, ...] = ()
    threads_per_core: int = 1

    @property
    def slots(self) -> int:
        """How many ranks a host of several takes: as even as can be."""
        return -(-self.mpi.ranks // max(1, len(self.hosts)))

    @property
    def threads(self) -> int:
        """How many cores a rank has."""
        return max(1, self.capacity // self.mpi.ranks)

    @property
    def is_oversubscribed(self) -> bool:
        """Whether ranks must share cores."""
        return self.mpi.ranks > self.capacity

    def core_sets(self) -> list[tuple[int, ...]]:
        """Return the cores of each rank."""
        k = self.threads
        return [self.cores[k * rank : k * (rank + 1)] for rank in range(self.mpi.ranks)]

    def masks(self) -> str:
        """Return the cores of each rank as bit masks, in hexadecimal."""
        return ",".join(map(_mask, self.core_sets()))

    def mask(self) -> str:
        """Return the cores of all ranks as one bit mask, in hexadecimal."""
        return _mask(self.cores)


def _mask(cores: Iterable[int]) -> str:
    return hex(sum(1 << core for core in cores))


class CannotStartRanksError(ValueError):
    """What the job asks of the MPI start command cannot be said to it."""


def _no_environment(_flavour: "MpiFlavour", _user_id: int) -> Mapping[str, str]:
    return {}


def _no_notes(_flavour: "MpiFlavour", _user_id: int) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class MpiStartCommand:
    """A family of MPI start commands, such as Open MPI's.

    Args:
        name: What site files and records call it.
        commands: The names of its programs, as they are looked for on the search path. Job scripts use the first.
        version_patterns: What its programs print when asked for `--version`; group 1 is the version, such as `4.1.2`.
        options: The options that start ranks, all but the job's own.
        rank_options: The options that a user may give the number of ranks by, such as `-np`.
        environment: The variables that it needs, given a flavour and the number of the user (0 is root).
        notes: What the user should know of the way it starts ranks, given the same.
        interface: Whose binary interface its library `libmpi` has.
        allocation_variable: The variable that is set where it can start ranks, if it can do so in an allocation only.
    """

    name: str
    commands: tuple[str, ...]
    version_patterns: tuple[re.Pattern[str], ...]
    options: Callable[["MpiFlavour", RankStart], list[str]]
    rank_options: tuple[str, ...] = ("-n", "-np")
    environment: Callable[["MpiFlavour", int], Mapping[str, str]] = _no_environment
    notes: Callable[["MpiFlavour", int], tuple[str, ...]] = _no_notes
    interface: Literal["openmpi", "mpich"] = "mpich"
    allocation_variable: str | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def default_path(self) -> str:
        """The program that starts ranks where nobody says which."""
        return self.commands[0]

    def version_of(self, text: str) -> tuple[int, ...] | None:
        """Return the version that a program printed, None if the program is not of this family."""
        for pattern in self.version_patterns:
            if match := pattern.search(text):
                return tuple(map(int, match[1].split(".")))
        return None


@dataclass(frozen=True)
class MpiFlavour:
    """An MPI start command: `path` is its name or full path, `version` what it said of itself (may be empty).

    `single_copy` says whether a process may read another one's memory here: containers often forbid it.
    """

    kind: MpiStartCommand
    version: tuple[int, ...] = ()
    path: str = "mpirun"
    single_copy: bool = True

    def __str__(self) -> str:
        version = ".".join(map(str, self.version))
        return f"{self.kind} {version} ({self.path})" if version else f"{self.kind} ({self.path})"


def option(option: str, value: str | None) -> list[str]:
    """Return an option with its value, nothing without one."""
    return [option, value] if value else []


def mpi_environment(flavour: MpiFlavour, *, user_id: int) -> dict[str, str]:
    """Return the variables that the start command needs here; `notes` says why."""
    return dict(flavour.kind.environment(flavour, user_id))


def notes(flavour: MpiFlavour, *, user_id: int) -> tuple[str, ...]:
    """Return what the user should know about how ranks are started here."""
    return (f"ranks are started with {flavour}", *flavour.kind.notes(flavour, user_id))
