"""What a job sees of the environment of its caller: a short list, so that nothing else can leak into a measurement."""

import re
from collections.abc import Mapping

from launchers.secret import is_secret

# What a program loaded by modules, conda or Spack needs to be found and to run, and nothing that changes its speed.
_NAMES = frozenset(
    {
        *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "MKLROOT"),
        *("HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("LOADEDMODULES", "_LMFILES_", "XDG_RUNTIME_DIR", "PE_HOSTFILE", "NSLOTS"),
        # Which devices are ours is the allocation's decision.
        *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
    }
)
_PREFIXES = (
    *("LC_", "MODULE", "LMOD_", "__LMOD", "CONDA_", "SPACK_", "EBROOT", "EBVERSION", "APPTAINER_", "SINGULARITY_"),
    # How MPI and its transports were set up at this site.
    *("OMPI_", "OPAL_", "PMIX_MCA_", "PRTE_", "UCX_", "I_MPI_", "FI_", "MPICH_", "HYDRA_", "MV2_", "PSM2_", "PSM3_"),
    # The allocation that this process runs in.
    *("SLURM_", "PBS_", "LSB_", "FLUX_", "COBALT_"),
)
# What a job on another machine needs of the environment that its study was started in, where no modules are loaded.
_CARRIED = (
    *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "MKLROOT"),
    *("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"),
)
# What MPI tells its own ranks: a caller that is a rank itself must not make its jobs believe that they are it. Not
# so what Slurm tells the mpirun of a job (plm_slurm_args, since 23.11): its daemons get whole nodes by it.
_RANK = re.compile(
    r"OMPI_(COMM_WORLD_|UNIVERSE_SIZE|APP_|FIRST_RANKS|NUM_APP|COMMAND|ARGV|FILE_LOCATION|MCA_(orte_|ess|pmix|plm(?!_slurm_args)|ras_))"
    r"|SLURM_(CPU_BIND|MEM_BIND|PROCID|LOCALID|STEP)"
)

# Ray and many clusters' profiles set this; a job has one thread a rank unless its configuration says otherwise.
_DEFAULTS = {"OMP_NUM_THREADS": "1"}


def job_environment(caller: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a job: what it needs of its caller's, and `added`, which wins."""
    return inherited_variables(caller) | _DEFAULTS | dict(added)


def inherited_variables(caller: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the caller's environment that jobs see."""
    return {name: value for name, value in caller.items() if _is_passed_on(name)}


def batch_job_variables(caller: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the caller's environment that a batch system's jobs bring along."""
    return {name: caller[name] for name in _CARRIED if name in caller}


def _is_passed_on(name: str) -> bool:
    if name in _NAMES:
        return True
    return name.startswith(_PREFIXES) and not _RANK.match(name) and not is_secret(name)
