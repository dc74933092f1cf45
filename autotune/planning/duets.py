"""Duets of a study: whether the winner and the default can run side by side at its end."""

from collections.abc import Callable, Collection
from typing import Literal

from autotune.execution.halves import Halves
from autotune.machines.this_machine import Machine
from autotune.studyfile import StudyFile
from launchers import Launcher, Resources
from launchers.meters.figures import OF_THE_NODE
from objectives.base import Plan

Place = Literal["here", "ray"]
"""Where the runs of a session are made that are no jobs of a batch system."""


def halves_of(plan: Plan, machine: Machine, launcher: Launcher, place: Place = "here") -> Halves:
    """Return the halves of the cores that runs of a plan have; none where others place them."""
    if plan.runs == "recorded":
        return Halves(why="recorded runs have no cores")
    if plan.runs == "told":
        return Halves(why="another program makes the runs")
    if launcher.queue is not None:
        return Halves(why="each run is a job that a batch system places by itself")
    if place == "ray":
        return Halves(why="runs are spread over the nodes of a Ray cluster")
    return Halves.of(machine.cpus)


def duet_obstacle(
    study: StudyFile, halves: Halves, wanted: Callable[[], Resources], metered: Collection[str] = ()
) -> str:
    """Say why the verdict of a study that asks for duets cannot have them; empty if it can. A run has what is `wanted`.

    It must have the figures of meters that are `metered`. Runs of other configurations may need more cores: whether
    these do is known at the verdict.
    """
    if study.verdict.mode == "interleaved":
        return ""
    if not study.has_one_winner:
        return "a study without a single winner compares more than two configurations"
    if names := sorted(OF_THE_NODE.intersection(metered)):
        return f"{', '.join(names)} counts all processors of the node, and so both runs of a pair"
    return halves.why or halves.lacks(wanted())


def duet_refusal(why: str) -> str:
    """Say that a study asks for duets that it cannot have."""
    return (
        f"verdict.mode is 'duet', but {why}: no two runs can be made side by side; use 'interleaved', or 'auto', which "
        "then does so"
    )


def duet_fallback(why: str) -> str:
    """Say that a study without duets goes on."""
    return f"verdict.mode is 'auto': pairs are made in turns, since {why}"
