"""Onlooker: the manager of a read-only service, which looks after no study and changes none."""

from collections.abc import Mapping
from typing import Any, NoReturn

from autotune.service.problems import ProblemError
from autotune.supervision import Order, StudyState

READ_ONLY = (
    "this service is read-only: studies can be looked at, not started, paused, resumed, stopped, deleted or asked; "
    "its operator can serve the storage without --read-only"
)


class Onlooker:
    """Has no studies, and refuses every verb."""

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
