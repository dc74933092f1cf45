"""Studies as supervised processes, which outlive the service that started them and are adopted when it restarts.

The desired state of a study is an `Order` on disk. The study runs under a small program, the shim, which records how it
ended. A `StudySupervisor` compares the desired with the observed states once a second, and starts or signals studies
where they differ. All state is in files, so a service that is killed loses nothing.
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
