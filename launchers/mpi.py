"""How the ranks of a job are started: pure functions from a job to the command line of the MPI start command.

Two jobs must never share a core. Left to itself, Open MPI (4 and 5) binds the first ranks of *every* job to the cores
0, 1, ..., also when `mpirun` itself was given other cores; with `--bind-to none` its ranks keep those of `mpirun`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from launchers.job import Job, MpiStart


class MpiKind(StrEnum):
    """The families of MPI start commands."""

    OPEN_MPI = "Open MPI"
    MPICH = "MPICH"
    INTEL_MPI = "Intel MPI"
    SRUN = "Slurm srun"


@dataclass(frozen=True)
class MpiFlavour:
    """An MPI start command: `path` is its name or full path, `version` what it said of itself (may be empty).

    `single_copy` says whether a process may read another one's memory here: containers often forbid it.
    """

    kind: MpiKind
    version: tuple[int, ...] = ()
    path: str = "mpirun"
    single_copy: bool = True

    def __str__(self) -> str:
        version = ".".join(map(str, self.version))
        return f"{self.kind} {version} ({self.path})" if version else f"{self.kind} ({self.path})"

    @property
    def uses_prrte(self) -> bool:
        """Whether this is Open MPI 5 or later, whose start command is PRRTE's and takes other options."""
        return self.kind is MpiKind.OPEN_MPI and self.version >= (5,)


class CannotStartRanksError(ValueError):
    """What the job asks of the MPI start command cannot be said to it."""


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
    return [flavour.path, *_OPTIONS[flavour.kind](flavour, start), *job.mpi.options, *job.argv]


def mpi_environment(flavour: MpiFlavour, *, user_id: int) -> dict[str, str]:
    """Return the variables that the start command needs here; `notes` says why."""
    if flavour.kind is not MpiKind.OPEN_MPI:
        return {}
    variables = {}
    if user_id == 0:
        variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if flavour.uses_prrte:
            variables |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if not flavour.single_copy:
        component = "smsc" if flavour.uses_prrte else "btl_vader_single_copy_mechanism"
        variables[f"OMPI_MCA_{component}"] = "^cma" if flavour.uses_prrte else "none"
    return variables


def notes(flavour: MpiFlavour, *, user_id: int) -> tuple[str, ...]:
    """Return what the user should know about how ranks are started here."""
    said = [f"ranks are started with {flavour}"]
    if flavour.kind is MpiKind.OPEN_MPI:
        said.append(
            "ranks of a job with part of the machine are not bound to single cores, only kept to the job's cores"
        )
        if user_id == 0:
            said.append("Open MPI is allowed to run as root, because this is root")
        if not flavour.single_copy:
            said.append(
                "this container forbids processes to read each other's memory: messages within the node are copied "
                "twice (Open MPI's CMA is switched off), so times may differ from those outside of it"
            )
    return tuple(said)


