"""The errors with which a supervisor refuses an action."""

from collections.abc import Iterable

from autotune.errors import AutotuneError, BusyError, StorageError


class UnknownStudyError(AutotuneError):
    """No study of that name was ordered here."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no study called {name!r} was ordered here")


class NotAllowedError(BusyError):
    """The state of a study does not allow the action.

    Attributes:
        state: The state of the study.
        allowed: The states that would allow the action.
    """

    def __init__(self, name: str, verb: str, state: str, allowed: Iterable[str]) -> None:
        self.state = state
        self.allowed = tuple(sorted(allowed))
        super().__init__(f"study {name!r} is {state}: {verb} needs one that is {' or '.join(self.allowed)}")


class BrokenOrderError(StorageError):
    """The file of an order is incomplete, belongs to another user, or is not an order."""


class NameTakenError(BusyError):
    """A study of another catalogue entry has the name."""

    def __init__(self, name: str, study: str) -> None:
        super().__init__(f"the name {name!r} is taken by a study of {study!r}: give the new one another name")
