"""What a supervisor refuses, and why."""

from collections.abc import Iterable

from autotune.errors import AutotuneError, BusyError, ExitCode, StorageError


class UnknownStudyError(AutotuneError):
    """No study of that name was ordered here."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no study called {name!r} was ordered here")


class NotAllowedError(BusyError):
    """The state of a study does not allow the action; `state` is that state, `allowed` the states that would."""

    def __init__(self, name: str, verb: str, state: str, allowed: Iterable[str]) -> None:
        self.state = state
        self.allowed = tuple(sorted(allowed))
        super().__init__(f"study {name!r} is {state}: {verb} needs one that is {' or '.join(self.allowed)}")


class BrokenOrderError(StorageError):
    """The file of an order is half-written, another user's, or no order at all."""

    exit_code = ExitCode.STORAGE


class NameTakenError(BusyError):
    """The name is that of a study of another entry of the catalogue."""

    def __init__(self, name: str, study: str) -> None:
        super().__init__(f"the name {name!r} is taken by a study of {study!r}: give the new one another name")
