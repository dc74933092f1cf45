"""Decide whether the winner and the default of a study can run as duets, side by side."""

from collections.abc import Callable
from typing import Literal

from autotune.execution.halves import Halves
from autotune.machines.this_machine import Machine
from autotune.studyfile import StudyFile
from launchers import Launcher, Resources
from launchers.meters.figures import OF_THE_NODE
from objectives.base import Plan

Place = Literal["here", "ray"]
"""The place in which a session makes runs that are not jobs of a batch system."""


def halves_of(plan: Plan, machine: Machine, launcher: Launcher, place: Place = "here") -> Halves:
    """Return the halves of the cores for duets of a plan; if there are none, the result has the reason."""
    if plan.runs == "recorded":
        return Halves(why="recorded runs have no cores")
    if plan.runs == "told":
        return Halves(why="another program makes the runs")
    if launcher.queue is not None:
        return Halves(why="each run is a job that a batch system places by itself")
    if place == "ray":
        return Halves(why="runs are spread over the nodes of a Ray cluster")
    if names := sorted(OF_THE_NODE.intersection(plan.metered)):
        return Halves(why=f"{', '.join(names)} counts all processors of the node, and so both runs of a pair")
    return Halves.of(machine.cpus)


def duet_obstacle(study: StudyFile, halves: Halves, wanted: Callable[[], Resources]) -> str:
    """Return why the verdict of a study cannot use duets; empty if it can, or if the study does not ask for them.

    Only the verdict itself knows whether the configurations that it compares need more cores than the default.

    Args:
        study: The study file.
        halves: The halves of the cores.
        wanted: Returns the resources of a run.
    """
    if study.verdict.mode != "duet":
        return ""
    if not study.has_one_winner:
        return "a study without a single winner compares more than two configurations"
    return halves.why or halves.lacks(wanted())


def duet_refusal(why: str) -> str:
    """Return the error for a study that demands duets it cannot have."""
    return f"verdict.mode is 'duet', but {why}: two runs cannot be made side by side; use 'interleaved' or 'auto'"
