"""What the start commands of MPICH and Intel MPI share: both are Hydra."""

from launchers.mpi.start_command import RankStart


def host_options(start: RankStart) -> list[str]:
    """Return the options that name the hosts of a job of several."""
    return ["-hosts", ",".join(start.hosts), "-ppn", str(start.slots)] if len(start.hosts) > 1 else []
