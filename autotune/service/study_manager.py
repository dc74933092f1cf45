"""The managers of studies that the service talks to: of processes of their own, and of open ask-and-tell studies."""

from collections.abc import Mapping
from typing import Any, Protocol

from autotune.supervision import Order, StudyState


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
