"""Decide what to do from the desired and the observed state: a pure function of frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from autotune.errors import ExitCode
from autotune.supervision.desired_state import DesiredState


class StateName(StrEnum):
    """The state of a study. A study that is `OPEN` has no supervisor."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    OPEN = "open"


class Action(Enum):
    """The action to take now."""

    NOTHING = "nothing"
    START = "start"
    PAUSE = "pause"
    STOP = "stop"
    KILL = "kill"


class ExitClass(Enum):
    """The consequence of a process's end for its study."""

    FINISHED = "it is done"
    PAUSED = "it was paused"
    OUT_OF_TIME = "its time was over"
    FAILED = "it cannot resume as it is"
    DIED = "it can resume"
    AWAY = "it can resume when its storage is back"


GIVEN_UP_AFTER: Mapping[ExitClass, int] = {ExitClass.DIED: 5, ExitClass.AWAY: 30}
"""After this many ends of a class in a row without a finished trial, another start would end the same way.

A storage gets more attempts, because the upgrade of a database server takes up to half an hour.
"""


_FATES: Mapping[int | None, ExitClass] = {
    ExitCode.OK: ExitClass.FINISHED,
    ExitCode.USAGE: ExitClass.FAILED,
    ExitCode.CANNOT_RUN_HERE: ExitClass.FAILED,
    ExitCode.NOTHING_WORKED: ExitClass.FAILED,
    ExitCode.STORAGE: ExitClass.AWAY,
    ExitCode.BUSY: ExitClass.FAILED,
    ExitCode.UNFINISHED: ExitClass.OUT_OF_TIME,
    ExitCode.PAUSED: ExitClass.PAUSED,
    ExitCode.NOTHING_FEASIBLE: ExitClass.FINISHED,
    ExitCode.INTERRUPTED: ExitClass.DIED,
}


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Exit code; None if it has none.
        signal: Signal that killed it; None if none did.
        error: Why it could not be started.
    """

    code: int | None = None
    signal: int | None = None
    error: str = ""

    @property
    def fate(self) -> ExitClass:
        """The consequence for the study; an interruption from elsewhere, such as a shutdown, is a death."""
        return ExitClass.FAILED if self.error else _FATES.get(self.code, ExitClass.DIED)

    @property
    def can_resume(self) -> bool:
        """Whether another process can resume the study, now or later."""
        return self.fate in GIVEN_UP_AFTER


@dataclass(frozen=True)
class ObservedState:
    """What the processes of a study do.

    Attributes:
        alive: Whether a process is alive.
        waiting: Whether it waits for its turn.
        asked: The wish that it was last sent.
        overdue: Whether it should have stopped by now.
        current: Whether the newest process was started for the newest wish to run.
        ended: How the newest process ended; None if that was not recorded.
        deaths: How many processes in a row, up to the newest, died without a finished trial.
        too_soon: Whether the next start has to wait.
        left: State of the tuning before the comparison that the newest process makes; None: finished.
    """

    alive: bool = False
    waiting: bool = False
    asked: DesiredState | None = None
    overdue: bool = False
    current: bool = False
    ended: Ended | None = None
    deaths: int = 0
    too_soon: bool = False
    left: DesiredState | None = None

    @property
    def is_done(self) -> bool:
        """Whether the newest wish to run was carried out to its end."""
        return not self.alive and self.current and self.ended is not None and self.ended.fate is ExitClass.FINISHED


@dataclass(frozen=True)
class Decision:
    """The state of a study, and the action to take."""

    state: StateName
    action: Action = Action.NOTHING


_LEFT: Mapping[DesiredState | None, StateName] = {
    DesiredState.PAUSE: StateName.PAUSED,
    DesiredState.STOP: StateName.STOPPED,
}


def decide(wish: DesiredState, reality: ObservedState) -> Decision:
    """Return the state and the action that follow from a wish and the observed state."""
    return _of_living(wish, reality) if reality.alive else _of_ended(wish, reality)


def _of_living(wish: DesiredState, reality: ObservedState) -> Decision:
    match wish:
        case DesiredState.RUN:
            return Decision(StateName.WAITING if reality.waiting else StateName.RUNNING)
        case DesiredState.PAUSE:
            return Decision(StateName.PAUSING, Action.NOTHING if reality.asked is wish else Action.PAUSE)
        case DesiredState.STOP if reality.overdue:
            return Decision(StateName.STOPPING, Action.KILL)
        case DesiredState.STOP:
            return Decision(StateName.STOPPING, Action.NOTHING if reality.asked is wish else Action.STOP)


def _of_ended(wish: DesiredState, reality: ObservedState) -> Decision:
    if reality.is_done:
        return Decision(_LEFT.get(reality.left, StateName.FINISHED))
    fate = (reality.ended.fate if reality.ended else ExitClass.DIED) if reality.current else None
    limit = GIVEN_UP_AFTER.get(fate) if fate is not None else None
    given_up = limit is not None and reality.deaths >= limit
    if fate is ExitClass.FAILED or (given_up and wish is DesiredState.RUN):
        return Decision(StateName.FAILED)
    if wish is DesiredState.PAUSE or fate is ExitClass.PAUSED:
        return Decision(StateName.STOPPED if wish is DesiredState.STOP else StateName.PAUSED)
    if wish is DesiredState.STOP or fate is ExitClass.OUT_OF_TIME:
        return Decision(StateName.STOPPED)
    if limit is not None and reality.too_soon:
        return Decision(StateName.WAITING)
    return Decision(StateName.RUNNING, Action.START)