@dataclass(frozen=True)
class _Start:
    """What is to be started: `cores` are those that the job is kept to, empty if it may use the whole machine.

    `capacity` is how many cores the job has. `shared` means that other jobs may use the same cores: default bindings
    would put all of them on the first ones. `hosts` are the hosts of a job of several.
    """

    mpi: MpiStart
    cores: tuple[int, ...]
    capacity: int
    shared: bool
    nodes: int
    hosts: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        """How many ranks a host of several takes: as even as can be."""
        return -(-self.mpi.ranks // max(1, len(self.hosts)))

    @property
    def threads(self) -> int:
        """How many cores a rank has."""
        return max(1, self.capacity // self.mpi.ranks)

    @property
    def is_oversubscribed(self) -> bool:
        """Whether ranks must share cores."""
        return self.mpi.ranks > self.capacity

    def core_sets(self) -> list[tuple[int, ...]]:
        """Return the cores of each rank."""
        k = self.threads
        return [self.cores[k * rank : k * (rank + 1)] for rank in range(self.mpi.ranks)]


def _start(job: Job, mpi: MpiStart, online: Collection[int]) -> _Start:
    cpus = tuple(sorted(job.resources.cpus))
    if job.resources.nodes > 1 and job.resources.hosts:
        hosts = job.resources.hosts[: job.resources.nodes]
        capacity = len(hosts) * len(cpus) or job.resources.cores
        return _Start(mpi, cores=(), capacity=capacity, shared=False, nodes=len(hosts), hosts=hosts)
    is_part = bool(cpus) and bool(online) and set(cpus) != set(online)
    return _Start(
        mpi=mpi,
        cores=cpus if is_part else (),
        capacity=len(cpus) or len(online) or job.resources.cores,
        shared=bool(online) and not cpus,
        nodes=job.resources.nodes,
    )


def _open_mpi(flavour: MpiFlavour, start: _Start) -> list[str]:
    mpi = start.mpi
    options = ["-np", str(mpi.ranks)]
    if start.hosts:
        options += ["--host", ",".join(f"{host}:{start.slots}" for host in start.hosts)]
    if start.is_oversubscribed:
        # Ranks that wait must let the others have the core. "none" is the only binding that allows it.
        oversubscribe = ["--map-by", ":OVERSUBSCRIBE"] if flavour.uses_prrte else ["--oversubscribe"]
        return [*options, *oversubscribe, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    if start.shared:
        return [*options, *_given("--map-by", mpi.map_by), "--bind-to", mpi.bind_to or "none"]
    if start.cores:
        return [*options, *_open_mpi_confined(flavour, start)]
    if mpi.bind_to is None and start.threads > 1:
        # Its own default would bind all threads of a rank to one core.
        options += ["--map-by", f"{mpi.map_by or 'slot'}:PE={start.threads}"]
    elif mpi.map_by:
        options += ["--map-by", mpi.map_by]
    return [*options, *_given("--bind-to", mpi.bind_to)]


def _open_mpi_confined(flavour: MpiFlavour, start: _Start) -> list[str]:
    bind_to = start.mpi.bind_to or "none"
    if bind_to == "none":
        return [*_given("--map-by", start.mpi.map_by), "--bind-to", "none"]
    if start.threads > 1 or start.mpi.map_by:
        wanted = f"bind_to = {bind_to!r}" + (f", map_by = {start.mpi.map_by!r}" if start.mpi.map_by else "")
        msg = (
            f"Open MPI cannot keep {start.mpi.ranks} ranks with {wanted} to the cores {list(start.cores)} of this job; "
            "use bind_to = 'none', or give each job the whole machine (one worker)"
        )
        raise CannotStartRanksError(msg)
    listed = ",".join(map(str, start.cores))
    cores = ["--map-by", f"pe-list={listed}:ordered"] if flavour.uses_prrte else ["--cpu-set", listed]
    return [*cores, "--bind-to", bind_to]


def _mpich(_flavour: MpiFlavour, start: _Start) -> list[str]:
    options = ["-n", str(start.mpi.ranks), *_hydra_hosts(start)]
    if start.is_oversubscribed or start.mpi.bind_to == "none":
        return [*options, "-bind-to", "none"]
    if start.cores:
        return [*options, "-bind-to", "user:" + ",".join("+".join(map(str, cores)) for cores in start.core_sets())]
    return [*options, *_given("-bind-to", start.mpi.bind_to), *_given("-map-by", start.mpi.map_by)]


def _intel_mpi(_flavour: MpiFlavour, start: _Start) -> list[str]:
    options = ["-n", str(start.mpi.ranks), *_hydra_hosts(start)]
    if start.is_oversubscribed or start.mpi.bind_to == "none":
        return [*options, "-genv", "I_MPI_PIN", "0"]
    if start.cores:
        return [*options, "-genv", "I_MPI_PIN_DOMAIN", f"[{_masks(start)}]"]
    if start.mpi.bind_to:
        options += ["-genv", "I_MPI_PIN_DOMAIN", start.mpi.bind_to]
    if start.mpi.map_by:
        options += ["-genv", "I_MPI_PIN_ORDER", start.mpi.map_by]
    return options


def _hydra_hosts(start: _Start) -> list[str]:
    return ["-hosts", ",".join(start.hosts), "-ppn", str(start.slots)] if start.hosts else []


def _srun(_flavour: MpiFlavour, start: _Start) -> list[str]:
    mpi = start.mpi
    options = [f"--nodes={start.nodes}", f"--ntasks={mpi.ranks}", "--export=ALL", "--kill-on-bad-exit=1"]
    if start.hosts:
        # Another step holds the hosts: the one that the coordinator's cluster runs in.
        options += [f"--nodelist={','.join(start.hosts)}", f"--ntasks-per-node={start.slots}", "--overlap"]
    if start.is_oversubscribed:
        return [*options, "--overcommit", "--cpu-bind=none"]
    options.append(f"--cpus-per-task={start.threads}")
    if mpi.map_by:
        options.append(f"--distribution={mpi.map_by}")
    if start.cores:
        # The cores are ours to share out: steps run side by side in one allocation.
        options.append("--overlap")
        if mpi.bind_to != "none":
            return [*options, f"--cpu-bind=mask_cpu:{_masks(start)}"]
    return [*options, f"--cpu-bind={_SRUN_BINDINGS.get(mpi.bind_to, mpi.bind_to)}"] if mpi.bind_to else options


_OPTIONS = {
    MpiKind.OPEN_MPI: _open_mpi,
    MpiKind.MPICH: _mpich,
    MpiKind.INTEL_MPI: _intel_mpi,
    MpiKind.SRUN: _srun,
}
_SRUN_BINDINGS = {"core": "cores", "hwthread": "threads", "socket": "sockets", "numa": "ldoms"}


def _given(option: str, value: str | None) -> list[str]:
    return [option, value] if value else []


def _masks(start: _Start) -> str:
    """Return the cores of each rank as bit masks, in hexadecimal."""
    return ",".join(hex(sum(1 << core for core in cores)) for cores in start.core_sets())


def flavour_record(flavour: MpiFlavour) -> dict[str, Any]:
    """Return the flavour as JSON-able values, to be kept with a run."""
    return {
        "kind": flavour.kind.value,
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
        return MpiFlavour(MpiKind.OPEN_MPI)
    name = str(record["path"]).rpartition("/")[2]
    return MpiFlavour(MpiKind(record["kind"]), tuple(record["version"]), name, record.get("single_copy", True))
