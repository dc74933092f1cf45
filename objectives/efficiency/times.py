"""The times of ranks in MPI, and the efficiencies computed from them.

The metrics are those of the POP Centre of Excellence (POP Standard Metrics for Parallel Performance Analysis; Wagner,
Mohr, Giménez, Labarta, A structured approach to performance analysis, 2019). A rank computes while it is not in MPI.
Load balance is the ranks' average computing time divided by the longest; communication efficiency is the longest
divided by the time of the run; parallel efficiency is their product, the share of all ranks' time that is computing.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from objectives.figure import read_text

PREFIX = ".autotune-mpi-times."
"""The prefix of the files that ranks write into a run's folder: one file for each host, with a line for each rank."""

_MOST_RANKS = 2**24  # more than any machine has
_NONE_WROTE = (
    "no rank wrote how long it was in MPI: the program does not use MPI, links it statically, ended without "
    "MPI_Finalize, or did not load the library"
)


class MissingTimesError(Exception):
    """Some or all ranks of a run did not write how long they were in MPI; the message says which."""


class RankTimes(BaseModel):
    """The line that a rank wrote when it ended; times are since MPI_Init.

    Args:
        rank: Its number.
        ranks: The number of ranks that it knows of.
        started: The number of ranks that its start command started; 0 if unknown.
        elapsed_ns: How long it ran, in ns of its own clock.
        mpi_ns: How long it was in MPI, in ns.
        calls: Its timed MPI calls.
        calls_elsewhere: MPI calls of other threads, which are not timed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rank: int = Field(ge=0)
    ranks: int = Field(ge=1, le=_MOST_RANKS)
    started: int = Field(ge=0, le=_MOST_RANKS)
    elapsed_ns: int = Field(gt=0)
    mpi_ns: int = Field(ge=0)
    calls: int = Field(ge=0)
    calls_elsewhere: int = Field(ge=0)

    @model_validator(mode="after")
    def _is_possible(self) -> "RankTimes":
        if self.rank >= self.ranks or self.mpi_ns > self.elapsed_ns:
            msg = "a rank is below the number of ranks, and in MPI for no longer than it runs"
            raise ValueError(msg)
        return self

    @property
    def computing_s(self) -> float:
        """How long it was not in MPI, in seconds."""
        return (self.elapsed_ns - self.mpi_ns) * 1e-9


@dataclass(frozen=True)
class Efficiencies:
    """The efficiencies of a run, each from 0 to 1."""

    load_balance: float
    communication_efficiency: float

    @property
    def parallel_efficiency(self) -> float:
        """The share of all ranks' time that is computing."""
        return self.load_balance * self.communication_efficiency


Execution = Sequence[RankTimes]
"""One execution of an MPI program: the times of all its ranks, in their order."""


def read_times(folder: Path) -> list[RankTimes]:
    """Return what ranks wrote into a run's folder and those of its parts; other lines are ignored.

    Raises:
        OSError: It cannot be read.
    """
    files = sorted([*folder.glob(f"{PREFIX}*"), *folder.glob(f"*/{PREFIX}*")])
    lines = (line for file in files for line in (read_text(file) or "").splitlines())
    return [times for line in lines if (times := _read(line)) is not None]


def group_executions(times: Iterable[RankTimes]) -> list[Execution]:
    """Return the executions whose ranks all wrote. A rank that wrote several times took part in several, one after
    another.

    Raises:
        MissingTimesError: No rank or not every rank wrote; or ranks did not know each other, and would look like
            programs that ran one after another.
    """
    by_size: dict[int, dict[int, list[RankTimes]]] = defaultdict(lambda: defaultdict(list))
    for one in times:
        check_ranks_found(one.started, one.ranks)
        by_size[one.ranks][one.rank].append(one)
    if not by_size:
        raise MissingTimesError(_NONE_WROTE)
    found: list[Execution] = []
    for size, by_rank in sorted(by_size.items()):
        whole = max(map(len, by_rank.values()))
        lacking = size - sum(len(times) == whole for times in by_rank.values())
        if lacking:
            msg = f"{lacking} of {size} ranks did not write how long they were in MPI"
            raise MissingTimesError(msg)
        found += zip(*(by_rank[rank] for rank in range(size)), strict=True)
    return found


def check_ranks_found(started: int, known: int) -> None:
    """Check that the ranks know of all ranks that were started.

    Raises:
        MissingTimesError: They know of fewer, since the start command and the program use different MPI libraries.
    """
    if known < started:
        msg = f"{started} ranks were started, and each found {known}"
        raise MissingTimesError(msg)


def efficiencies(executions: Sequence[Execution]) -> Efficiencies:
    """Return the efficiencies of one or more executions, whose times are added up.

    If no rank computes, the load counts as balanced.
    """
    average = fsum(fsum(rank.computing_s for rank in ranks) / len(ranks) for ranks in executions)
    longest = fsum(max(rank.computing_s for rank in ranks) for ranks in executions)
    return Efficiencies(
        load_balance=min(1.0, average / longest) if longest else 1.0,
        communication_efficiency=min(1.0, longest / runtime_s(executions)),
    )


def runtime_s(executions: Sequence[Execution]) -> float:
    """Return how long MPI programs ran from MPI_Init to MPI_Finalize, in seconds."""
    return fsum(max(rank.elapsed_ns for rank in ranks) * 1e-9 for ranks in executions)


def _read(line: str) -> RankTimes | None:
    try:
        return RankTimes.model_validate_json(line)
    except ValidationError:
        return None
