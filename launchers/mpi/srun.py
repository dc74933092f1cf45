"""Slurm's `srun`, in an allocation."""

import re

from launchers.mpi.start_command import MpiFlavour, MpiStartCommand, RankStart

_BINDINGS = {"core": "cores", "hwthread": "threads", "socket": "sockets", "numa": "ldoms"}
# Share the allocation with other steps. Before 22.05 steps share only cores, and each would wait for the others'
# memory.
_BESIDE_OTHERS = ("--overlap", "--mem=0")


def _options(_flavour: MpiFlavour, start: RankStart) -> list[str]:
    mpi = start.mpi
    options = [f"--nodes={start.nodes}", f"--ntasks={mpi.ranks}", "--export=ALL", "--kill-on-bad-exit=1"]
    if start.hosts:
        # Otherwise srun starts on the first host of the allocation, wherever it is called.
        options += [f"--nodelist={','.join(start.hosts)}", f"--ntasks-per-node={start.slots}"]
    if start.hosts or start.cores:
        # The step that runs the coordinator's Ray cluster holds the hosts, and autotune assigns the cores itself.
        options += _BESIDE_OTHERS
    if start.is_oversubscribed:
        return [*options, "--overcommit", _unbound(start)]
    if not start.cores:
        # Not with assigned cores: the option implies --exact, by which Slurm chooses the cores, and srun then refuses
        # masks.
        options.append(f"--cpus-per-task={start.threads}")
    if start.threads_per_core > 1:
        options.append(f"--threads-per-core={start.threads_per_core}")
    if mpi.map_by:
        options.append(f"--distribution={mpi.map_by}")
    if mpi.bind_to == "none":
        return [*options, _unbound(start)]
    if start.cores:
        return [*options, f"--cpu-bind=mask_cpu:{start.masks()}"]
    return [*options, f"--cpu-bind={_BINDINGS.get(mpi.bind_to, mpi.bind_to)}"] if mpi.bind_to else options


def _unbound(start: RankStart) -> str:
    """Return the option that leaves every rank all cores of the job.

    Slurm itself starts the ranks, so they do not inherit a CPU mask from this process.
    """
    return f"--cpu-bind=mask_cpu:{start.mask()}" if start.cores else "--cpu-bind=none"


SRUN = MpiStartCommand(
    name="Slurm srun",
    commands=("srun",),
    version_patterns=(re.compile(r"^slurm(?:-wlm)?\s+(\d+(?:\.\d+)*)", re.MULTILINE),),
    options=_options,
    # Outside an allocation srun would request nodes and wait for them.
    allocation_variable="SLURM_JOB_ID",
)
