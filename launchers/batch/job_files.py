"""The files of a batch job in its folder: its description, its script, its claim and the scheduler's answer."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from launchers.base import LaunchError
from launchers.batch.job_ends import GONE_FILE
from launchers.batch_systems.base import QUEUE_LOG, SCHEDULER_LOG
from launchers.job import OUTPUT_LIMIT_BYTES, STDERR, STDOUT, Job
from launchers.node import CLAIM_FILE, JOB_FILE
from launchers.secret import write_private
from launchers.server import RECORD_FILE
from launchers.shared_memory import SHARED_MEMORY_FILE
from launchers.steps import STEPS_FILE
from launchers.supervisor import AFFINITY_FILE, STATUS_FILE

SCRIPT_FILE = ".autotune-job.sh"

SUBMIT_FILE = ".autotune-job.submit"
"""Describes the job to a scheduler that wants a file beside the script."""

ANSWER_FILE = ".autotune-submitted"

_OF_A_RUN = frozenset(
    {
        *(STATUS_FILE, AFFINITY_FILE, SHARED_MEMORY_FILE, STEPS_FILE, RECORD_FILE, ANSWER_FILE, CLAIM_FILE, GONE_FILE),
        *(QUEUE_LOG, SCHEDULER_LOG, STDOUT, STDERR),
    }
)


def write_job(  # noqa: PLR0913, PLR0917  what a job is
    job: Job,
    commands: tuple[Sequence[str], Sequence[str]],
    environment: Mapping[str, str],
    limits_s: tuple[float, float],
    identity: Mapping[str, str],
    files: Mapping[str, str],
) -> None:
    """Write the description and the script of a job to its folder, and remove the files of an earlier run.

    Jobs submitted for this folder earlier no longer run, since their token differs.

    Args:
        job: The job.
        commands: The command line for a job that shares its nodes, and for one that is confined to cores of its own.
        environment: The job's variables.
        limits_s: How many seconds the job has to end before it is killed, and its wall time.
        identity: The `token` of this submission, and the variables in which the job finds its number and host.
        files: The script and other files that the scheduler reads: name -> text.

    Raises:
        LaunchError: The folder does not exist or is not writable, or a word cannot be passed to a process.
    """
    if not job.folder.is_dir():
        msg = f"the job's folder {job.folder} does not exist or is not a folder; create it first"
        raise LaunchError(msg)
    for word in (*commands[0], *environment, *environment.values()):
        if "\0" in word:
            msg = f"{word!r} contains a zero byte, which neither a command line nor an environment can contain"
            raise LaunchError(msg)
    spec = {
        **identity,
        "argv": commands[0],
        "confined_argv": commands[1],
        "environment": environment,
        "folder": os.fspath(job.folder.resolve()),
        "stdout": STDOUT,
        "stderr": STDERR,
        "cpus": [],
        "nodes": job.resources.nodes,
        "gpus": job.resources.gpus,
        "meter": list(job.meter),
        "is_part": False,
        "time_limit_s": job.time_limit_s,
        "grace_s": limits_s[0],
        "walltime_s": limits_s[1],
        "output_limit_bytes": OUTPUT_LIMIT_BYTES,
        "memory_limit_bytes": job.memory_limit_bytes,
    }
    try:
        # Replace the file atomically, since an earlier job may be reading it. Do it before the rest, so that the
        # earlier job does not leave new files there.
        new = job.folder / f"{JOB_FILE}.new"
        write_private(new, json.dumps(spec))
        new.replace(job.folder / JOB_FILE)
        # One listing costs a shared file system less than six attempts to remove missing files.
        for entry in list(job.folder.iterdir()):
            if entry.name in _OF_A_RUN:
                entry.unlink()
        for name, text in files.items():
            write_private(job.folder / name, text)
    except OSError as error:
        msg = f"the job's folder {job.folder} is not writable: {error.strerror}"
        raise LaunchError(msg) from error


def read_claim(folder: Path) -> str | None:
    """Return the number of the job that claimed a folder; None if no job did, or the number is not known."""
    with suppress(OSError):
        return (folder / CLAIM_FILE).read_text(encoding="utf-8", errors="replace").strip() or None
    return None
