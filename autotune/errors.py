"""The errors for users, with the exit codes by which scripts distinguish them."""

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy takes a while to import, and errors are needed at once
    from spaces.parameters.problem import Problem


class ExitCode(IntEnum):
    """The exit codes of `autotune`. 130 (Ctrl-C) follows the shells' custom, 128 + SIGINT."""

    OK = 0
    USAGE = 2
    CANNOT_RUN_HERE = 3
    NOTHING_WORKED = 4
    STORAGE = 5
    BUSY = 6
    UNFINISHED = 7
    PAUSED = 8
    NOTHING_FEASIBLE = 9
    CHANGED = 10
    INTERRUPTED = 130


class AutotuneError(Exception):
    """An error that the user can correct: the message says what was given, the rule, and what to do."""

    exit_code = ExitCode.USAGE

    problems: "tuple[Problem, ...]"
    """The problems of a file, each with its path; empty if the error is not about a file's content."""

    def __init__(self, what: "str | Problem", problems: "Iterable[Problem]" = (), shown: int | None = None) -> None:
        """Make the message from one problem, or from a title and the first `shown` of several problems."""
        listed = tuple(problems)
        self.problems = listed if isinstance(what, str) else (what,)
        lines = [f"  {problem}" for problem in listed[:shown]]
        more = [f"  ... and {len(listed) - len(lines)} more"] if len(lines) < len(listed) else []
        super().__init__("\n".join([str(what), *lines, *more]))


class StudyFileError(AutotuneError):
    """A study file is wrong; the message lists every error with its path in the file."""


class ImportFileError(AutotuneError):
    """A file of measurements, or the mapping that describes it, is wrong; the message lists every error."""


class CannotRunHereError(AutotuneError):
    """The study is right, but this machine lacks something that it needs."""

    exit_code = ExitCode.CANNOT_RUN_HERE


class NoTimeError(CannotRunHereError):
    """No run ended within the time of the session, and none would if it were repeated: give it more time."""


class NothingWorkedError(AutotuneError):
    """The default configuration failed, or every trial did."""

    exit_code = ExitCode.NOTHING_WORKED


class NothingFeasibleError(AutotuneError):
    """No valid configuration keeps the limits of the study."""

    exit_code = ExitCode.NOTHING_FEASIBLE


class StorageError(AutotuneError):
    """The storage cannot be read or written, or its content is not as expected."""

    exit_code = ExitCode.STORAGE


class RecordError(StorageError, ValueError):
    """A record in the storage is damaged, or is not as this version writes it."""


class DifferentStudyError(AutotuneError):
    """Another study is stored under this name, with another program, input or space: choose another name."""

    exit_code = ExitCode.STORAGE

    differences: "tuple[str, ...]"
    """The differences, one a line."""

    def __init__(self, what: str, differences: "Iterable[str]" = ()) -> None:
        """Make an error with the message `what` and the list of differences."""
        super().__init__(what)
        self.differences = tuple(differences)


class ChangedProgramError(DifferentStudyError):
    """The stored study is of the same study file, but what it runs has changed; `successor` names the next study."""

    def __init__(self, what: str, differences: "Iterable[str]", successor: str) -> None:
        """Make an error with the name of the study to start, or to continue, in its place."""
        super().__init__(what, differences)
        self.successor = successor


class BusyError(AutotuneError):
    """Another process holds the study, or its cores."""

    exit_code = ExitCode.BUSY


class UnfinishedError(AutotuneError):
    """The time of the allocation ended before the study; the same command continues it."""

    exit_code = ExitCode.UNFINISHED


class PausedError(AutotuneError):
    """A pause was requested, and nothing runs any more; the same command continues the study."""

    exit_code = ExitCode.PAUSED


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error is Ctrl-C or SIGTERM, or was raised while one of these was handled.

    SQLAlchemy closes its session on an interrupt, and may fail at that, so that its error hides the interrupt. Ray
    raises `SystemExit` for SIGTERM while it joins a cluster.
    """
    at: BaseException | None = error
    while at is not None and not isinstance(at, KeyboardInterrupt | SystemExit):
        at = at.__context__
    return at is not None
