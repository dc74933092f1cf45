"""Write the winner as a job script, for a batch system or a plain shell."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from autotune.batch.script_forms import SHELL
from autotune.execution.task import job_from_description
from autotune.formatting import configuration_text
from launchers import Usage
from launchers.batch_systems.registry import find_batch_system
from launchers.batch_systems.system import WinnerRequest
from launchers.mpi import MpiFlavour, mpi_environment
from launchers.mpi_command import mpi_argv
from launchers.secret import MASK, is_masked, mask_secrets
from launchers.server import PORT, mark_of
from launchers.site import Site
from objectives.base import CHECKPOINT_VARIABLE, SEED_VARIABLE
from objectives.efficiency.library import without_library
from spaces import Configuration

# A job script requests more than was measured, since production runs may share busier machines.
_TIME_MARGIN = 3.0
_MEMORY_MARGIN = 1.5
_MINIMUM_WALLTIME_S = 600
_MINIMUM_MEMORY_MIB = 1024
_END = "END_OF_INPUT"
# The line of a script for modules that no site file and no study names.
_MODULES = "# module load ...  (if the programs below come from modules)"
# Stands for a masked secret in a command.
_MASKED = '"${SECRET:?set it before: the measured command held a secret, which is not stored}"'
# Variables that MPI needs only for root are no part of the winner: any other user ID leaves them out.
_A_USER = 1
# A script for a server begins with its port, which each measured run chose for itself.
_PORT = mark_of(PORT)
_USUAL_PORT = 8080
# A production run uses neither the checkpoints nor the random seed of tuning.
_OF_TUNING = (CHECKPOINT_VARIABLE, SEED_VARIABLE)


@dataclass(frozen=True)
class JobScript:
    """The content of a job script.

    Attributes:
        name: The name of the job, and of the folder that it runs in.
        configuration: The configuration to run.
        job: The measured job, in the form of `describe_job`.
        needs: The time and memory of a run.
        mpi: The MPI that starts ranks.
        remarks: Comments at the top.
        site: The site whose lines for scheduler, modules and setup the script gets, if any.
        measured: Whether the needs were measured; a comment then gives the figures.
    """

    name: str
    configuration: Configuration
    job: Mapping[str, Any]
    needs: Usage
    mpi: MpiFlavour
    remarks: Sequence[str] = ()
    site: Site | None = None
    measured: bool = True

    @property
    def walltime_s(self) -> int:
        """The wall time to request, in whole minutes."""
        return max(_MINIMUM_WALLTIME_S, 60 * ceil(_TIME_MARGIN * self.needs.elapsed_s / 60))

    @property
    def gpus(self) -> int:
        """The number of GPUs of the measured run."""
        return int(self.job["resources"].get("gpus", 0))

    @property
    def memory_per_node_mib(self) -> int | None:
        """The memory to request on each node, in MiB, from that of the measured run on its first node.

        None if it is unknown: ranks that a batch system starts itself, for instance through `srun`, are no descendants
        of the run's supervisor, which counts memory.
        """
        has_ranks = any(one["mpi"] for one in (self.job, *self.job.get("parts", ())))
        if self.measured and has_ranks and self.mpi.kind.allocation_variable is not None:
            return None
        return max(_MINIMUM_MEMORY_MIB, 512 * ceil(_MEMORY_MARGIN * self.needs.peak_memory_bytes / 2**20 / 512))


def job_script(form: str, script: JobScript) -> str:
    """Return the text of a job script in one of the `script_forms`.

    Raises:
        KeyError: the form is unknown.
    """
    if form == SHELL:
        return _assemble(script, [], "$PWD")
    winner = find_batch_system(form).winner
    if winner is None:
        raise KeyError(form)
    remarks = (*script.remarks, *([_request_remark(script)] if script.measured else []))
    return _assemble(replace(script, remarks=remarks), winner.head(_request(script)), winner.folder)


def _request_remark(script: JobScript) -> str:
    """Return the remark on the time and memory that the script requests for a measured run."""
    needs, minutes = script.needs, _MINIMUM_WALLTIME_S // 60
    if script.memory_per_node_mib is None:
        return (
            f"wall time: {_TIME_MARGIN:g} times that of the measured run ({needs.elapsed_s:.3g} s), at least {minutes} "
            f"min; the memory of ranks started by {script.mpi.kind} was not measured: request it yourself"
        )
    where = " on its first node" if script.job["resources"]["nodes"] > 1 else ""
    return (
        f"wall time and memory: {_TIME_MARGIN:g} and {_MEMORY_MARGIN:g} times those of the measured run "
        f"({needs.elapsed_s:.3g} s, {needs.peak_memory_bytes / 2**20:.0f} MiB{where}), "
        f"at least {minutes} min and {_MINIMUM_MEMORY_MIB} MiB"
    )


def _request(script: JobScript) -> WinnerRequest:
    job = script.job
    return WinnerRequest(
        name=script.name,
        nodes=job["resources"]["nodes"],
        ranks=job_from_description(job).ranks,
        cores=job["resources"]["cores"],
        gpus=script.gpus,
        memory_per_node_mib=script.memory_per_node_mib,
        walltime_s=script.walltime_s,
        site=script.site,
        threads_per_core=job["resources"].get("threads_per_core", 1),
    )


def _assemble(script: JobScript, head: Sequence[str], start: str) -> str:
    job = script.job
    folder, parts = job["folder"], job.get("parts", ())
    lines = [
        "#!/bin/bash",
        *head,
        *(
            f"# {line}"
            for remark in (*script.remarks, configuration_text(script.configuration))
            for line in remark.splitlines()
        ),
        *setup_lines(script.site, job.get("setup", ())),
        "set -eu",
        f'run="{start}"/{shlex.quote(script.name)}',
        'mkdir -p "$run"',
        'cd "$run"',
        *(_file_lines(name, _relocate(text, folder, parts)) for name, text in job["files"].items()),
        *(line for part in parts for line in _part(part, folder, script.mpi)),
        *([] if parts else _commands(job, folder, script.mpi)),
    ]
    return "\n".join(lines) + "\n"


def _relocate(text: str, folder: str, parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of an input file with paths relative to the new run: each part has its own folder there."""
    for part in parts:
        text = text.replace(part["folder"], ".")
    return text.replace(folder, ".")


