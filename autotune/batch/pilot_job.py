"""Pilot mode: a job script that runs a study inside one allocation, and submits itself again until it is done.

On several nodes the script starts a Ray cluster of its own (`autotune.execution.ray_node`): the head on the first host,
one node on each other one. Each is started alone, so that a host that fails takes no other along: with `srun` under
Slurm; under PBS with `pbs_tmrsh`, which PBS accounts for and ends with the job, or `ssh` where that is not there.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from autotune.errors import ExitCode

# A command that loads modules, with nothing behind it.
_LOADS = re.compile(r"\s*(module\s+(load|add|use)|ml)\s[^;&|#]*")
# PBS refuses longer names.
_NAME_CHARACTERS = 15
# How long the head may take to answer, in steps of a fifth of a second; the nodes have as long to join.
_LOOKS = 600
# A host that has died must not keep the others waiting until the end of the allocation.
_END_LOOKS = 150


@dataclass(frozen=True)
class PilotJob:
    """What a script is made of.

    `script` is its own full path, `folder` where the study is kept, `study` the words after `autotune study`. Site
    settings are `directives` for the batch system without their `#SBATCH` or `#PBS`, and `setup`, lines for the shell
    on every host (`module load qe`). `cores_per_node` is what PBS must be asked for, unless a directive does.
    """

    name: str
    script: str
    folder: str
    python: str
    study: Sequence[str]
    nodes: int = 1
    walltime_s: float = 3600.0
    cores_per_node: int | None = None
    directives: Sequence[str] = ()
    setup: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse what would not stay in its line.

        Raises:
            ValueError: a word has a line's end in it.
        """
        for word in (self.script, self.folder, self.python, *self.study, *self.directives, *self.setup):
            if "\n" in word or "\0" in word:
                msg = f"{word!r} cannot stand in a job script: it has more than one line"
                raise ValueError(msg)

    @property
    def job_name(self) -> str:
        """The name of the study as every batch system takes it."""
        return re.sub(r"[^A-Za-z0-9_]+", "-", f"autotune-{self.name}")[:_NAME_CHARACTERS].rstrip("-")

    @property
    def walltime(self) -> str:
        """The wall time in whole minutes, as HH:MM:SS."""
        minutes = ceil(self.walltime_s / 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:00"


@dataclass(frozen=True)
class _System:
    """How a batch system is spoken to: `others` prints the other hosts, `start` makes `$host` a node of Ray."""

    submit: str
    job_id: str
    others: str
    start: Sequence[str]
    exports: Sequence[str] = ()


def slurm(job: PilotJob) -> str:
    """Return a script for `sbatch`."""
    head = [
        f"#SBATCH --job-name={job.job_name}",
        f"#SBATCH --nodes={job.nodes}",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --exclusive",
        # A node that fails costs the trials on it, not the job.
        *(["#SBATCH --no-kill"] if job.nodes > 1 else []),
        f"#SBATCH --time={job.walltime}",
        f"#SBATCH --output={job.job_name}-%j.log",
        *(f"#SBATCH {directive}" for directive in job.directives),
    ]
    others = 'scontrol show hostnames "$SLURM_JOB_NODELIST" | grep -vxF -- "$SLURMD_NODENAME"'
    step = "srun --overlap --nodes=1 --ntasks=1 --cpu-bind=none --no-kill"
    start = [f'    {step} --nodelist="$host" \\', '        bash -l "$script" ray-node "$meeting" &']
    # Ranks are started beside the steps that the nodes of the cluster are.
    return _assemble(job, head, _System("sbatch", "SLURM_JOB_ID", others, start, ["export SLURM_OVERLAP=1"]))


def pbs(job: PilotJob) -> str:
    """Return a script for `qsub`.

    Raises:
        ValueError: nothing says how many cores a node has.
    """
    asked = any(re.search(r"-l\s*(select|nodes|ncpus)\b", directive) for directive in job.directives)
    if not asked and job.cores_per_node is None:
        msg = "PBS must be told how many cores a node has: --cores-per-node 48, or a directive such as -l ncpus=96"
        raise ValueError(msg)
    select = f"#PBS -l select={job.nodes}:ncpus={job.cores_per_node}:mpiprocs={job.cores_per_node}"
    head = [
        f"#PBS -N {job.job_name}",
        *([] if asked else [select, "#PBS -l place=scatter:excl"]),
        f"#PBS -l walltime={job.walltime}",
        "#PBS -j oe",
        *(f"#PBS {directive}" for directive in job.directives),
    ]
    # The first host of the file is the one that the script runs on.
    others = "awk 'NR == 1 { first = $0 } $0 != first && !seen[$0]++' \"$PBS_NODEFILE\""
    start = [
        "    if command -v pbs_tmrsh >/dev/null; then",
        '        pbs_tmrsh "$host" "$(printf \'%q \' bash -l "$script" ray-node "$meeting")" </dev/null &',
        "    else",
        '        ssh -o BatchMode=yes "$host" "$(printf \'%q \' bash -l "$script" ray-node "$meeting")" </dev/null &',
        "    fi",
    ]
    return _assemble(job, head, _System("qsub", "PBS_JOBID", others, start))


FORMATS: Mapping[str, Callable[[PilotJob], str]] = {"slurm": slurm, "pbs": pbs}


def _assemble(job: PilotJob, head: Sequence[str], system: _System) -> str:
    python = shlex.quote(job.python)
    command = f"{python} -m autotune study {shlex.join(job.study)}"
    several = job.nodes > 1
    if several:
        command += f' --ray-address "$(cat "$meeting/address")" --ray-nodes {job.nodes}'
    lines = [
        # Only a login shell is sure to know of modules.
        "#!/bin/bash -l",
        *head,
        f"# Written by `autotune pilot`. Submit it with: {system.submit} {shlex.quote(job.script)}",
        f"# If the study is not done when its time is over (exit code {ExitCode.UNFINISHED}), it submits itself again.",
        f"script={shlex.quote(job.script)}",
        f"cd {shlex.quote(job.folder)} || exit {ExitCode.STORAGE}",
        *map(_or_end, job.setup),
        "set -u",
        *(_cluster(python, system) if several else []),
        # Before the study: it may be asked to end as soon as it is there.
        "trap 'kill -TERM \"${!-}\"' TERM INT",
        f"{command} &",
        "study=$!",
        'wait "$study"; code=$?',
        # A signal ends the wait, not the study.
        'while kill -0 "$study" 2>/dev/null; do wait "$study"; code=$?; done',
        f'if [ "$code" = {ExitCode.UNFINISHED} ]; then',
        f'    {system.submit} "$script" && code=0',
        "fi",
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def _or_end(line: str) -> str:
    """Return a line of shell; a module that cannot be loaded ends the job: without it something else is measured."""
    return f"{line} || exit {ExitCode.CANNOT_RUN_HERE}" if _LOADS.fullmatch(line) else line


def _cluster(python: str, system: _System) -> list[str]:
    """Return what starts Ray on the hosts of the allocation, and ends it whatever happens."""
    no_head = f'echo "the Ray head did not start" >&2; exit {ExitCode.CANNOT_RUN_HERE}'
    return [
        # The script is also what the other hosts run: they need the same folder and modules.
        f'if [ "${{1-}}" = ray-node ]; then exec {python} -m autotune.execution.ray_node "$2"; fi',
        f"meeting=$PWD/.autotune-ray-${{{system.job_id}%%.*}}",
        f'rm -rf "$meeting"; mkdir -m 700 "$meeting" || exit {ExitCode.STORAGE}',
        "end_ray() {",
        '    touch "$meeting/stop"',
        f'    for _ in $(seq {_END_LOOKS}); do [ -n "$(jobs -rp)" ] || break; sleep 0.2; done',
        "    kill -KILL $(jobs -rp) 2>/dev/null",
        '    rm -rf "$meeting"',
        "}",
        "trap end_ray EXIT",
        'export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$meeting/token"',
        *system.exports,
        f'{python} -m autotune.execution.ray_node "$meeting" --head &',
        f"for host in $({system.others}); do",
        *system.start,
        "done",
        f'for _ in $(seq {_LOOKS}); do [ -s "$meeting/address" ] && break; sleep 0.2; done',
        f'[ -s "$meeting/address" ] || {{ {no_head}; }}',
    ]
