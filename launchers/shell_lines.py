"""A job as a person would type it."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence

from launchers.environment import job_environment
from launchers.job import Job
from launchers.secret import mask_secrets


def shell_lines(
    job: Job, command: Callable[[Job], Sequence[str]], added: Callable[[Job], Mapping[str, str]]
) -> list[str]:
    """Return what a job runs, as lines for a shell in its folder; a job of parts goes into the folder of each.

    `command` gives the whole command line of a job without parts, and `added` the environment that is set for it, of
    which secrets are not shown.
    """
    if job.parts:
        parts = job.placed_parts
        return [
            line
            for part in parts
            for line in (f"cd {shlex.quote(os.fspath(part.folder))}", *shell_lines(part, command, added))
        ]
    words = [
        f"{name}={value}" for name, value in sorted(mask_secrets(job_environment({}, added(job)), job.tuned).items())
    ]
    return [shlex.join(["env", *words, *argv]) for argv in (*job.prepare, command(job))]
