"""The launcher seam: how a job gets onto a machine."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from launchers.job import Job, JobStatus, Place
from launchers.mpi import MpiFlavour
from launchers.site import Site

# Bound the work per call: a program that prints without end must neither fill the memory nor keep the reader busy.
_READ_BYTES = 2**18
_LINE_BYTES = 2**12


class Launcher(Protocol):
    """Starts jobs and reports how they ended. A job that ended leaves no process behind.

    Every launcher writes a job's output to `stdout` and `stderr` in the job's folder while it runs, so `LineReader`
    reads live lines the same way everywhere.
    """

    @property
    def flavour(self) -> MpiFlavour | None:
        """The command that starts the ranks of a job; None if this launcher has no such command."""

    @property
    def queue(self) -> "BatchQueue | None":
        """This launcher, if its jobs wait in the queue of a batch system; None if they start at once."""

    def submit(self, job: Job) -> str:
        """Start `job` and return an id that other processes can use as well.

        Raises:
            LaunchError: The job could not be started (program not found, folder not writable, ...).
        """

    def poll(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the status of every id, with one query for all of them."""

    def cancel(self, job_id: str) -> None:
        """End the job and everything it started; do nothing if the job has ended already."""

    def preview(self, job: Job) -> str:
        """Return what `submit` would start, as text for a person."""

    def notes(self, *, ranks: bool) -> tuple[str, ...]:
        """Return what a user should know about how this launcher starts jobs, with `ranks` or without."""


class HostChoice(Protocol):
    """Chooses the host on which a job starts."""

    @property
    def is_free(self) -> bool:
        """Whether a job can be given its host."""

    def find_other(self, cores: int, known: Collection[str]) -> Place | None:
        """Return where a job of `cores` cores can start on a host outside `known`; None if no such host exists."""


class BatchQueue(Launcher, Protocol):
    """A launcher whose jobs wait in the queue of a batch system and outlive the process that submitted them."""

    @property
    def site(self) -> Site:
        """The settings of the computing centre whose batch system this is."""

    @property
    def trouble(self) -> str:
        """Why the batch system does not answer at present; empty while it does."""

    def find_submitted(self, folder: Path) -> str | None:
        """Return the id of the job last submitted in a folder, by any process; None if there was none."""

    @property
    def hosts(self) -> HostChoice:
        """How to choose the host on which a job starts."""

    def forget(self, ids: Iterable[str]) -> None:
        """Stop following jobs whose ends are known."""

    def end(self, ids: Iterable[str]) -> None:
        """Ask the batch system to end jobs, without waiting until they have ended."""

    def cancel_all(self, ids: Sequence[str], away_s: float) -> Mapping[str, JobStatus]:
        """End jobs and wait until they have ended; give up after `away_s` seconds without an answer."""


class LaunchError(Exception):
    """A job could not be started. The message says what was tried and what to do."""


class LineReader:
    """Reads the lines appended to a growing file since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def new_lines(self, *, ended: bool = False) -> list[str]:
        """Return the complete new lines, without line ends; with `ended`, also a last line that has no end.

        A call returns at most a part of a large output, so call again until it returns nothing. Bytes that are not
        UTF-8 are replaced, very long lines are cut, and a file that cannot be read has no lines: the program may have
        removed it.
        """
        lines: list[bytes] = []
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._offset)
            while not lines and (chunk := file.read(_READ_BYTES)):
                self._offset += len(chunk)
                # A progress bar separates its states with carriage returns; count each state as a line.
                *lines, rest = (self._rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
                self._rest = rest[:_LINE_BYTES]
        if ended and not lines and self._rest:
            lines, self._rest = [self._rest], b""
        return [line[:_LINE_BYTES].decode("utf-8", errors="replace").rstrip("\r") for line in lines]
