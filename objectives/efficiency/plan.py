"""The plan of a program whose runs tell how long their ranks were in MPI."""

from dataclasses import replace

from objectives.base import Plan, PlanError
from objectives.efficiency import library
from objectives.efficiency.objective import EFFICIENCIES, TimedObjective
from objectives.madefile import NotMadeError
from spaces.parameters.problem import Problem

_TIMED = "MPI calls"  # of the identity of a plan whose runs are timed


def timed(plan: Plan, path: str) -> Plan:
    """Return a plan whose runs are timed, as the study file asks at `path`. Nothing is made for it yet.

    Raises:
        PlanError: its runs are not made here, or tell their efficiencies themselves.
    """
    if plan.runs != "launched":
        raise PlanError(Problem("the time in MPI is measured of runs that autotune makes, not of others'", path))
    own = {metric.name for metric in plan.objective.metrics}
    if taken := [metric.name for metric in EFFICIENCIES if metric.name in own]:
        msg = f"the program measures {', '.join(taken)} itself; leave this out, or give those another name"
        raise PlanError(Problem(msg, path))
    return replace(
        plan,
        objective=TimedObjective(plan.objective, library.place()),
        identity={**plan.identity, _TIMED: library.identity()},
    )


def made_ready(plan: Plan) -> Plan:
    """Make the library that the runs of a timed plan load; where that cannot be, the plan that is returned says so."""
    if _TIMED not in plan.identity:
        return plan
    try:
        library.made()
    except NotMadeError as error:
        note = f"no efficiencies: the library that times calls of MPI cannot be made: {error}"
        return replace(plan, notes=(*plan.notes, note))
    return plan
