"""Study managers: the protocol of those that carry out orders, and the manager of a service that is read-only."""

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from autotune.service.problems import ProblemError
from autotune.supervision import Order, StudyState

READ_ONLY = (
    "this service is read-only: studies can be looked at, not started, paused, resumed, stopped, deleted or asked; "
    "its operator can serve the storage without --read-only"
)


class StudyManager(Protocol):
    """Carries out orders for the studies that were started here.

    Every method that changes a study raises `NotAllowedError` if the study's state does not allow that.
    """

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
        """Give up the lock of a study that is to be deleted."""
        ...

    def forget(self, name: str) -> None:
        """Remove the order of a study; the storage keeps the study."""
        ...

    def states(self) -> Mapping[str, StudyState]:
        """Return the states of the studies, by name."""
        ...

    def status(self, name: str) -> Mapping[str, Any]:
        """Return the runs in flight and the time left; empty while that is not known."""
        ...


class ReadOnlyManager:
    """The manager of a read-only service: it has no studies, and refuses every order."""

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
        """Refuse."""
        del name
        self._refuse()

    forget = release

    def states(self) -> Mapping[str, StudyState]:
        """Return no state."""
        return {}

    def status(self, name: str) -> Mapping[str, Any]:
        """Return nothing: only the service that runs a study knows its runs in flight."""
        del name
        return {}

    def log(self, name: str, lines: int = 200) -> str:
        """Return an empty log."""
        del name, lines
        return ""

    def _refuse(self) -> NoReturn:
        raise ProblemError(403, READ_ONLY)
