"""Pilot mode: a job script that runs a study inside one allocation, and submits itself again until it is done.

On several nodes the script starts a Ray cluster of its own (`autotune.execution.ray_node`): the head on the first host,
one node on each other one. Each is started alone, so that a host that fails takes no other along, in the way that the
batch system has for it (`launchers.batch_systems.system.PilotForm`).
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
    on every host (`module load qe`). `cores_per_node` is the number requested from PBS, unless a directive requests it.
    One of several that are submitted in advance (`chained`) does not submit itself again.
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


def pilot_forms() -> tuple[str, ...]:
    """Return the names of the batch systems that pilot jobs are written for."""
    return tuple(system.name for system in all_batch_systems() if system.pilot is not None)


def pilot_form(system: str) -> PilotForm:
    """Return the form of pilot jobs for a batch system, one of the `pilot_forms`.

    Raises:
        KeyError: there is no such batch system, or no pilot jobs are written for it.
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
    """Submit a script `count` times, each job after the one before, and return the numbers of the jobs.

    Raises:
        CannotRunHereError: a job was refused; those before it stay submitted, and are named.
    """
    scheduler, after = find_batch_system(system).scheduler, pilot_form(system).after
    numbers: list[str] = []
    for _ in range(count):
        command, *words = scheduler.submit(script)
        argv = [command, *(after(numbers[-1]) if numbers else ()), *words]
        # As a person would submit it: with all of this shell's environment.
        answer = run_command(argv, script.parent, variables=os.environ)
        number = scheduler.job_id(answer.stdout) if answer.code == 0 else None
        if number is None:
            made = f"{', '.join(numbers)} of a chain of {count} jobs" if numbers else "no job"
            msg = f"{made} could be submitted; then {command} said: {answer.complaint}"
            raise CannotRunHereError(msg)
        numbers.append(number)
    return numbers


def _assemble(job: PilotJob, form: PilotForm, head: Sequence[str], number_variable: str) -> str:
    python = shlex.quote(job.python)
    command = f"{python} -m autotune study {shlex.join(job.study)}"
    several = job.nodes > 1
    if several:
        command += f' --ray-address "$(cat "$meeting/address")" --ray-nodes {job.nodes}'
    continuation = "the next job of the chain goes on" if job.chained else "it submits itself again"
    lines = [
        # Only a login shell is sure to know of modules.
        "#!/bin/bash -l",
        *head,
        f"# Written by `autotune pilot`. Submit it with: {form.submit} {shlex.quote(job.script)}",
        f"# If the study is not done when its time is over (exit code {ExitCode.UNFINISHED}), {continuation}.",
        f"script={shlex.quote(job.script)}",
        f"cd {shlex.quote(job.folder)} || exit {ExitCode.STORAGE}",
        *map(_end_on_failure, job.setup),
        "set -u",
        *(_cluster(python, form, number_variable) if several else []),
        # Before the study, which may be asked to end as soon as it exists.
        "asked=",
        "trap 'asked=yes; kill -TERM \"${!-}\"' TERM INT",
        f"{command} &",
        "study=$!",
        'wait "$study"; code=$?',
        # A signal ends the wait, not the study, which may be over by now: how it ended is asked for again. A bash that
        # got both signals at once may not know it any more (-1).
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
    """Return a line of shell; a module that cannot be loaded ends the job: without it something else is measured."""
    return f"{line} || exit {ExitCode.CANNOT_RUN_HERE}" if _LOADS.fullmatch(line) else line


def _cluster(python: str, form: PilotForm, number_variable: str) -> list[str]:
    """Return the lines that start Ray on the hosts of the allocation, and end it in every case."""
    no_head = f'echo "the Ray head did not start" >&2; exit {ExitCode.CANNOT_RUN_HERE}'
    return [
        # The script is also what the other hosts run: they need the same folder and modules.
        f'if [ "${{1-}}" = ray-node ]; then exec {python} -m autotune.execution.ray_node "$2"; fi',
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
        f'{python} -m autotune.execution.ray_node "$meeting" --head &',
        f"for host in $({form.others}); do",
        *form.start,
        "done",
        f'for _ in $(seq {_LOOKS}); do [ -s "$meeting/address" ] && break; sleep 0.2; done',
        f'[ -s "$meeting/address" ] || {{ {no_head}; }}',
    ]
