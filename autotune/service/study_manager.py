"""The managers of studies that the service talks to: of processes of their own, and of open ask-and-tell studies."""

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from autotune.service.problems import ProblemError
from autotune.supervision import Order, StudyState

READ_ONLY = (
    "this service is read-only: studies can be looked at, not started, paused, resumed, stopped, deleted or asked; "
    "its operator can serve the storage without --read-only"
)


class StudyManager(Protocol):
    """Carries out what users want of the studies that were started here. Every verb raises `NotAllowedError`."""

    def submit(self, order: Order) -> StudyState:
        """Start a study, or resume a stopped one with the new order."""
        ...

    def pause(self, name: str, by: str) -> StudyState:
        """Let the runs in flight end, and start no other."""
        ...

    def resume(self, name: str, by: str) -> StudyState:
        """Resume a study that was paused or stopped, or has failed."""
        ...

    def stop(self, name: str, by: str) -> StudyState:
        """End a study."""
        ...

    def release(self, name: str) -> None:
        """Let go of a study that is to be deleted, so that its lock can be taken."""
        ...

    def forget(self, name: str) -> None:
        """Remove what is known of a study here; storage keeps it."""
        ...

    def states(self) -> Mapping[str, StudyState]:
        """Return how the studies stand, by name."""
        ...

    def status(self, name: str) -> Mapping[str, Any]:
        """Return what runs now, and how much is left; empty while nothing is known."""
        ...


class ReadOnlyManager:
    """The manager of a read-only service: it has no studies, and refuses every verb."""

    def submit(self, order: Order) -> StudyState:
        """Refuse to start a study."""
        del order
        self._refuse()

    def pause(self, name: str, by: str) -> StudyState:
        """Refuse."""
        del name, by
        self._refuse()

    resume = stop = pause

    def release(self, name: str) -> None:
        """Refuse to let go of a study that is to be deleted."""
        del name
        self._refuse()

    forget = release

    def states(self) -> Mapping[str, StudyState]:
        """Return no state."""
        return {}

    def status(self, name: str) -> Mapping[str, Any]:
        """Return nothing: what runs now is known to the service that looks after it."""
        del name
        return {}

    def log(self, name: str, lines: int = 200) -> str:
        """Return no line."""
        del name, lines
        return ""

    def _refuse(self) -> NoReturn:
        raise ProblemError(403, READ_ONLY)
