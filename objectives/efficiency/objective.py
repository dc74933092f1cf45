"""An objective whose runs also measure how long each rank was in MPI, and the plan for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launchers import Job
from objectives.base import REMARK, Context, Measurement, Metric, Objective, Output, Plan, PlanError, ProgressReader
from objectives.efficiency import library
from objectives.efficiency.library import PRELOAD, with_library
from objectives.efficiency.times import (
    Execution,
    MissingTimesError,
    check_ranks_found,
    efficiencies,
    group_executions,
    read_times,
    runtime_s,
)
from objectives.made_file import NotMadeError
from spaces import Configuration
from spaces.parameters.problem import Problem

EFFICIENCIES = (
    Metric("parallel_efficiency", "", "maximize"),
    Metric("load_balance", "", "maximize"),
    Metric("communication_efficiency", "", "maximize"),
)
"""Measured for every run whose ranks all wrote their times."""

MPI_TIMES = "mpi_times"
"""The detail with the times from which the efficiencies are computed."""


@dataclass(frozen=True)
class TimedObjective:
    """Runs the jobs of an objective with `library` loaded, if it exists, and adds the efficiencies to its metrics.

    A job inside an image runs without it, since the library was built outside.
    """

    objective: Objective
    library: Path | None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the objective, and the efficiencies."""
        return (*self.objective.metrics, *EFFICIENCIES)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the objective's job, whose ranks write their times into its folder, or into that of their part."""
        job = self.objective.job(configuration, context)
        if self.library is None or not self.library.is_file():
            return job
        if job.parts:
            return replace(job, parts=tuple(_with_library(part, self.library) for part in job.parts))
        return _with_library(job, self.library)

    def progress_reader(self) -> ProgressReader:
        """Return the objective's reader."""
        return self.objective.progress_reader()

    def measure(self, output: Output) -> Measurement:
        """Return what the objective measures and the efficiencies; if ranks wrote no times, a remark says so."""
        measured = self.objective.measure(output)
        try:
            found = group_executions(read_times(output.folder))
            if output.job is not None:
                check_ranks_found(output.job.ranks, max(map(len, found)))
        except (MissingTimesError, OSError) as error:
            return replace(measured, details=_merge_details(measured.details, {REMARK: f"no efficiencies: {error}"}))
        efficiency = efficiencies(found)
        return replace(
            measured,
            metrics={**measured.metrics, **{metric.name: getattr(efficiency, metric.name) for metric in EFFICIENCIES}},
            details=_merge_details(measured.details, _details(found)),
        )


def _merge_details(details: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the objective's details with ours; remarks of both are joined."""
    remarks = [str(one[REMARK]) for one in (details, ours) if one.get(REMARK)]
    return {**details, **ours, **({REMARK: "; ".join(remarks)} if remarks else {})}


def _with_library(job: Job, library: Path) -> Job:
    environment = job.environment
    if job.software is not None:
        if job.software.container is not None:
            return job
        # Keep what a module preloads: the job's own variable replaces the module's.
        first = job.software.changes.variables.get(PRELOAD)
        environment = {**({PRELOAD: first} if first else {}), **environment}
    return replace(job, environment=with_library(environment, library, job.folder))


def _details(found: Sequence[Execution]) -> dict[str, object]:
    ranks = [rank for execution in found for rank in execution]
    computing = [rank.computing_s for rank in ranks]
    elsewhere = sum(rank.calls_elsewhere for rank in ranks)
    calls = sum(rank.calls for rank in ranks) + elsewhere
    remark = f"{elsewhere} of {calls} MPI calls were not timed: other threads than the one of MPI_Init made them"
    return {
        MPI_TIMES: {
            "executions": len(found),
            "ranks": max(map(len, found)),
            "runtime_s": runtime_s(found),
            "least_computing_s": min(computing),
            "most_computing_s": max(computing),
            "calls": calls,
        },
        **({REMARK: remark} if elsewhere else {}),
    }


_TIMED = "MPI calls"  # a key in the identity of a plan whose runs are timed


def with_mpi_times(plan: Plan, path: str) -> Plan:
    """Return a plan whose runs are timed, as the study file asks at `path`. The library is not built yet.

    Raises:
        PlanError: Its runs are not made here, or measure efficiencies themselves.
    """
    if plan.runs != "launched":
        raise PlanError(Problem("the time in MPI is measured only in runs that autotune makes", path))
    own = {metric.name for metric in plan.objective.metrics}
    if taken := [metric.name for metric in EFFICIENCIES if metric.name in own]:
        msg = f"the program measures {', '.join(taken)} itself; leave this out, or give those another name"
        raise PlanError(Problem(msg, path))
    return replace(
        plan,
        objective=TimedObjective(plan.objective, library.built_path()),
        identity={**plan.identity, _TIMED: library.identity()},
    )


def build_library(plan: Plan) -> Plan:
    """Build the library that the runs of a timed plan load; if that fails, a note in the returned plan says so."""
    if _TIMED not in plan.identity:
        return plan
    try:
        library.build()
    except NotMadeError as error:
        note = f"no efficiencies: the library that times MPI calls cannot be built: {error}"
        return replace(plan, notes=(*plan.notes, note))
    return plan
