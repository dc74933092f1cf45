"""The start command of a run as it is stored, and read back for a job script."""

from collections.abc import Mapping
from typing import Any

from launchers.mpi.open_mpi import OPEN_MPI
from launchers.mpi.registry import start_command
from launchers.mpi.start_command import MpiFlavour


def flavour_record(flavour: MpiFlavour) -> dict[str, Any]:
    """Return the flavour as JSON-able values, to be kept with a run."""
    return {
        "kind": flavour.kind.name,
        "version": list(flavour.version),
        "path": flavour.path,
        "single_copy": flavour.single_copy,
    }


def script_flavour(job: Mapping[str, Any]) -> MpiFlavour:
    """Return what a job script starts ranks with: the flavour that the run was recorded with under `flavour`.

    By its plain name, for a script runs where other modules may be loaded; Open MPI's `mpirun` if there is no record.
    """
    record = job.get("flavour")
    if not record:
        return MpiFlavour(OPEN_MPI)
    name = str(record["path"]).rpartition("/")[2]
    return MpiFlavour(start_command(record["kind"]), tuple(record["version"]), name, record.get("single_copy", True))
