"""Studies as supervised processes: they outlive the service that started them, and are picked up at its restart.

The desired state of a study is an `Order` on disk. The study runs under a small program, the shim, that records how it
ended. A `StudySupervisor` compares desired with observed states once a second, and starts or signals what differs.
Everything that it needs to know is in files, so a service that was killed loses nothing.
"""

from autotune.supervision.desired_state import CORES, DesiredState, Order, Task
from autotune.supervision.problems import BrokenOrderError, NameTakenError, NotAllowedError, UnknownStudyError
from autotune.supervision.reconcile import StateName
from autotune.supervision.supervisor import ALLOWED, StudyState, StudySupervisor, SupervisorSettings

__all__ = [
    "ALLOWED",
    "CORES",
    "BrokenOrderError",
    "DesiredState",
    "NameTakenError",
    "NotAllowedError",
    "Order",
    "StateName",
    "StudyState",
    "StudySupervisor",
    "SupervisorSettings",
    "Task",
    "UnknownStudyError",
]
