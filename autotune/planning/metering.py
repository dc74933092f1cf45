"""Meters of a study: whether this machine can tell what a study asks of it, and what spoils the figures."""

from autotune.studyfile import StudyFile
from launchers import Launcher
from launchers.meters.available import find_meters, why_absent
from launchers.meters.figures import ENERGY, OF_THE_CARDS, OF_THE_NODE
from objectives.base import Plan


def meter_obstacle(study: StudyFile, plan: Plan, launcher: Launcher, gpus: int) -> str:
    """Say why a study whose runs have so many GPUs cannot be measured as it asks.

    Empty if it can, and where other nodes make the runs.
    """
    names = [name for name in plan.metered if study.meter is None or name != ENERGY]
    if not names or launcher.queue is not None:
        return ""
    of_cards = [name for name in names if name in OF_THE_CARDS]
    if of_cards and not gpus:
        return f"{', '.join(of_cards)}: a run has no GPU, so that no meter tells it; say in [options] how many it has"
    why = why_absent(names, gpus, find_meters(cards=gpus > 0))
    return f"{why}; take {', '.join(names)} out of the study file, or use a machine that has one" if why else ""


def shared_meter(study: StudyFile, plan: Plan, launcher: Launcher) -> str:
    """Say why figures of the whole node would be those of several runs; empty if nothing speaks against them."""
    names = ", ".join(sorted(OF_THE_NODE.intersection(plan.metered)))
    alone = study.budget.workers == 1 if launcher.queue is None else launcher.queue.site.exclusive
    if not names or alone:
        return ""
    if launcher.queue is not None:
        why = "also for other jobs there: exclusive = true in the site file asks for whole nodes"
        return f"{names} counts all of a node, {why}"
    why = f"also for the runs beside: workers is {study.budget.workers}, 1 measures each run alone"
    return f"{names} counts all processors of the node, {why}"
