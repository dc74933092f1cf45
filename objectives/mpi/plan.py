"""Making an MPI library ready to be tuned: its variables, the benchmark built with its compiler, and the space."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchers.software.digest import file_digest
from objectives.base import Plan, PlanError, RunJob
from objectives.linking import libraries
from objectives.linking.linked import linked_libraries
from objectives.madefile import NotMadeError, made_once
from objectives.mpi.knobs import COLLECTIVE, RANKS
from objectives.mpi.library import Library, library
from objectives.mpi.objective import BIND_TO, MpiObjective
from objectives.mpi.options import MpiOptions
from objectives.probe import Probe
from spaces import Choice, Constraint, Integer, Parameter
from spaces.parameters.problem import Problem

_LIMIT_S = 60.0
_SOURCE = Path(__file__).with_name("programs") / "collectives.c"


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Ask the MPI library for its variables, build the benchmark, and suggest the space.

    Raises:
        PlanError: the options have errors, or the benchmark cannot be built here.
    """
    checked = MpiOptions.read(options)
    found = library(checked, Probe(run_job, folder.resolve(), _LIMIT_S))
    program = _built(found)
    cores = int(machine["cores"])
    placement = _placement(checked, cores)
    sizes = sorted(set(checked.message_bytes))
    objective = MpiObjective(str(program), ",".join(map(str, sizes)), checked.seconds, cores, found.knobs.variables)
    return Plan(
        objective=objective,
        parameters=(*_contexts(checked), *found.knobs.parameters, *placement[0]),
        constraints=(*found.knobs.constraints, *placement[1]),
        facts={
            "mpi_library": found.name,
            "mpi_version": found.version,
            "smallest_message_bytes": sizes[0],
            "largest_message_bytes": sizes[-1],
        },
        installation=("mpi_library", "mpi_version"),
        identity=_identity(objective, found, program),
        notes=_notes(checked, found, cores),
    )


def _built(found: Library) -> Path:
    try:
        return made_once("collectives", ((found.compiler, "-O2", "-o", "collectives", _SOURCE.name),), (_SOURCE,))
    except (NotMadeError, OSError) as error:
        needs = "; a compiler of MPI needs mpi.h: apt-get install libopenmpi-dev" if "mpi.h" in str(error) else ""
        raise PlanError(Problem(f"the benchmark cannot be built: {error}{needs}", "options.compiler")) from error


def _contexts(checked: MpiOptions) -> tuple[Parameter, ...]:
    collectives, ranks = tuple(dict.fromkeys(checked.collectives)), tuple(sorted(set(checked.ranks)))
    return (
        Choice(COLLECTIVE, collectives, default=collectives[0], help="the collective operation that is measured"),
        Integer(RANKS, ranks, default=ranks[0], help="how many ranks take part"),
    )


def _placement(checked: MpiOptions, cores: int) -> tuple[tuple[Parameter, ...], tuple[Constraint, ...]]:
    if "placement" not in checked.knobs:
        return (), ()
    bind_to = Choice(BIND_TO, ("core", "none"), optional=True, help="to what a rank is kept")
    rule = f"not is_set({BIND_TO}) or {BIND_TO} == 'none' or {RANKS} <= {cores}"
    return (bind_to,), (Constraint("a core for each bound rank", rule, "ranks that share cores cannot be bound"),)


def _identity(objective: MpiObjective, found: Library, program: Path) -> dict[str, str]:
    return {
        "mpi": f"{found.name} {found.version}",
        "benchmark": file_digest(_SOURCE),
        "workload": f"{objective.sizes} bytes, {objective.seconds:g} s",
        **libraries.identity(linked_libraries(program)),
    }


def _notes(checked: MpiOptions, found: Library, cores: int) -> tuple[str, ...]:
    shared = sorted({ranks for ranks in checked.ranks if ranks > cores})
    return (
        f"{found.name} {found.version}, its benchmark built with {found.compiler}",
        f"{len(found.knobs.parameters)} of its variables are tuned: "
        + (", ".join(parameter.name for parameter in found.knobs.parameters[:4]) or "none")
        + (" ..." if len(found.knobs.parameters) > 4 else ""),
        *(
            f"{', '.join(map(str, shared))} ranks share {cores} cores: they are oversubscribed, and take turns; what "
            "is fastest there need not be where each rank has a core"
            for _ in shared[:1]
        ),
    )
