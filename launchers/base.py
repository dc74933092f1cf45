"""The launcher seam: how a job gets onto a machine."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from launchers.job import Job, JobStatus, Place
from launchers.mpi import MpiFlavour
from launchers.site import Site

# A reader of a program that prints without end must neither fill the memory nor be busy for long.
_READ_BYTES = 2**18
_LINE_BYTES = 2**12


class Launcher(Protocol):
    """Starts jobs and tells how they ended. A job that ended leaves no process behind.

    Whatever the launcher, a job's output lies in its folder as `stdout` and `stderr` while it runs, so live lines
    are read the same way everywhere (`LineReader`).
    """

    @property
    def flavour(self) -> MpiFlavour | None:
        """What starts the ranks of a job; None where nothing does."""

    @property
    def queue(self) -> "BatchQueue | None":
        """This launcher, if its jobs wait in the queue of a batch system; None if they start at once."""

    def submit(self, job: Job) -> str:
        """Start `job` and return an id that another process can use as well.

        Raises:
            LaunchError: the job could not be started (program not found, folder not writable, ...).
        """

    def poll(self, ids: Sequence[str]) -> Mapping[str, JobStatus]:
        """Return the status of every id, with one query for all of them."""

    def cancel(self, job_id: str) -> None:
        """End the job and everything it started; a job that has ended already is left as it is."""

    def preview(self, job: Job) -> str:
        """Return what would be started, as text for a person."""

    def notes(self, *, ranks: bool) -> tuple[str, ...]:
        """Return what a user should know about how jobs are started here, which have `ranks` or not."""


class HostChoice(Protocol):
    """How jobs are told on which host to start."""

    @property
    def is_free(self) -> bool:
        """Whether a job can be told its host."""

    def find_other(self, cores: int, known: Collection[str]) -> Place | None:
        """Return where a job of so many cores starts on a host that is not `known`; None: there is no such host."""


class BatchQueue(Launcher, Protocol):
    """A launcher whose jobs wait in the queue of a batch system, and outlive the process that submitted them."""

    @property
    def site(self) -> Site:
        """The batch system of this computing centre, and how it is used."""

    @property
    def trouble(self) -> str:
        """Why the batch system cannot be asked at present; empty while it answers."""

    def find_submitted(self, folder: Path) -> str | None:
        """Return the job that was submitted last in a folder, by whatever process; None if there is none."""

    @property
    def hosts(self) -> HostChoice:
        """How jobs are told on which host to start."""

    def forget(self, ids: Iterable[str]) -> None:
        """Follow jobs no longer: their ends are known."""

    def end(self, ids: Iterable[str]) -> None:
        """Ask the batch system to end jobs, without waiting for it."""

    def cancel_all(self, ids: Sequence[str], away_s: float) -> Mapping[str, JobStatus]:
        """End jobs and wait until they have ended; give up when the batch system is away for `away_s`."""


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
