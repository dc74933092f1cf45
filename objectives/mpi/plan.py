"""Make an MPI library ready to be tuned: its variables, the benchmark built with its compiler, and the space."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launchers.software.digest import file_digest
from objectives.base import Plan, PlanError, RunJob
from objectives.linked_libraries import find_linked_libraries, library_identity
from objectives.made_file import NotMadeError, make_once
from objectives.mpi import backends
from objectives.mpi.knobs import BIND_TO, COLLECTIVE, PAUSE_US, RANKS, TESTS
from objectives.mpi.library import Library, find_library
from objectives.mpi.objective import ELAPSED, LATENCY, OVERLAP_METRICS, MpiObjective
from objectives.mpi.options import MpiOptions
from objectives.probe import PROGRAMS, Probe
from objectives.training import torch
from objectives.training.torch import TorchPython
from spaces import Choice, Constraint, Integer, Parameter
from spaces.parameters.problem import Problem

_LIMIT_S = 60.0
_PROGRAMS = PROGRAMS / "mpi"
_SHARED = _PROGRAMS / "checked.h"
_TEST_CALLS = (1, 2, 4, 8, 16, 32, 64)
_PAUSES_US = (10, 100, 1000)


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Ask the MPI library for its variables, build the benchmark, and suggest the space.

    Raises:
        PlanError: The options have errors, or the benchmark cannot be built here.
    """
    checked = MpiOptions.read(options)
    found = find_library(checked, Probe(run_job, folder.resolve(), _LIMIT_S))
    python = torch.find_python(checked.python, run_job, folder.resolve()) if "backends" in checked.knobs else None
    if python is not None:
        # The backends do not read the library's variables.
        found = replace(found, knobs=backends.knobs(python, checked))
    source = _PROGRAMS / ("overlap.c" if checked.overlap else "collectives.c")
    program = _build(found, source)
    cores = int(machine["cores"])
    sizes = sorted(set(checked.message_bytes))
    metrics = OVERLAP_METRICS if checked.overlap else (LATENCY, ELAPSED)
    words = ",".join(map(str, sizes))
    objective = MpiObjective(str(program), words, checked.seconds, cores, found.knobs.variables, metrics)
    if python is not None:
        objective = replace(objective, torch=backends.command(python))
    shared_cores = int(machine["cores_per_node"]) if machine.get("shared_nodes") else None
    placement, progress = _placement(checked, cores, shared_cores), _progress(checked)
    return Plan(
        objective=objective,
        parameters=(*_contexts(checked), *found.knobs.parameters, *placement[0], *progress[0]),
        constraints=(*found.knobs.constraints, *placement[1], *progress[1]),
        facts={
            "mpi_library": found.name,
            "mpi_version": found.version,
            "smallest_message_bytes": sizes[0],
            "largest_message_bytes": sizes[-1],
        },
        installation=("mpi_library", "mpi_version"),
        identity=_identity(objective, found, program, source) | (backends.identity(python) if python else {}),
        notes=_notes(checked, found, cores, python),
    )


def _build(found: Library, source: Path) -> Path:
    command = (found.compiler, "-O2", "-pthread", "-o", source.stem, source.name)
    try:
        return make_once(source.stem, (command,), (source, _SHARED))
    except (NotMadeError, OSError) as error:
        needs = "; a compiler of MPI needs mpi.h: apt-get install libopenmpi-dev" if "mpi.h" in str(error) else ""
        raise PlanError(Problem(f"the benchmark cannot be built: {error}{needs}", "options.compiler")) from error


def _contexts(checked: MpiOptions) -> tuple[Parameter, ...]:
    collectives, ranks = tuple(dict.fromkeys(checked.collectives)), tuple(sorted(set(checked.ranks)))
    return (
        Choice(COLLECTIVE, collectives, default=collectives[0], help="the collective operation that is measured"),
        Integer(RANKS, ranks, default=ranks[0], help="how many ranks take part"),
    )


def _placement(
    checked: MpiOptions, cores: int, shared_cores: int | None
) -> tuple[tuple[Parameter, ...], tuple[Constraint, ...]]:
    """Return the binding of ranks; jobs on a part of a node may share its `shared_cores`, unless it is None."""
    if "placement" not in checked.knobs:
        return (), ()
    bind_to = Choice(BIND_TO, ("core", "none"), optional=True, help="to what a rank is kept")
    rule = f"not is_set({BIND_TO}) or {BIND_TO} == 'none' or {RANKS} <= {cores}"
    rules = [Constraint("a core for each bound rank", rule, "ranks that share cores cannot be bound")]
    if shared_cores is not None:
        rule = f"not is_set({BIND_TO}) or {BIND_TO} == 'none' or {RANKS} % {shared_cores} == 0"
        words = "two jobs on one node would bind their ranks to the same cores (exclusive = true in the site file)"
        rules.append(Constraint("bound ranks fill nodes", rule, words))
    return (bind_to,), tuple(rules)


def _progress(checked: MpiOptions) -> tuple[tuple[Parameter, ...], tuple[Constraint, ...]]:
    if "progress" not in checked.knobs:
        return (), ()
    help_ = "calls of MPI_Test within the computation, evenly spread; unset: none"
    tests = Integer(TESTS, _TEST_CALLS, optional=True, help=help_)
    help_ = "a thread of each rank makes progress, and waits so long in between; unset: there is none"
    pause = Integer(PAUSE_US, _PAUSES_US, optional=True, help=help_)
    rule = f"not (is_set({TESTS}) and is_set({PAUSE_US}))"
    return (tests, pause), (Constraint("calls or a thread", rule, "one of them makes progress"),)


def _identity(objective: MpiObjective, found: Library, program: Path, source: Path) -> dict[str, str]:
    return {
        "mpi": f"{found.name} {found.version}",
        "benchmark": f"{file_digest(source)} {file_digest(_SHARED)}",
        "workload": f"{objective.sizes} bytes, {objective.seconds:g} s",
        **library_identity(find_linked_libraries(program)),
    }


def _notes(checked: MpiOptions, found: Library, cores: int, python: TorchPython | None) -> tuple[str, ...]:
    shared = sorted({ranks for ranks in checked.ranks if ranks > cores})
    return (
        f"{found.name} {found.version}, its benchmark built with {found.compiler}",
        f"PyTorch {python.torch} at {python.path}, {python.gpus or 'no'} GPUs" if python else _library_text(found),
        *(
            f"{', '.join(map(str, shared))} ranks share {cores} cores: they are oversubscribed, and take turns; what "
            "is fastest there need not be where each rank has a core"
            for _ in shared[:1]
        ),
    )


def _library_text(found: Library) -> str:
    names = [parameter.name for parameter in found.knobs.parameters]
    shown = ", ".join(names[:4]) or "none"
    return f"{len(names)} of its variables are tuned: {shown}{' ...' if len(names) > 4 else ''}"
