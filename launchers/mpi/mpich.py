"""MPICH's `mpiexec`."""

import re

from launchers.mpi.start_command import MpiFlavour, MpiStartCommand, RankStart, option


def _options(_flavour: MpiFlavour, start: RankStart) -> list[str]:
    options = ["-n", str(start.mpi.ranks), *host_options(start)]
    if start.is_oversubscribed or start.mpi.bind_to == "none":
        return [*options, "-bind-to", "none"]
    if start.cores:
        return [*options, "-bind-to", "user:" + ",".join("+".join(map(str, cores)) for cores in start.core_sets())]
    return [*options, *option("-bind-to", start.mpi.bind_to), *option("-map-by", start.mpi.map_by)]


def host_options(start: RankStart) -> list[str]:
    """Return the options that name the hosts of a job on several; MPICH and Intel MPI both use Hydra."""
    return ["-hosts", ",".join(start.hosts), "-ppn", str(start.slots)] if len(start.hosts) > 1 else []


MPICH = MpiStartCommand(
    name="MPICH",
    commands=("mpiexec", "mpirun", "mpiexec.hydra"),
    version_patterns=(re.compile(r"HYDRA build details:.*?Version:\s+(\d+(?:\.\d+)*)", re.DOTALL),),
    options=_options,
)
