"""Which variables of its caller a job sees: an allow-list, so that nothing else affects a measurement."""

import os
import re
from collections.abc import Mapping

from launchers.secret import is_secret

# Variables that a program needs to be found and to run when it comes from modules, conda or Spack. None of them changes
# its speed.
_NAMES = frozenset(
    {
        *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "MKLROOT"),
        *("HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("LOADEDMODULES", "_LMFILES_", "XDG_RUNTIME_DIR", "PE_HOSTFILE", "NSLOTS"),
        # The allocation decides which devices a job may use.
        *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
    }
)
_PREFIXES = (
    *("LC_", "MODULE", "LMOD_", "__LMOD", "CONDA_", "SPACK_", "EBROOT", "EBVERSION", "APPTAINER_", "SINGULARITY_"),
    # The site's settings of MPI and its transports.
    *("OMPI_", "OPAL_", "PMIX_MCA_", "PRTE_", "UCX_", "I_MPI_", "FI_", "MPICH_", "HYDRA_", "MV2_", "PSM2_", "PSM3_"),
    # The allocation in which this process runs.
    *("SLURM_", "PBS_", "LSB_", "FLUX_", "COBALT_"),
)
# Variables that a batch job needs from the shell that submitted it when the site file loads no modules.
_CARRIED = (
    *("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "MKLROOT"),
    *("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"),
)
# Variables that MPI sets for its own ranks: if the caller is a rank itself, its jobs must not inherit that role.
# Slurm's plm_slurm_args (since 23.11) is the exception: mpirun needs it to get whole nodes for its daemons.
_RANK = re.compile(
    r"OMPI_(COMM_WORLD_|UNIVERSE_SIZE|APP_|FIRST_RANKS|NUM_APP|COMMAND|ARGV|FILE_LOCATION|MCA_(orte_|ess|pmix|plm(?!_slurm_args)|ras_))"
    r"|SLURM_(CPU_BIND|MEM_BIND|PROCID|LOCALID|STEP)"
)

# Ray and many cluster profiles set this; a job uses one thread per rank unless its configuration says otherwise.
_DEFAULTS = {"OMP_NUM_THREADS": "1"}


def read_umask() -> int:
    """Return this process's umask, which jobs on other nodes must be given since they would get that of a login."""
    # Only a change tells what it was. Meanwhile other threads let nobody in.
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def job_environment(caller: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the complete environment of a job: the inherited part of `caller`, then the defaults, then `added`."""
    return inherited_variables(caller) | _DEFAULTS | dict(added)


def inherited_variables(caller: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the caller's environment that jobs see."""
    return {name: value for name, value in caller.items() if _is_passed_on(name, value)}


def batch_job_variables(caller: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the caller's environment that a job script exports."""
    return {name: caller[name] for name in _CARRIED if name in caller}


def _is_passed_on(name: str, value: str) -> bool:
    if name in _NAMES:
        return True
    return name.startswith(_PREFIXES) and not _RANK.match(name) and not is_secret(name, value)
