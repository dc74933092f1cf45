"""The MPI start commands: those that ship, those of other distributions, and how they are stored with a run."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from launchers.extensions.entry_points import EntryPointError, describe, find_entry_points, load_entry_point
from launchers.mpi.intel_mpi import INTEL_MPI
from launchers.mpi.mpich import MPICH
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.mpi.srun import SRUN
from launchers.mpi.start_command import MpiFlavour, MpiStartCommand

GROUP = "autotune.mpi_start_commands"
"""The group of entry points whose values are `MpiStartCommand`s."""

SHIPPED = (OPEN_MPI, INTEL_MPI, MPICH, SRUN)
"""In the order in which they are searched for; Open MPI is the default."""


@cache
def start_commands() -> tuple[MpiStartCommand, ...]:
    """Return all start commands, beginning with those that ship.

    Raises:
        EntryPointError: A distribution offers one that cannot be loaded, is not a start command, or has a name in use.
    """
    known = {command.name: command for command in SHIPPED}
    for point in find_entry_points(GROUP).values():
        command = load_entry_point(point)
        if not isinstance(command, MpiStartCommand):
            msg = f"{describe(point)} must be a launchers.mpi.MpiStartCommand, got {type(command).__name__}"
            raise EntryPointError(msg)
        if command.name in known:
            msg = f"{describe(point)}: an MPI start command called {command.name!r} is known already; rename it"
            raise EntryPointError(msg)
        known[command.name] = command
    return tuple(known.values())


def start_command(name: str) -> MpiStartCommand:
    """Return the start command called `name`.

    Raises:
        ValueError: No start command has this name.
    """
    for command in start_commands():
        if command.name == name:
            return command
    msg = f"no MPI start command is called {name!r}; known: {', '.join(map(str, start_commands()))}"
    raise ValueError(msg)


def flavour_record(flavour: MpiFlavour) -> dict[str, Any]:
    """Return the flavour as JSON-able values to store with a run."""
    return {
        "kind": flavour.kind.name,
        "version": list(flavour.version),
        "path": flavour.path,
        "single_copy": flavour.single_copy,
    }


def recorded_flavour(job: Mapping[str, Any]) -> MpiFlavour:
    """Return the flavour recorded with a job under `flavour`, or else Open MPI."""
    record = job.get("flavour")
    if not record:
        return MpiFlavour(OPEN_MPI)
    version, path = tuple(record["version"]), str(record["path"])
    return MpiFlavour(start_command(record["kind"]), version, path, record.get("single_copy", True))


def spinning_ranks(job: Mapping[str, Any]) -> str:
    """Return that the ranks of a recorded job spin while they wait, and what lets others run meanwhile.

    It is empty if they do not spin, if nothing is known against it, or if the job has fewer than two ranks.
    """
    for part in (job, *job.get("parts", ())):
        mpi, resources = part.get("mpi"), part.get("resources", {})
        capacity = resources.get("cores", 1) * resources.get("threads_per_core", 1)
        if not mpi or not part.get("flavour") or not 1 < mpi["ranks"] <= capacity:
            continue
        kind = recorded_flavour(part).kind
        # Jobs have the variables of this process, too, and a job's own are recorded.
        if kind.yielding is not None and kind.yielding[0] not in {*part.get("environment", {}), *os.environ}:
            variable = "=".join(kind.yielding)
            return f"MPI ranks spin while they wait for each other: with {variable} those of {kind} let others run then"
    return ""


def script_flavour(job: Mapping[str, Any]) -> MpiFlavour:
    """Return the recorded flavour by its plain name, since a job script may run with other modules loaded."""
    flavour = recorded_flavour(job)
    return replace(flavour, path=flavour.path.rpartition("/")[2])
