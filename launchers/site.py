"""A site: what a job script of everybody there begins with."""

import sys
from dataclasses import dataclass, field

from launchers.mpi import MpiFlavour
from launchers.mpi.open_mpi import OPEN_MPI


@dataclass(frozen=True)
class Site:
    """The settings of a cluster, as its users know them from their own job scripts.

    `queue` is what Slurm calls a partition, `qos` what LSF calls a service class; PBS and Flux have none. `account` is
    what PBS calls a project; its sites may charge by an `account_name` or a `group` besides. `chunk` are words for each
    chunk of a job of PBS (`model=sky`). `licences` are those
    that the scheduler counts, as it writes them itself: `name:count` for Slurm, `name=count` for PBS and LSF, and for
    PBS also a name alone, which is asked for with `-l software=`. A site with `needs_account` takes no job without one,
    and one that not `knows_program` may lack modules that the program of the job needs.
    `directives` are further lines for the scheduler,
    without their `#SBATCH` or `#PBS`; `modules` are loaded and the `setup` lines run by the job's shell before the
    program. `gres` is what Slurm calls the GPUs of a node as generic resource, if a site wants them asked for so.
    A job gets at most `nodes` nodes of `cores_per_node` cores, `gpus_per_node` GPUs and `memory_bytes` each,
    and at most `walltime_s`. With `exclusive` it shares its nodes with nobody.

    At most `max_jobs` are in the queue at a time, at most `submissions_per_minute` are added to it, if there is such a
    limit, and it is asked every `poll_s` at most. With `energy` its accounting counts what jobs take. `mpi` starts the
    ranks, and `python` is the interpreter on the nodes: autotune's own by default, in a folder that they share. With
    `by_chunks` PBS is asked with `-l select=`, which its older and some sites' own forms do not know.
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
