"""The winner as a job script, for a batch system or a plain shell."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from autotune.batch.script_forms import SHELL
from autotune.execution.task import job_from_description
from autotune.formatting import shown
from launchers import Usage
from launchers.batch_systems.registry import find_batch_system
from launchers.batch_systems.system import WinnerRequest
from launchers.mpi import MpiFlavour, mpi_environment
from launchers.mpi_command import mpi_argv
from launchers.site import Site
from objectives.base import CHECKPOINT_VARIABLE, SEED_VARIABLE
from spaces import Configuration

# A job script asks for more than was measured: production runs meet busier machines.
_TIME_MARGIN = 3.0
_MEMORY_MARGIN = 1.5
_MINIMUM_WALLTIME_S = 600
_END = "END_OF_INPUT"
# A production run uses neither the checkpoints of tuning nor its random numbers.
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


def job_script(form: str, script: JobScript) -> str:
    """Return the text of a job script in one of the `script_forms`.

    Raises:
        KeyError: there is no such form.
    """
    if form == SHELL:
        return _assemble(script, [], "$PWD")
    winner = find_batch_system(form).winner
    if winner is None:
        raise KeyError(form)
    return _assemble(script, winner.head(_request(script)), winner.folder)


def _request(script: JobScript) -> WinnerRequest:
    job = script.job
    return WinnerRequest(
        name=script.name,
        nodes=job["resources"]["nodes"],
        ranks=job["mpi"]["ranks"] if job["mpi"] else 1,
        cores=job["resources"]["cores"],
        gpus=script.gpus,
        memory_mib=script.memory_mib,
        walltime=_hours(script.walltime_s),
        site=script.site,
    )


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
        *_setup(script.site, job["setup"]),
        "set -eu",
        f'run="{start}"/{shlex.quote(script.name)}',
        'mkdir -p "$run"',
        'cd "$run"',
        *(_file(name, text.replace(folder, ".")) for name, text in job["files"].items()),
        *(_copy(name, original) for name, original in job["copies"]),
        *exports,
        *(" ".join(_quoted(word, folder) for word in step) for step in job["prepare"]),
        " ".join(_quoted(word, folder) for word in command),
    ]
    return "\n".join(lines) + "\n"


def _setup(site: Site | None, software: Sequence[str]) -> list[str]:
    """Return what makes the programs available: the site's lines, then those of the winner's own software."""
    if site is None and not software:
        return ["# module load ...  (what the programs below need, where they come from modules)"]
    common = [] if site is None else [*(f"module load {shlex.quote(m)}" for m in site.modules), *site.setup]
    return [*common, *software]


def _file(name: str, text: str) -> str:
    end = _END
    while end in text:
        end += "_"
    folder = name.rpartition("/")[0]
    made = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
    return f"{made}cat > {shlex.quote(name)} <<'{end}'\n{text.rstrip(chr(10))}\n{end}"


def _copy(name: str, original: str) -> str:
    folder = name.rpartition("/")[0]
    made = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
    return f"{made}cp {shlex.quote(original)} {shlex.quote(name)}"


def _quoted(word: str, folder: str) -> str:
    """Quote a word for the shell; the folder of the measured run becomes the folder of the new one."""
    before, separator, after = word.partition(folder)
    if not separator:
        return shlex.quote(word)
    return f'{shlex.quote(before) if before else ""}"$run"{shlex.quote(after) if after else ""}'


def _hours(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
