"""The command line, the environment and the remarks of a job's ranks, by the start command that a machine has."""

from collections.abc import Collection

from launchers.job import Job, MpiStart
from launchers.mpi.start_command import CannotStartRanksError, MpiFlavour, RankStart


def mpi_argv(flavour: MpiFlavour, job: Job, *, online: Collection[int] = ()) -> list[str]:
    """Return the command line of a job, with what starts its ranks.

    `online` are the cores of this machine: a job with only some of them is kept to `job.resources.cpus`. Without them
    the job has the machine or its allocation to itself, as in a job script, and core numbers are left out.

    Raises:
        CannotStartRanksError: the job has no ranks, or asks for a binding that cannot be kept to its cores.
    """
    if job.mpi is None:
        return list(job.argv)
    if job.mpi.ranks < 1:
        msg = f"a job of {job.mpi.ranks} ranks cannot be started; ranks must be 1 or more"
        raise CannotStartRanksError(msg)
    start = _start(job, job.mpi, online)
    return [flavour.path, *flavour.kind.options(flavour, start), *job.mpi.options, *job.argv]


def mpi_environment(flavour: MpiFlavour, *, user_id: int) -> dict[str, str]:
    """Return the variables that the start command needs here; `notes` says why."""
    return dict(flavour.kind.environment(flavour, user_id))


def notes(flavour: MpiFlavour, *, user_id: int) -> tuple[str, ...]:
    """Return what the user should know about how ranks are started here."""
    return (f"ranks are started with {flavour}", *flavour.kind.notes(flavour, user_id))


def _start(job: Job, mpi: MpiStart, online: Collection[int]) -> RankStart:
    cpus = tuple(sorted(job.resources.cpus))
    if job.resources.nodes > 1 and job.resources.hosts:
        hosts = job.resources.hosts[: job.resources.nodes]
        capacity = len(hosts) * len(cpus) or job.resources.cores
        return RankStart(mpi, cores=(), capacity=capacity, shared=False, nodes=len(hosts), hosts=hosts)
    is_part = bool(cpus) and bool(online) and set(cpus) != set(online)
    return RankStart(
        mpi=mpi,
        cores=cpus if is_part else (),
        capacity=len(cpus) or len(online) or job.resources.cores,
        shared=bool(online) and not cpus,
        nodes=job.resources.nodes,
    )
