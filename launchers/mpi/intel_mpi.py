"""Intel MPI's `mpiexec.hydra`, which its `mpirun` calls."""

import re

from launchers.mpi.mpich import host_options
from launchers.mpi.start_command import MpiFlavour, MpiStartCommand, RankStart

# For several ranks on a core (Intel MPI Library Developer Reference, "Other Environment Variables").
_YIELDING = ("I_MPI_WAIT_MODE", "1")


def _options(_flavour: MpiFlavour, start: RankStart) -> list[str]:
    options = ["-n", str(start.mpi.ranks), *host_options(start)]
    chooses_itself = start.shared and not start.mpi.bind_to
    if start.is_oversubscribed:
        return [*options, "-genv", "I_MPI_PIN", "0", "-genv", *_YIELDING]
    if chooses_itself or start.mpi.bind_to == "none":
        return [*options, "-genv", "I_MPI_PIN", "0"]
    if start.cores:
        return [*options, "-genv", "I_MPI_PIN_DOMAIN", f"[{start.masks()}]"]
    if start.mpi.bind_to:
        options += ["-genv", "I_MPI_PIN_DOMAIN", start.mpi.bind_to]
    if start.mpi.map_by:
        options += ["-genv", "I_MPI_PIN_ORDER", start.mpi.map_by]
    return options


INTEL_MPI = MpiStartCommand(
    name="Intel MPI",
    commands=("mpiexec.hydra", "mpirun", "mpiexec"),
    version_patterns=(re.compile(r"Intel\(R\) MPI Library.*?Version\s+(\d+(?:\.\d+)*)", re.DOTALL),),
    options=_options,
    yielding=_YIELDING,
)
