"""The launcher seam: how a job gets onto a machine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from launchers.job import Job, JobStatus

STDOUT = "stdout"
STDERR = "stderr"


class Launcher(Protocol):
    """Starts jobs and tells how they ended. A job that ended leaves no process behind.

    Whatever the launcher, a job's output lies in its folder as `stdout` and `stderr` while it runs, so live lines
    are read the same way everywhere (`LineReader`).
    """

    def submit(self, job: Job) -> str:
        """Start `job` and return an id that another process can use as well.

        Raises:
            LaunchError: the job could not be started (program not found, folder not writable, ...).
        """

    def poll(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the status of every id, with one query for all of them."""

    def cancel(self, job_id: str) -> None:
        """End the job and everything it started; a job that has ended already is left as it is."""


class LaunchError(Exception):
    """A job could not be started. The message says what was tried and what to do."""


class LineReader:
    """Reads the lines that were added to a growing file since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def new_lines(self, *, ended: bool = False) -> list[str]:
        """Return complete new lines without their ends; with `ended`, also a last one that has no end.

        Bytes that are not UTF-8 are replaced, never an error: a program may print anything.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if ended and self._rest:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode("utf-8", errors="replace").rstrip("\r") for line in lines]
