"""An objective whose runs tell how long each rank was in MPI, beside what they measure anyway."""

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
"""What is measured of every run whose ranks all tell; absent of the others."""

MPI_TIMES = "mpi_times"
"""The detail that says what the efficiencies are of."""


@dataclass(frozen=True)
class TimedObjective:
    """Runs the jobs of an objective with `library` loaded, where that is there, and adds the efficiencies to the rest.

    A job inside an image is left alone: the library was made outside of it.
    """

    objective: Objective
    library: Path | None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those of the objective, and the efficiencies."""
        return (*self.objective.metrics, *EFFICIENCIES)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the objective's job, whose ranks write into its folder; those of a part write into the part's."""
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
        """Return what the objective measures and the efficiencies; where ranks did not tell, a remark says so."""
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
    """Return the objective's details with ours; what both remark on is said."""
    remarks = [str(one[REMARK]) for one in (details, ours) if one.get(REMARK)]
    return {**details, **ours, **({REMARK: "; ".join(remarks)} if remarks else {})}


def _with_library(job: Job, library: Path) -> Job:
    environment = job.environment
    if job.software is not None:
        if job.software.container is not None:
            return job
        # What a module loads first, the job's own variable would replace.
        first = job.software.changes.variables.get(PRELOAD)
        environment = {**({PRELOAD: first} if first else {}), **environment}
    return replace(job, environment=with_library(environment, library, job.folder))


def _details(found: Sequence[Execution]) -> dict[str, object]:
    ranks = [rank for execution in found for rank in execution]
    computing = [rank.computing_s for rank in ranks]
    elsewhere = sum(rank.calls_elsewhere for rank in ranks)
    calls = sum(rank.calls for rank in ranks) + elsewhere
    said = f"{elsewhere} of {calls} calls of MPI are of other threads than the one that called MPI_Init: not timed"
    return {
        MPI_TIMES: {
            "executions": len(found),
            "ranks": max(map(len, found)),
            "runtime_s": runtime_s(found),
            "least_computing_s": min(computing),
            "most_computing_s": max(computing),
            "calls": calls,
        },
        **({REMARK: said} if elsewhere else {}),
    }


_TIMED = "MPI calls"  # of the identity of a plan whose runs are timed


def with_mpi_times(plan: Plan, path: str) -> Plan:
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
        objective=TimedObjective(plan.objective, library.built_path()),
        identity={**plan.identity, _TIMED: library.identity()},
    )


def build_library(plan: Plan) -> Plan:
    """Make the library that the runs of a timed plan load; where that cannot be, the plan that is returned says so."""
    if _TIMED not in plan.identity:
        return plan
    try:
        library.build()
    except NotMadeError as error:
        note = f"no efficiencies: the library that times calls of MPI cannot be made: {error}"
        return replace(plan, notes=(*plan.notes, note))
    return plan
