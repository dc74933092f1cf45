"""The command line of a job with ranks, for the MPI start command of a machine.

Two jobs must never share a core. By default Open MPI (4 and 5) binds the first ranks of *every* job to cores 0, 1, ...,
even if `mpirun` itself was given other cores; with `--bind-to none` its ranks keep the cores of `mpirun`.
"""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from launchers.cpus import threads_in_use
from launchers.job import Job
from launchers.mpi import CannotStartRanksError, MpiFlavour, MpiStart, RankStart


def mpi_argv(flavour: MpiFlavour, job: Job, *, online: Collection[int] = (), shares_nodes: bool = False) -> list[str]:
    """Return the command line of a job, including the command that starts its ranks.

    Args:
        flavour: The MPI start command.
        job: The job.
        online: The cores of this machine: a job with only some of them is confined to `job.resources.cpus`. If empty,
            as in a job script, the job has the machine or its allocation to itself and core numbers are left out.
        shares_nodes: Whether other jobs may run on the same nodes without being confined to cores of their own. The
            start command must then not choose cores.

    Raises:
        CannotStartRanksError: The job has no ranks, or asks for a binding that cannot be confined to its cores.
    """
    if job.mpi is None:
        return list(job.argv)
    if job.mpi.ranks < 1:
        msg = f"a job of {job.mpi.ranks} ranks cannot be started; ranks must be 1 or more"
        raise CannotStartRanksError(msg)
    start = _start(job, job.mpi, online)
    if shares_nodes:
        start = replace(start, shared=True)
    return [flavour.path, *flavour.kind.options(flavour, start), *job.mpi.options, *job.argv]


def with_program_path(job: Job, flavour: MpiFlavour, environment: Mapping[str, str]) -> Job:
    """Return a job with the full path of its program if its ranks would find another program of that name.

    When called by its full path, Open MPI's start command puts its own folder first on the search path of the ranks.
    """
    program, folder = job.argv[0], str(Path(flavour.path).parent)
    path = None if "/" in program else shutil.which(program, path=environment.get("PATH"))
    if path is None or "/" not in flavour.path or shutil.which(program, path=folder) in {None, path}:
        return job
    return replace(job, argv=(path, *job.argv[1:]))


def _start(job: Job, mpi: MpiStart, online: Collection[int]) -> RankStart:
    cpus, per_core = tuple(sorted(job.resources.cpus)), job.resources.threads_per_core
    if job.resources.nodes > 1 and job.resources.hosts:
        hosts = job.resources.hosts[: job.resources.nodes]
        capacity = (len(hosts) * len(cpus) or job.resources.cores) * per_core
        return RankStart(mpi, (), capacity, shared=False, nodes=len(hosts), hosts=hosts, threads_per_core=per_core)
    is_part = bool(cpus) and bool(online) and set(cpus) != set(online)
    return RankStart(
        mpi=mpi,
        cores=tuple(threads_in_use(cpus, per_core)) if is_part else (),
        capacity=(len(cpus) or len(online) or job.resources.cores) * per_core,
        shared=bool(online) and not cpus,
        nodes=job.resources.nodes,
        hosts=job.resources.hosts,
        threads_per_core=per_core,
    )
