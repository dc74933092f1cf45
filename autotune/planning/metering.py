"""Decide whether this machine has the meters for a study, and whether other runs would add to their figures."""

from autotune.studyfile import StudyFile
from launchers import Launcher
from launchers.meters.available import find_meters, why_absent
from launchers.meters.figures import ENERGY, OF_THE_CARDS, OF_THE_NODE
from objectives.base import Plan


def meter_obstacle(study: StudyFile, plan: Plan, launcher: Launcher, gpus: int) -> str:
    """Return why the meters for a study are missing here; empty if they are not, or if other nodes make the runs.

    Args:
        study: The study file.
        plan: Its plan, with the metrics that meters measure.
        launcher: The launcher of the runs.
        gpus: The GPUs of a run.
    """
    names = [name for name in plan.metered if study.meter is None or name != ENERGY]
    if not names or launcher.queue is not None:
        return ""
    of_cards = [name for name in names if name in OF_THE_CARDS]
    if of_cards and not gpus:
        return f"{', '.join(of_cards)}: a run has no GPU to measure; set in [options] how many it uses"
    why = why_absent(names, gpus, find_meters(cards=gpus > 0))
    return f"{why}; take {', '.join(names)} out of the study file, or use a machine that has one" if why else ""


def shared_meter(study: StudyFile, plan: Plan, launcher: Launcher) -> str:
    """Return why figures of the whole node would include other runs or jobs; empty if a run has the node to itself."""
    names = ", ".join(sorted(OF_THE_NODE.intersection(plan.metered)))
    alone = study.budget.workers == 1 if launcher.queue is None else launcher.queue.site.exclusive
    if not names or alone:
        return ""
    if launcher.queue is not None:
        return f"{names} counts all of a node, also other jobs on it: set exclusive = true in the site file"
    workers = study.budget.workers
    return f"{names} counts all processors of the node, also other runs: workers is {workers}, set it to 1"
