"""Studies as supervised processes: they outlive the service that started them, and are picked up at its restart.

A user's wish is an `Order` on disk. A study runs under a small program, the warden, that writes down how it ended; a
`Supervisor` compares wishes with what runs, once a second, and carries out what is missing. Everything that it needs
to know is in files, so that a service which was killed loses nothing.
"""

from autotune.supervision.desired_state import Order, Wish
from autotune.supervision.problems import BrokenOrderError, NameTakenError, NotAllowedError, UnknownStudyError
from autotune.supervision.reconcile import StateName
from autotune.supervision.supervisor import ALLOWED, Habits, StudyState, Supervisor

__all__ = [
    "ALLOWED",
    "BrokenOrderError",
    "Habits",
    "NameTakenError",
    "NotAllowedError",
    "Order",
    "StateName",
    "StudyState",
    "Supervisor",
    "UnknownStudyError",
    "Wish",
]
