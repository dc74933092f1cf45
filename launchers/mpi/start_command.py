"""An MPI start command as a value: how it is recognised, and its options."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MpiStart:
    """How the ranks of a job are started.

    Attributes:
        ranks: The number of ranks.
        bind_to: The start command's word for the unit that ranks are bound to (`core`, `socket`, `none`, ...); None for
            its default.
        map_by: The start command's word for the mapping of ranks; None for its default.
        options: More arguments for the start command, passed on unchanged.
    """

    ranks: int
    bind_to: str | None = None
    map_by: str | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class RankStart:
    """The ranks to start and the cores they may use.

    With several hardware threads per core, `cores`, `capacity` and `threads` count hardware threads instead of cores.

    Attributes:
        mpi: How the ranks are started.
        cores: The cores that the job is confined to, hardware threads of a core side by side; empty for the whole
            machine.
        capacity: The number of cores of the job.
        shared: Whether other jobs may use the same cores; default bindings would put all of them on the first ones.
        nodes: The number of nodes.
        hosts: The hosts of the job, beginning with the one it starts on; empty if they are not known.
        threads_per_core: How many hardware threads of each core the job may use.
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
        """The number of ranks on each of several hosts, distributed as evenly as possible."""
        return -(-self.mpi.ranks // max(1, len(self.hosts)))

    @property
    def threads(self) -> int:
        """The number of cores of a rank."""
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
    """The MPI start command has no options for what the job asks."""


def _no_environment(_flavour: "MpiFlavour", _user_id: int) -> Mapping[str, str]:
    return {}


def _no_notes(_flavour: "MpiFlavour", _user_id: int) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class MpiStartCommand:
    """A family of MPI start commands, such as Open MPI's.

    Args:
        name: Its name in site files and records.
        commands: The names of its programs, as searched for on the search path. Job scripts use the first.
        version_patterns: Match the `--version` output of its programs; group 1 is the version, such as `4.1.2`.
        options: The options that start ranks, except the job's own.
        rank_options: The options by which a user may give the number of ranks, such as `-np`, for `autotune init`; for
            the commands of `studies/init/start_commands.toml` that table has them.
        environment: The variables that it needs, given a flavour and the user's number (0 is root).
        notes: Notes for the user about how it starts ranks, given the same.
        allocation_variable: The variable that is set where it can start ranks, if it can do so only in an allocation.
        yielding: The variable, with its value, that makes waiting ranks let others use their core; None if no variable
            does.
    """

    name: str
    commands: tuple[str, ...]
    version_patterns: tuple[re.Pattern[str], ...]
    options: Callable[["MpiFlavour", RankStart], list[str]]
    rank_options: tuple[str, ...] = ("-n", "-np")
    environment: Callable[["MpiFlavour", int], Mapping[str, str]] = _no_environment
    notes: Callable[["MpiFlavour", int], tuple[str, ...]] = _no_notes
    allocation_variable: str | None = None
    yielding: tuple[str, str] | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def default_path(self) -> str:
        """The program that starts ranks unless another one is named."""
        return self.commands[0]

    def version_of(self, text: str) -> tuple[int, ...] | None:
        """Return the version in the output of a program; None if the program is not of this family."""
        for pattern in self.version_patterns:
            if match := pattern.search(text):
                return tuple(map(int, match[1].split(".")))
        return None


@dataclass(frozen=True)
class MpiFlavour:
    """An MPI start command on a machine.

    Attributes:
        kind: The family.
        version: The version that it reported; empty if it is not known.
        path: Its name or full path.
        single_copy: Whether a process may read another one's memory here, which containers often forbid.
    """

    kind: MpiStartCommand
    version: tuple[int, ...] = ()
    path: str = "mpirun"
    single_copy: bool = True

    def __str__(self) -> str:
        version = ".".join(map(str, self.version))
        return f"{self.kind} {version} ({self.path})" if version else f"{self.kind} ({self.path})"


def option(option: str, value: str | None) -> list[str]:
    """Return an option with its value, or nothing without a value."""
    return [option, value] if value else []


def mpi_environment(flavour: MpiFlavour, *, user_id: int) -> dict[str, str]:
    """Return the variables that the start command needs here; `notes` says why."""
    return dict(flavour.kind.environment(flavour, user_id))


def notes(flavour: MpiFlavour, *, user_id: int) -> tuple[str, ...]:
    """Return what the user should know about how ranks are started here."""
    return (f"ranks are started with {flavour}", *flavour.kind.notes(flavour, user_id))
