"""The variables of a Slurm job from which an MPI start command takes its hosts and their slots.

Open MPI and Hydra use one slot on a host for each task that Slurm starts there. A pilot has one task per host, whatever
its cores, but its jobs get the cores that autotune assigns. Inside a step the list of hosts is still that of the whole
Slurm job, so a start command on another host would begin with the first one.
"""

from collections.abc import Mapping

_HOSTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
_NUMBERS = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
_CPUS = "SLURM_JOB_CPUS_PER_NODE"
_SLOTS = "SLURM_TASKS_PER_NODE"


def with_slots(caller: Mapping[str, str], nodes: int) -> Mapping[str, str]:
    """Return the environment with a slot for each CPU; a job on one node sees only this node.

    Outside a Slurm job, and in `salloc` on a login host, the environment is returned unchanged.
    """
    here, cpus = caller.get("SLURMD_NODENAME"), caller.get("SLURM_CPUS_ON_NODE")
    if not (here and cpus):
        return caller
    if nodes > 1:
        return {**caller, _SLOTS: caller.get(_CPUS, cpus)}
    return {
        **caller,
        **dict.fromkeys(_HOSTS, here),
        **dict.fromkeys(_NUMBERS, "1"),
        **dict.fromkeys((_CPUS, _SLOTS), cpus),
    }
