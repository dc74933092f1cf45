"""The winner as a job script, for PBS, Slurm, or a plain shell."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from autotune.execution.task import job_from_description
from autotune.formatting import shown
from launchers import Usage
from launchers.batch_systems import pbs as pbs_scheduler
from launchers.batch_systems import slurm as slurm_scheduler
from launchers.mpi import MpiFlavour, mpi_argv, mpi_environment
from launchers.site import Site
from objectives.base import CHECKPOINT_VARIABLE, SEED_VARIABLE
from spaces import Configuration

# A job script asks for more than was measured: production runs meet busier machines.
_TIME_MARGIN = 3.0
_MEMORY_MARGIN = 1.5
_MINIMUM_WALLTIME_S = 600
_END = "END_OF_INPUT"
# A production run neither goes on from a checkpoint of tuning, nor draws its random numbers.
_OF_TUNING = (CHECKPOINT_VARIABLE, SEED_VARIABLE)


@dataclass(frozen=True)
class JobScript:
    """What a script is made of: a configuration, its job as `describe_job` tells it, and what a run of it needs.

    `remarks` become comments at its top. At a `site` it has the site's lines for its scheduler, modules and setup.
    """

    name: str
    configuration: Configuration
    job: Mapping[str, Any]
    needs: Usage
    mpi: MpiFlavour
    remarks: Sequence[str] = ()
    site: Site | None = None

    @property
    def walltime_s(self) -> int:
        """The wall time to ask for, in whole minutes."""
        return max(_MINIMUM_WALLTIME_S, 60 * ceil(_TIME_MARGIN * self.needs.elapsed_s / 60))

    @property
    def gpus(self) -> int:
        """How many GPUs the run held."""
        return int(self.job["resources"].get("gpus", 0))

    @property
    def memory_mib(self) -> int:
        """The memory to ask for, in MiB."""
        return max(1024, 512 * ceil(_MEMORY_MARGIN * self.needs.peak_memory_bytes / 2**20 / 512))


def pbs(script: JobScript) -> str:
    """Return a script for `qsub`."""
    cores = script.job["resources"]["cores"]
    head = [
        f"#PBS -N {script.name}",
        f"#PBS -l ncpus={cores}",
        *([f"#PBS -l ngpus={script.gpus}"] if script.gpus else []),
        f"#PBS -l mem={script.memory_mib}MB",
        f"#PBS -l walltime={_hours(script.walltime_s)}",
        *(f"#PBS {line}" for line in (pbs_scheduler.of_site(script.site) if script.site else ())),
    ]
    return _assemble(script, head, "${PBS_O_WORKDIR:-$PWD}")


def slurm(script: JobScript) -> str:
    """Return a script for `sbatch`."""
    job = script.job
    ranks = job["mpi"]["ranks"] if job["mpi"] else 1
    head = [
        f"#SBATCH --job-name={script.name}",
        f"#SBATCH --nodes={job['resources']['nodes']}",
        f"#SBATCH --ntasks={ranks}",
        f"#SBATCH --cpus-per-task={max(1, job['resources']['cores'] // ranks)}",
        *([f"#SBATCH --gpus={script.gpus}"] if script.gpus else []),
        f"#SBATCH --mem={script.memory_mib}M",
        f"#SBATCH --time={_hours(script.walltime_s)}",
        *(f"#SBATCH {line}" for line in (slurm_scheduler.of_site(script.site) if script.site else ())),
    ]
    return _assemble(script, head, "${SLURM_SUBMIT_DIR:-$PWD}")


def sh(script: JobScript) -> str:
    """Return a script for a shell on this machine."""
    return _assemble(script, [], "$PWD")


FORMATS: Mapping[str, Callable[[JobScript], str]] = {"pbs": pbs, "slurm": slurm, "sh": sh}


def _assemble(script: JobScript, head: Sequence[str], start: str) -> str:
    job = script.job
    folder = job["folder"]
    own = {name: value for name, value in job["environment"].items() if name not in _OF_TUNING}
    environment = own | (mpi_environment(script.mpi, user_id=os.geteuid()) if job["mpi"] else {})
    exports = [f"export {name}={_quoted(value, folder)}" for name, value in sorted(environment.items())]
    command = mpi_argv(script.mpi, job_from_description(job))
    lines = [
        "#!/bin/bash",
        *head,
        *(f"# {line}" for remark in (*script.remarks, shown(script.configuration)) for line in remark.splitlines()),
        *_setup(script.site),
        "set -eu",
        f'run="{start}"/{shlex.quote(script.name)}',
        'mkdir -p "$run"',
        'cd "$run"',
        *(_file(name, text.replace(folder, ".")) for name, text in job["files"].items()),
        *exports,
        *(" ".join(_quoted(word, folder) for word in step) for step in job["prepare"]),
        " ".join(_quoted(word, folder) for word in command),
    ]
    return "\n".join(lines) + "\n"


def _setup(site: Site | None) -> list[str]:
    if site is None:
        return ["# module load ...  (what the programs below need, where they come from modules)"]
    return [*(f"module load {shlex.quote(module)}" for module in site.modules), *site.setup]


def _file(name: str, text: str) -> str:
    end = _END
    while end in text:
        end += "_"
    folder = name.rpartition("/")[0]
    made = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
    return f"{made}cat > {shlex.quote(name)} <<'{end}'\n{text.rstrip(chr(10))}\n{end}"


def _quoted(word: str, folder: str) -> str:
    """Quote a word for the shell; the folder of the measured run becomes the folder of the new one."""
    before, found, after = word.partition(folder)
    if not found:
        return shlex.quote(word)
    return f'{shlex.quote(before) if before else ""}"$run"{shlex.quote(after) if after else ""}'


def _hours(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
