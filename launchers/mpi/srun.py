"""Slurm's `srun`, in an allocation."""

import re

from launchers.mpi.start_command import MpiFlavour, MpiStartCommand, RankStart

_BINDINGS = {"core": "cores", "hwthread": "threads", "socket": "sockets", "numa": "ldoms"}
# Beside other steps of the job; before 22.05 those share cores only, and each would wait for the memory of the others.
_BESIDE_OTHERS = ("--overlap", "--mem=0")


def _options(_flavour: MpiFlavour, start: RankStart) -> list[str]:
    mpi = start.mpi
    options = [f"--nodes={start.nodes}", f"--ntasks={mpi.ranks}", "--export=ALL", "--kill-on-bad-exit=1"]
    if start.hosts:
        # Without that it is the first of the allocation, wherever this is called.
        options += [f"--nodelist={','.join(start.hosts)}", f"--ntasks-per-node={start.slots}"]
    if start.hosts or start.cores:
        # Another step holds the hosts: the one that the coordinator's cluster runs in; and cores are ours to share out.
        options += _BESIDE_OTHERS
    if start.is_oversubscribed:
        return [*options, "--overcommit", _unbound(start)]
    if not start.cores:
        # It implies --exact: the step would have so many cores that Slurm chooses, and srun refuses masks beside them.
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
    """Return the option that leaves each rank all cores of the job: Slurm itself starts ranks, with no mask of ours."""
    return f"--cpu-bind=mask_cpu:{start.mask()}" if start.cores else "--cpu-bind=none"


SRUN = MpiStartCommand(
    name="Slurm srun",
    commands=("srun",),
    version_patterns=(re.compile(r"^slurm(?:-wlm)?\s+(\d+(?:\.\d+)*)", re.MULTILINE),),
    options=_options,
    rank_options=("-n", "--ntasks"),
    # Outside of an allocation it would ask for nodes, and wait for them.
    allocation_variable="SLURM_JOB_ID",
)
