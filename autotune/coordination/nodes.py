"""The nodes on which a session can place runs, so that a comparison covers more than one of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.errors import CannotRunHereError
from autotune.execution.task import NO_PLACE
from autotune.records.outcome import Outcome
from autotune.records.study import Run
from launchers import BatchQueue, Job, Place
from spaces import Configuration

ONE_NODE = (
    "a verdict over several nodes needs a batch system (--launcher), a Ray cluster (--ray-address), or a replay of "
    "runs whose worker is recorded (options.worker)"
)


class LentNodes:
    """The nodes that a batch system gave to runs of a study, and that later runs request by name.

    Rounds begin on a new node while fewer than `least` are known and the batch system has more.
    """

    def __init__(self, queue: BatchQueue, least: int, say: Callable[[str], None]) -> None:
        """Start with no nodes; `say` shows a message when there is no further node, or when a node is lost."""
        self._queue, self._least, self._say = queue, least, say
        self._system = queue.site.scheduler
        self._known: set[str] = set()
        self._gone: set[str] = set()
        self._has_more = True

    def names(self) -> list[str]:
        """Return the nodes that runs can request."""
        return sorted(self._known - self._gone)

    @property
    def looks(self) -> bool:
        """Whether the next round is to begin on a new node."""
        return self._has_more and len(self.names()) < self._least

    @property
    def why_not(self) -> str:
        """Why jobs cannot be placed on nodes here; empty if they can."""
        if self._queue.site.nodes > 1:
            return "a run may have several nodes at this site (nodes = 1 in the site file says that it has one)"
        return (
            "" if self._queue.hosts.is_free else f"{self._system} cannot be told here on which node a job is to start"
        )

    def place(self, job: Job, node: str | None) -> Place:
        """Return where a job is to start: on `node`, or on a new one while more are needed.

        Raises:
            CannotRunHereError: The job needs several nodes.
        """
        if job.resources.nodes > 1:
            msg = f"--nodes-at-least (verdict.nodes): run {job.name} needs {job.resources.nodes} nodes, not one"
            raise CannotRunHereError(f"{msg}\nleave it out")
        if node is not None or not self.looks:
            return Place(node or "")
        cores = min(job.resources.cores, self._queue.site.cores_per_node)
        another = self._queue.hosts.find_other(cores, self._known | self._gone)
        if another is None:
            self._lack("it names none that could start the job")
        return another or Place()

    def recall(self, runs: Iterable[Run]) -> None:
        """Add the nodes of earlier runs."""
        self._known.update(str(host) for run in runs if (host := run.outcome.conditions.get("host")))

    def learn(self, job: Job, outcome: Outcome) -> None:
        """Learn from a run that ended where it was, or that it could not be placed."""
        place, host = job.place, str(outcome.conditions.get("host", ""))
        if outcome.code == NO_PLACE:
            self._lose(place, outcome.message)
        if not host:
            return
        if host in place.avoid or (place.host and _short(host) != _short(place.host)):
            self._lose(place, f"run {job.name} was started on {host}")
        self._known.add(host)

    def _lose(self, place: Place, why: str) -> None:
        if place.host in self._known:
            self._gone.add(place.host)
            self._say(f"{self._system} does not give node {place.host}: {why}; pairs are made on others")
        else:
            self._lack(why)

    def _lack(self, why: str) -> None:
        self._has_more = False
        names = ", ".join(self.names()) or "any"
        self._say(f"{self._system} gives no other node than {names}: {why}; {self._least} were asked for")


@dataclass(frozen=True)
class Nodes:
    """The nodes of a session.

    On one machine no node can be chosen. A batch system chooses by itself, unless the session requests `lent` nodes.

    Attributes:
        named: Returns the nodes on which all given configurations can run; empty if no node can be chosen.
        lent: The nodes that a batch system gave to this study; None if it chooses.
    """

    named: Callable[[Sequence[Configuration]], Sequence[str]] = lambda _: ()
    lent: LentNodes | None = None

    def names(self, configurations: Sequence[Configuration]) -> Sequence[str]:
        """Return the known nodes on which all of these can run."""
        return self.lent.names() if self.lent is not None else self.named(configurations)

    def are_several(self, configurations: Sequence[Configuration]) -> bool:
        """Whether these run on several nodes, or are to."""
        return len(self.names(configurations)) > 1 or self.looks

    def have(self, least: int, configurations: Sequence[Configuration]) -> bool:
        """Whether these can run on `least` nodes; for a batch system this is assumed until it refuses one."""
        return self.lent is not None or len(self.names(configurations)) >= least

    @property
    def looks(self) -> bool:
        """Whether a new node is needed."""
        return self.lent is not None and self.lent.looks

    def check(self, configurations: Sequence[Configuration], least: int | None) -> None:
        """Check that these can run on `least` nodes.

        Raises:
            CannotRunHereError: There are fewer nodes, or none can be chosen.
        """
        names = self.names(configurations)
        if least is None or (self.lent is None and least <= max(1, len(names))):
            return
        if self.lent is not None:
            why = self.lent.why_not
        elif names:
            several = f"there are only {len(names)} nodes: {', '.join(names)}"
            why = several if len(names) > 1 else "there is only one node to choose from"
        else:
            why = "here runs cannot be placed on nodes"
        if why:
            msg = f"--nodes-at-least {least} (verdict.nodes): {why}"
            raise CannotRunHereError(f"{msg}\n{ONE_NODE}; or leave it out")

    def place(self, planned: PlannedRun, node: str | None) -> PlannedRun:
        """Return a run that is to be made on this node. A run of several nodes is placed freely.

        Raises:
            CannotRunHereError: The batch system cannot place it there.
        """
        job = planned.task.job
        if planned.inherited is not None:
            return planned
        if self.lent is not None:
            job = replace(job, place=self.lent.place(job, node))
        elif node is not None and job.resources.nodes == 1:
            job = replace(job, resources=replace(job.resources, hosts=(node,)))
        return replace(planned, task=replace(planned.task, job=job))

    def recall(self, runs: Iterable[Run]) -> None:
        """Add the nodes of earlier runs."""
        if self.lent is not None:
            self.lent.recall(runs)

    def learn(self, run: RunInFlight, outcome: Outcome) -> None:
        """Learn from a run that ended where it was, or why it could not be placed."""
        if self.lent is not None:
            self.lent.learn(run.task.job, outcome)


def given_node(run: RunInFlight) -> str:
    """Return the node that a run in flight was placed on; empty if it was placed freely."""
    job = run.task.job
    return job.place.host or next(iter(job.resources.hosts), "")


def _short(host: str) -> str:
    return host.partition(".")[0]
