"""What a start command of ranks reads of the Slurm job that it is called in: the hosts, and the slots of each.

Open MPI and Hydra have as many slots on a host as Slurm starts tasks there. A pilot has one task on a host, whatever
cores it has, and a job in it has the cores that autotune gives it. Inside of a step the list of hosts is still that of
the whole Slurm job, so that a start command on one of them would begin with the first.
"""

from collections.abc import Mapping

_HOSTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
_NUMBERS = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
_CPUS = "SLURM_JOB_CPUS_PER_NODE"
_SLOTS = "SLURM_TASKS_PER_NODE"


def with_slots(caller: Mapping[str, str], nodes: int) -> Mapping[str, str]:
    """Return the environment of a job on so many nodes: with a slot for each CPU, and one node is this one alone.

    Outside of a job of Slurm it is the caller's as it is; so it is in `salloc` on the host of a login.
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
