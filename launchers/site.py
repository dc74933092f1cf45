"""A site: the settings of a cluster that all job scripts there share."""

import sys
from dataclasses import dataclass, field

from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI


@dataclass(frozen=True)
class Site:
    """The settings of a cluster, as its users know them from their own job scripts.

    Attributes:
        scheduler: The name of the batch system.
        name: The name of the site.
        account: What PBS calls a project.
        queue: What Slurm calls a partition.
        qos: What LSF calls a service class; PBS and Flux have none.
        gres: Slurm's name of a node's GPUs as generic resource, if the site wants them requested that way.
        account_name: A second account of PBS (`-A`), if the site charges by it.
        group: A group that PBS charges (`group_list`), if the site charges by it.
        chunk: Words for each chunk of a PBS job (`model=sky`).
        licences: Licences that the scheduler counts, as it writes them: `name:count` for Slurm, `name=count` for PBS
            and LSF. PBS also takes a name alone, requested with `-l software=`.
        directives: More lines for the scheduler, without their `#SBATCH` or `#PBS`.
        modules: Modules that the job's shell loads before the program.
        setup: Lines that the job's shell runs before the program, after loading modules.
        nodes: The most nodes that a job gets.
        cores_per_node: Cores of a node.
        gpus_per_node: GPUs of a node.
        memory_bytes: Memory of a node; None if a job should get the site's default.
        walltime_s: The longest wall time of a job.
        exclusive: Whether a job shares its nodes with no other job.
        max_jobs: The most jobs in the queue at a time.
        submissions_per_minute: The most jobs submitted per minute; None for no limit.
        poll_s: The shortest time between two queries of the scheduler.
        energy: Whether the site's accounting records the energy of jobs.
        mpi: Starts the ranks.
        python: The interpreter on the nodes; by default autotune's own, in a folder that the nodes share.
        by_chunks: Whether PBS takes `-l select=`; older versions and some sites' own forms do not.
        needs_account: Whether the site takes no job without an account.
        knows_program: False if `modules` may lack what the program of the job needs.
    """

    scheduler: str
    name: str = "site"
    account: str = ""
    queue: str = ""
    qos: str = ""
    gres: str = ""
    account_name: str = ""
    group: str = ""
    chunk: tuple[str, ...] = ()
    licences: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    nodes: int = 1
    cores_per_node: int = 1
    gpus_per_node: int = 0
    memory_bytes: int | None = None
    walltime_s: float = 3600.0
    exclusive: bool = False
    max_jobs: int = 100
    submissions_per_minute: int | None = None
    poll_s: float = 30.0
    energy: bool = False
    mpi: MpiFlavour = field(default_factory=lambda: MpiFlavour(OPEN_MPI))
    python: str = sys.executable
    by_chunks: bool = True
    needs_account: bool = False
    knows_program: bool = True
