"""The files of a batch system's job in its folder: its command, its claim, and the answers to it."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from launchers.base import LaunchError
from launchers.batch_systems.base import QUEUE_LOG, SCHEDULER_LOG
from launchers.job import OUTPUT_LIMIT_BYTES, STDERR, STDOUT, Job
from launchers.node import CLAIM_FILE, JOB_FILE
from launchers.secret import write_private
from launchers.steps import STEPS_FILE
from launchers.supervisor import AFFINITY_FILE, STATUS_FILE

SCRIPT_FILE = ".autotune-job.sh"

SUBMIT_FILE = ".autotune-job.submit"
"""What describes the job to a scheduler that wants a file beside the script."""

ANSWER_FILE = ".autotune-submitted"

_OF_A_RUN = frozenset(
    {STATUS_FILE, AFFINITY_FILE, STEPS_FILE, ANSWER_FILE, CLAIM_FILE, QUEUE_LOG, SCHEDULER_LOG, STDOUT, STDERR}
)


def write_job(  # noqa: PLR0913, PLR0917  what a job is
    job: Job,
    commands: tuple[Sequence[str], Sequence[str]],
    environment: Mapping[str, str],
    grace_s: float,
    identity: Mapping[str, str],
    files: Mapping[str, str],
) -> None:
    """Write what is to be run in a job's folder, and remove what is there of an earlier run.

    The `commands` are those of a job that shares its nodes, and of one that finds itself confined to cores of its own.
    `identity` has the `token` of this submission, and which variable tells a job its number. Jobs that were submitted
    for the folder before run no more from now on: theirs is another token. `files` are the script, and what else the
    scheduler reads: name -> text.

    Raises:
        LaunchError: the folder is not there, or cannot be written to; or no process can have these words.
    """
    if not job.folder.is_dir():
        msg = f"the job's folder {job.folder} is not there, or not a folder; make it first"
        raise LaunchError(msg)
    for word in (*commands[0], *environment, *environment.values()):
        if "\0" in word:
            msg = f"{word!r} holds a zero byte, which no command line and no environment can"
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
        "grace_s": grace_s,
        "output_limit_bytes": OUTPUT_LIMIT_BYTES,
        "memory_limit_bytes": job.memory_limit_bytes,
    }
    try:
        # In one step, for an earlier job that reads it just now; and before the rest, so that it leaves nothing there.
        new = job.folder / f"{JOB_FILE}.new"
        write_private(new, json.dumps(spec))
        new.replace(job.folder / JOB_FILE)
        # One look is less for a shared file system than six files that are not there.
        for entry in list(job.folder.iterdir()):
            if entry.name in _OF_A_RUN:
                entry.unlink()
        for name, text in files.items():
            write_private(job.folder / name, text)
    except OSError as error:
        msg = f"the job's folder {job.folder} cannot be written to: {error.strerror}"
        raise LaunchError(msg) from error


def read_claim(folder: Path) -> str | None:
    """Return the number of the job that runs in a folder, or did; None if there is none, or it is not known."""
    with suppress(OSError):
        return (folder / CLAIM_FILE).read_text(encoding="utf-8", errors="replace").strip() or None
    return None


def read_answer(folder: Path) -> str:
    """Return what was answered to the last submission of a folder's job; nothing if there was none, or no answer."""
    with suppress(OSError):
        return (folder / ANSWER_FILE).read_text(encoding="utf-8", errors="replace")
    return ""
