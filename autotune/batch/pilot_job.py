"""Pilot jobs: job scripts that run a study inside one allocation and submit themselves again until it is done.

On several nodes the script starts a Ray cluster (`autotune.execution.ray_node`): the head on the first host, and a node
on each other host. The hosts are started one by one, so that a failing host does not stop the others, with the command
that the batch system has for this (`launchers.batch_systems.system.PilotForm`).
"""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from autotune.errors import CannotRunHereError, ExitCode
from launchers.batch.commands import run_command
from launchers.batch_systems.registry import all_batch_systems, find_batch_system
from launchers.batch_systems.system import PilotForm, PilotRequest
from launchers.own_python import own_python

# A command that loads modules, without a second command on the same line.
_LOADS = re.compile(r"\s*(module\s+(load|add|use)|ml)\s[^;&|#]*")
# PBS refuses longer names.
_NAME_CHARACTERS = 15
# The time for the head to answer, in steps of a fifth of a second; the nodes have the same time to join.
_LOOKS = 600
# The time for Ray to end, in the same steps: a dead host must not block the job until the end of the allocation.
_END_LOOKS = 150


@dataclass(frozen=True)
class PilotJob:
    """The content of a pilot's job script.

    Attributes:
        name: The name of the study.
        script: The full path of the script itself.
        folder: The folder of the study.
        python: The Python interpreter.
        study: The words after `autotune study`.
        nodes: The number of nodes.
        walltime_s: The wall time to request.
        cores_per_node: The cores to request from PBS, unless a directive does.
        directives: Lines for the batch system, without `#SBATCH` or `#PBS`.
        setup: Lines for the shell of every host (`module load qe`).
        chained: Whether this is one of several jobs submitted in advance, which do not submit themselves again.
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
    chained: bool = False

    def __post_init__(self) -> None:
        """Refuse words that would break the lines of the script.

        Raises:
            ValueError: a word contains a line break or a NUL.
        """
        for word in (self.script, self.folder, self.python, *self.study, *self.directives, *self.setup):
            if "\n" in word or "\0" in word:
                msg = f"{word!r} cannot be written into a job script: it contains a line break or a NUL"
                raise ValueError(msg)

    @property
    def job_name(self) -> str:
        """The name of the job, in a form that every batch system accepts."""
        return re.sub(r"[^A-Za-z0-9_]+", "-", f"autotune-{self.name}")[:_NAME_CHARACTERS].rstrip("-")

    @property
    def walltime(self) -> str:
        """The wall time in whole minutes, as HH:MM:SS."""
        minutes = ceil(self.walltime_s / 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:00"


def pilot_forms() -> tuple[str, ...]:
    """Return the names of the batch systems that support pilot jobs."""
    return tuple(system.name for system in all_batch_systems() if system.pilot is not None)


def pilot_form(system: str) -> PilotForm:
    """Return the form of pilot jobs for a batch system, one of the `pilot_forms`.

    Raises:
        KeyError: the batch system is unknown, or does not support pilot jobs.
    """
    form = find_batch_system(system).pilot
    if form is None:
        raise KeyError(system)
    return form


def pilot_script(system: str, job: PilotJob) -> str:
    """Return the script of a pilot job for a batch system, one of the `pilot_forms`.

    Raises:
        ValueError: the job lacks a setting; the message names it.
    """
    form = pilot_form(system)
    request = PilotRequest(job.job_name, job.nodes, job.walltime, job.cores_per_node, tuple(job.directives))
    return _assemble(job, form, form.head(request), find_batch_system(system).scheduler.number_variable)


def submit_chain(system: str, script: Path, count: int) -> list[str]:
    """Submit a script `count` times, each job to start after the previous one has ended; return the job numbers.

    This is for sites whose compute nodes may not submit jobs, so that a pilot cannot submit itself again.

    Raises:
        CannotRunHereError: a job was refused; the message names the earlier jobs, which stay submitted.
    """
    scheduler, after = find_batch_system(system).scheduler, pilot_form(system).after
    numbers: list[str] = []
    for _ in range(count):
        command, *words = scheduler.submit(script)
        argv = [command, *(after(numbers[-1]) if numbers else ()), *words]
        # Pass the whole environment of this shell, as with a job submitted by hand.
        answer = run_command(argv, script.parent, variables=os.environ)
        number = scheduler.job_id(answer.stdout) if answer.code == 0 else None
        if number is None:
            made = f"only {', '.join(numbers)} of a chain of {count} jobs" if numbers else "no job"
            why = "refused the next one" if answer.code else "took the next one, but its answer does not name one job"
            msg = f"{made} could be submitted; {command} {why}: {answer.complaint}"
            raise CannotRunHereError(msg)
        numbers.append(number)
    return numbers


def _assemble(job: PilotJob, form: PilotForm, head: Sequence[str], number_variable: str) -> str:
    command = shlex.join(own_python("autotune", "study", *job.study, python=job.python))
    several = job.nodes > 1
    if several:
        command += f' --ray-address "$(cat "$meeting/address")" --ray-nodes {job.nodes}'
    continuation = "the next job of the chain continues" if job.chained else "it submits itself again"
    lines = [
        # Only a login shell is certain to define `module`.
        "#!/bin/bash -l",
        *head,
        f"# Written by `autotune pilot`. Submit it with: {form.submit} {shlex.quote(job.script)}",
        f"# If the study is not done when its time is over (exit code {ExitCode.UNFINISHED}), {continuation}.",
        f"script={shlex.quote(job.script)}",
        f"cd {shlex.quote(job.folder)} || exit {ExitCode.STORAGE}",
        *map(_end_on_failure, job.setup),
        "set -u",
        *(_cluster(job.python, form, number_variable) if several else []),
        # Set the trap before the study starts, since a signal may arrive at any time after that.
        "asked=",
        "trap 'asked=yes; kill -TERM \"${!-}\"' TERM INT",
        f"{command} &",
        "study=$!",
        'wait "$study"; code=$?',
        # A signal ends the wait, not the study, so wait again for its exit code. A bash that received both signals at
        # once may have lost that code (-1), and then the first one counts.
        'while [ -n "$asked" ]; do',
        '    asked=; wait "$study"; again=$?',
        "    case $again in -1 | 127) ;; *) code=$again ;; esac",
        "done",
        *([] if job.chained else _resubmit(form)),
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def _resubmit(form: PilotForm) -> list[str]:
    return [f'if [ "$code" = {ExitCode.UNFINISHED} ]; then', f'    {form.submit} "$script" && code=0', "fi"]


def _end_on_failure(line: str) -> str:
    """Return a shell line; if it loads modules, a failure ends the job, since another program would be measured."""
    return f"{line} || exit {ExitCode.CANNOT_RUN_HERE}" if _LOADS.fullmatch(line) else line


def _cluster(python: str, form: PilotForm, number_variable: str) -> list[str]:
    """Return the lines that start Ray on the hosts of the allocation, and end it however the script exits."""
    node = shlex.join(own_python("autotune.execution.ray_node", python=python))
    no_head = f'echo "the Ray head did not start" >&2; exit {ExitCode.CANNOT_RUN_HERE}'
    return [
        # The other hosts run this script too, since they need the same folder and modules.
        f'if [ "${{1-}}" = ray-node ]; then exec {node} "$2"; fi',
        f"meeting=$PWD/.autotune-ray-${{{number_variable}%%.*}}",
        f'rm -rf "$meeting"; mkdir -m 700 "$meeting" || exit {ExitCode.STORAGE}',
        "end_ray() {",
        '    touch "$meeting/stop"',
        f'    for _ in $(seq {_END_LOOKS}); do [ -n "$(jobs -rp)" ] || break; sleep 0.2; done',
        "    kill -KILL $(jobs -rp) 2>/dev/null",
        '    rm -rf "$meeting"',
        "}",
        "trap end_ray EXIT",
        'unset RAY_AUTH_TOKEN; export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$meeting/token"',
        *form.exports,
        f'{node} "$meeting" --head &',
        f"for host in $({form.others}); do",
        *form.start,
        "done",
        f'for _ in $(seq {_LOOKS}); do [ -s "$meeting/address" ] && break; sleep 0.2; done',
        f'[ -s "$meeting/address" ] || {{ {no_head}; }}',
    ]
