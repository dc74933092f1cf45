"""Nodes: those on which the runs of a session can be placed, so that a comparison speaks for more than one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from autotune.coordination.runs import PlannedRun
from autotune.errors import CannotRunHereError
from spaces import Configuration

ONE_NODE = (
    "a verdict over several nodes needs a Ray cluster (--ray-address), or a replay of runs whose worker is recorded "
    "(options.worker)"
)


@dataclass(frozen=True)
class Nodes:
    """The nodes of a session: `names` are those on which all of some configurations can run; none: nobody can choose.

    That is so on one machine, and where a batch system chooses.
    """

    names: Callable[[Sequence[Configuration]], Sequence[str]] = lambda _: ()

    def check(self, configurations: Sequence[Configuration], least: int | None) -> None:
        """Refuse to promise what these nodes cannot keep.

        Raises:
            CannotRunHereError: there are fewer than `least`.
        """
        names = self.names(configurations)
        if least is None or least <= max(1, len(names)):
            return
        those = f"{len(names)} nodes: {', '.join(names)}" if len(names) > 1 else "one node to choose from"
        msg = (
            f"--nodes-at-least {least} (verdict.nodes): there are only {those}"
            if names
            else (f"--nodes-at-least {least} (verdict.nodes): here runs cannot be placed on nodes")
        )
        raise CannotRunHereError(f"{msg}\n{ONE_NODE}; or leave it out")


def placed(planned: PlannedRun, node: str | None) -> PlannedRun:
    """Return a run that is to be made on this node; one of several nodes goes wherever there is room."""
    resources = planned.task.job.resources
    if node is None or planned.inherited is not None or resources.nodes > 1:
        return planned
    job = replace(planned.task.job, resources=replace(resources, hosts=(node,)))
    return replace(planned, task=replace(planned.task, job=job))
