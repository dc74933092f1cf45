"""The launcher seam: how a job gets onto a machine."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from launchers.job import Job, JobStatus

STDOUT = "stdout"
STDERR = "stderr"

# A reader of a program that prints without end must neither fill the memory nor be busy for long.
_READ_BYTES = 2**18
_LINE_BYTES = 2**12


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

        When much is new, the lines are only some of it: there may be more as long as there are any. A program may
        print anything: bytes that are not UTF-8 are replaced, and a very long line is cut. A file that cannot be read,
        which a program may bring about as well, has no lines.
        """
        lines: list[bytes] = []
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._offset)
            while not lines and (chunk := file.read(_READ_BYTES)):
                self._offset += len(chunk)
                # A live bar ends its states with carriage returns: each is a line.
                *lines, rest = (self._rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
                self._rest = rest[:_LINE_BYTES]
        if ended and not lines and self._rest:
            lines, self._rest = [self._rest], b""
        return [line[:_LINE_BYTES].decode("utf-8", errors="replace").rstrip("\r") for line in lines]
