"""A chain of pilot jobs: submitted in advance, each starts when the one before has ended.

For sites whose compute nodes may not submit jobs: there a pilot cannot submit itself again.
"""

import os
from pathlib import Path

from autotune.batch.pilot_job import pilot_form
from autotune.errors import CannotRunHereError
from launchers.batch.commands import run_command
from launchers.batch_systems.registry import find_batch_system


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
