"""A job as the lines that a person would type."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence

from launchers.environment import job_environment
from launchers.job import Job
from launchers.secret import mask_secrets, mask_words


def shell_lines(
    job: Job, command: Callable[[Job], Sequence[str]], added: Callable[[Job], Mapping[str, str]]
) -> list[str]:
    """Return a job's commands as lines for a shell in its folder; a job with parts changes to the folder of each.

    Args:
        job: The job.
        command: Returns the complete command line of a job without parts.
        added: Returns the variables that are set for a job. Secrets are masked in them and in the commands.
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

    def line(argv: Sequence[str], more: Sequence[str] = ()) -> str:
        return shlex.join(["env", *words, *more, *mask_words(argv, job.tuned)])

    lines = [line(step) for step in job.prepare]
    if job.server is not None:
        own = mask_secrets(job.server.environment, job.tuned)
        lines.append(f"{{ {line(job.server.argv, [f'{name}={value}' for name, value in sorted(own.items())])} & }}")
        lines += [line(step) for step in (*job.server.warm_up, *job.server.reset)]
    return [*lines, line(command(job))]
