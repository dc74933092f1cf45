"""Observe a study: read its files, and decide what to do."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from autotune.display.status_file import WAITING
from autotune.errors import ExitCode
from autotune.supervision.desired_state import DesiredState, Order
from autotune.supervision.reconcile import Action, Decision, Ended, ObservedState, StateName, decide
from autotune.supervision.study_folder import Process, StudyFolder

STOP_TIMEOUT_S = 120.0
"""Seconds that a study may take to stop: its runs in flight get some of them, and storage may be slow."""

_LONGEST_PAUSE_S = 60.0
_LAST_WORDS = 5

_CODES = {
    ExitCode.OK: "it ended by itself",
    ExitCode.USAGE: "its study file or an option is wrong",
    ExitCode.CANNOT_RUN_HERE: "it cannot run on this machine",
    ExitCode.NOTHING_WORKED: "no configuration has worked",
    ExitCode.STORAGE: "the storage, or a file, cannot be read or written",
    ExitCode.BUSY: "another process holds the study or the cores",
    ExitCode.UNFINISHED: "its time is over, and there is more to do",
    ExitCode.PAUSED: "another user paused it",
    ExitCode.NOTHING_FEASIBLE: "it ended by itself; no configuration keeps its limits",
    ExitCode.CHANGED: "it ended by itself; the machine, or what runs on it, has changed",
    ExitCode.INTERRUPTED: "another user interrupted it",
}


@dataclass
class SupervisorMemory:
    """A supervisor's memory of a study.

    Attributes:
        token: The newest start.
        asked: The wish that was last sent to it.
        over_at: When its end was first seen, by the supervisor's clock.
        trouble: Why the last attempt to start the study failed.
        later: When to try again.
    """

    token: str = ""
    asked: DesiredState | None = None
    over_at: float | None = None
    trouble: str = ""
    later: float = 0.0

    def note(self, process: Process | None, now: float) -> None:
        """Remember the newest start, and its end."""
        if process is None:
            return
        if self.token != process.token:
            self.token, self.asked, self.over_at, self.trouble = process.token, None, None, ""
        if self.over_at is None and process.target is None:
            self.over_at = now

    def next_start(self, process: Process, deaths: int, pause_s: float) -> float:
        """Return when a study that died may be started again; infinity until its end was seen."""
        if self.token != process.token or self.over_at is None:
            return inf
        return self.over_at + min(_LONGEST_PAUSE_S, pause_s * 2.0 ** (deaths - 1))


@dataclass(frozen=True)
class StudyView:
    """The order of a study, its observed state, and the resulting decision."""

    order: Order
    process: Process | None
    reality: ObservedState
    decision: Decision
    status: Mapping[str, Any] = field(default_factory=dict)


def observe(folder: StudyFolder, memory: SupervisorMemory, now: float, pause_s: float) -> StudyView:
    """Read the files of a study and decide what to do.

    Raises:
        BrokenOrderError: Its order cannot be read.
    """
    order, process = folder.order(), folder.process()
    if process is None:
        reality, status = ObservedState(), {}
    elif process.target is not None:
        status = folder.status()
        reality = _alive(order, process, memory, status)
    else:
        # Read these after the process is known to be dead, because it writes them before it ends.
        status = folder.status()
        ended = folder.end(process)
        current = process.serial >= order.serial
        died = current and (ended is None or ended.can_resume)
        deaths = _deaths(process, status) if died else 0
        too_soon = died and now < memory.next_start(process, deaths, pause_s)
        reality = ObservedState(current=current, ended=ended, deaths=deaths, too_soon=too_soon, left=order.left)
    return StudyView(order, process, reality, decide(order.wish, reality), status)


def state_and_message(view: StudyView, memory: SupervisorMemory, folder: StudyFolder) -> tuple[StateName, str]:
    """Return the state of a study, and a message if the state alone does not explain it."""
    state, reality = view.decision.state, view.reality
    if reality.alive:
        return state, str(view.status.get("message") or "") if state is StateName.WAITING else ""
    if view.decision.action is Action.START and memory.trouble:
        return StateName.WAITING, f"it cannot be started: {memory.trouble}; trying again"
    if not reality.current or reality.is_done:
        return state, ""
    how = describe_end(reality.ended)
    if state is StateName.FAILED:
        many = f", {reality.deaths} times in a row without a finished trial" if reality.deaths else ""
        return state, "\n".join([f"{how}{many}", *folder.last_words(_LAST_WORDS)])
    if view.order.wish is not DesiredState.RUN:
        return state, ""
    return state, how if state in {StateName.PAUSED, StateName.STOPPED} else f"{how}; it is started again"


def _alive(order: Order, process: Process, memory: SupervisorMemory, status: Mapping[str, Any]) -> ObservedState:
    wished_s = order.wished.ago_s
    return ObservedState(
        alive=True,
        waiting=_is_of(status, process) and status.get("phase") == WAITING,
        asked=memory.asked if memory.token == process.token else None,
        overdue=order.wish is DesiredState.STOP and wished_s is not None and wished_s > STOP_TIMEOUT_S,
        current=process.serial >= order.serial,
    )


def _deaths(process: Process, status: Mapping[str, Any]) -> int:
    """Return how many processes in a row, including this one, died without a finished trial."""
    advanced = status.get("advanced")
    return 1 if _is_of(status, process) and isinstance(advanced, int) and advanced > 0 else process.deaths + 1


def _is_of(status: Mapping[str, Any], process: Process) -> bool:
    """Whether the study of this start wrote a status."""
    return process.child is not None and status.get("process") == process.child


def describe_end(ended: Ended | None) -> str:
    """Describe how a process ended; None: its end was not recorded."""
    if ended is None:
        return "its process is gone, and left no record of how it ended"
    if ended.error:
        return f"its process could not be started: {ended.error}"
    if ended.signal is not None:
        return f"its process was killed by {_signal_name(ended.signal)}"
    known = {int(code): text for code, text in _CODES.items()}
    return known.get(ended.code if ended.code is not None else -1, f"its process crashed (exit code {ended.code})")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
