"""Neighbours: find out whether a run shared its cores with another run of its study."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from autotune.coordination.runs import RunInFlight
from autotune.records.occupancy import Occupancy
from autotune.records.outcome import DISTURBED, SHARED_CORES, Outcome
from autotune.records.series import WARM_UP
from autotune.records.study import Run
from launchers.batch.job_ends import gone_since
from launchers.cpus import cpu_list
from launchers.status import read_affinity, read_shared_status
from objectives.base import FailureKind
from objectives.server import NO_LOAD_KEPT

NEVER_QUIET = (
    "wait until others leave it, ask for whole nodes, or let disturbed runs count once repeating them does not help "
    "(--noise wait)"
)
"""What a user can do about a machine that others use all the time."""

# A run that ended this many runs ago no longer overlaps with one that ends now.
_REMEMBERED = 1000


def what_to_do(outcome: Outcome) -> str:
    """Return the remedy for runs that end with this outcome again and again."""
    if outcome.code == SHARED_CORES:
        return "ask for whole nodes (exclusive = true in the site file), or make one run at a time (--workers 1)"
    if outcome.code == DISTURBED:
        return f"disturbed runs are refused on this machine: {NEVER_QUIET}"
    return "fix that"


@dataclass
class Neighbours:
    """The runs of a study that may share a node with a run that ends: those in flight, and those that ended lately."""

    _folders: dict[str, Path] = field(default_factory=dict, init=False)
    _ended: deque[tuple[str, Occupancy]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED), init=False)

    def load(self, stored: Iterable[Run]) -> None:
        """Replace the known ended runs by the `stored` ones, which are in the order in which they ended."""
        known = ((Path(run.job.get("folder", "")).name, Occupancy.of(run.outcome)) for run in stored)
        self._ended = deque(((name, its) for name, its in known if its is not None), maxlen=_REMEMBERED)

    def begin(self, run: RunInFlight) -> None:
        """Add a run in flight."""
        self._folders[run.name] = run.task.job.folder

    def end(self, run: RunInFlight, outcome: Outcome) -> Outcome:
        """Return the outcome of an ended run, as an infrastructure error if it shared a core while it was measured."""
        self._folders.pop(run.name, None)
        occupancy = Occupancy.of(outcome)
        if occupancy is None:
            return outcome
        beside = chain(self._ended, _in_flight(self._folders))
        shared = ((name, threads) for name, its in beside if (threads := its.threads_in_common(occupancy)))
        name, threads = next(shared, ("", frozenset()))
        self._ended.append((run.name, occupancy))
        if not threads or not is_measured(run, outcome):
            return outcome
        message = (
            f"ran on the same cores of {occupancy.node} as run {name} (CPUs {cpu_list(threads)}): each disturbed the "
            "other, and this one does not count"
        )
        failure = FailureKind.INFRASTRUCTURE_ERROR
        return replace(
            outcome, metrics={}, answer=None, bound=None, failure=failure, code=SHARED_CORES, message=message
        )


def _in_flight(folders: Mapping[str, Path]) -> Iterator[tuple[str, Occupancy]]:
    """Yield the cores of the runs in some folders; a run held them until it ended, or until its job was gone."""
    for name, folder in folders.items():
        status = read_shared_status(folder)
        affinity = read_affinity(folder) if status is None else status.affinity
        if affinity is None:
            continue
        elapsed_s = gone_since(folder) - affinity.began_at if status is None else status.usage.elapsed_s
        occupancy = Occupancy.by(affinity, elapsed_s)
        if occupancy is not None:
            yield name, occupancy


def is_measured(run: RunInFlight, outcome: Outcome) -> bool:
    """Whether a run shows how fast its configuration is.

    The values of a training at its steps do not depend on time, and a warm-up counts for nothing.
    """
    if run.task.segment is not None or run.purpose.series == WARM_UP:
        return False
    return outcome.failure in {None, FailureKind.TIMED_OUT} or outcome.code == NO_LOAD_KEPT