def _part(part: Mapping[str, Any], folder: str, mpi: MpiFlavour) -> list[str]:
    """Return the lines that run an input of a mix, in a subshell so that they do not affect the other inputs."""
    inside = Path(part["folder"]).name
    head = [
        f"(  # input {part['name']}; take out the inputs that you do not want to run",
        f"mkdir -p {shlex.quote(inside)}",
    ]
    return [*head, f"cd {shlex.quote(inside)}", *_commands(part, folder, mpi), ")"]


def own_environment(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a job, without those that only tuning needs."""
    variables = mask_secrets(job["environment"], job.get("tuned", ()))
    return without_library({name: value for name, value in variables.items() if name not in _OF_TUNING})


def start_environment(job: Mapping[str, Any], mpi: MpiFlavour) -> dict[str, str]:
    """Return a job's own variables, those of its server, and those that its MPI start command needs."""
    server: dict[str, str] = (job.get("server") or {}).get("environment", {})
    return own_environment(job) | server | (mpi_environment(mpi, user_id=_A_USER) if job["mpi"] else {})


def _commands(job: Mapping[str, Any], folder: str, mpi: MpiFlavour) -> list[str]:
    environment = start_environment(job, mpi)
    command, server = mpi_argv(mpi, job_from_description(job)), job.get("server")
    copies = [_copy_lines(name, original, folder) for name, original in job.get("copies", ())]
    exports = [line for name, value in sorted(environment.items()) for line in _export_lines(name, value, folder)]
    steps = [" ".join(_quote(word, folder) for word in step) for step in job["prepare"]]
    if not server:
        return [*copies, *exports, *steps, " ".join(_quote(word, folder) for word in command)]
    # The study tuned the server, so the script starts that and leaves it running.
    return [
        f'port="${{PORT:-{_USUAL_PORT}}}"',
        *copies,
        *(f'sed -i "s/{_PORT}/$port/g" {shlex.quote(name)}' for name in server["files"]),
        *exports,
        *steps,
        *(f"# its warm-up: {_in_comment(step)}" for step in server["warm_up"]),
        f"# the load that it was measured with: {_in_comment(command)}",
        f"exec {' '.join(_quote(word, folder) for word in server['argv'])}",
    ]


def _in_comment(words: Sequence[str]) -> str:
    return shlex.join(words).replace("\n", " ")


def _quote(word: str, folder: str) -> str:
    """Quote a word for the shell; replace the measured run's folder by the new one, and masks by `$SECRET`."""
    if folder in word:
        return '"$run"'.join(part and _quote(part, folder) for part in word.split(folder))
    if _PORT in word:
        return '"$port"'.join(part and _quote(part, folder) for part in word.split(_PORT))
    return _MASKED.join(part and shlex.quote(part) for part in word.split(MASK)) if MASK in word else shlex.quote(word)


def setup_lines(site: Site | None, software: Sequence[str] = ()) -> list[str]:
    """Return the lines that make the programs available: those of the site, then those of the software."""
    if site is None and not software:
        return [_MODULES]
    if site is None:
        return list(software)
    missing = [] if software or site.knows_program else [_MODULES]
    return [*(f"module load {shlex.quote(module)}" for module in site.modules), *missing, *site.setup, *software]


def _file_lines(name: str, text: str) -> str:
    end = _END
    while end in text:
        end += "_"
    folder = name.rpartition("/")[0]
    made = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
    document = text.rstrip("\n")
    return f"{made}cat > {shlex.quote(name)} <<'{end}'\n{document}\n{end}"


def _copy_lines(name: str, original: str, start: str) -> str:
    folder = name.rpartition("/")[0]
    made = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
    return f"{made}cp {_quote(original, start)} {shlex.quote(name)}"


def _export_lines(name: str, value: str, folder: str) -> list[str]:
    """Return the lines that set a variable.

    A folder of autotune's own installation becomes a variable that the reader must set, since production runs should
    not depend on that installation.
    """
    if is_masked(name, value):
        return [f': "${{{name}:?set it before: it was measured with a secret, which is not stored}}"', f"export {name}"]
    own = [part for part in value.split(":") if _is_own(part)]
    if not own:
        return [f"export {name}={_quote(value, folder)}"]
    said = ", ".join(Path(part).name for part in own)
    others = [part for part in value.split(":") if not _is_own(part)]
    rest = "".join(f":{_quote(part, folder)}" for part in others)
    return [
        f"# {name}: measured with {said} of autotune's own installation; set MEASURED_{name} to the folder of yours",
        f'export {name}="${{MEASURED_{name}:?the folder of {said}}}"{rest}',
    ]


def _is_own(path: str) -> bool:
    return sys.prefix != sys.base_prefix and Path(path).is_relative_to(sys.prefix)
