"""What follows from the desired and the observed state: a pure function of frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from autotune.errors import ExitCode
from autotune.supervision.desired_state import DesiredState


class StateName(StrEnum):
    """How a study stands. No supervisor looks after studies that are `OPEN` or `IDLE`."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    OPEN = "open"
    IDLE = "idle"


class Action(Enum):
    """What is to be done now."""

    NOTHING = "nothing"
    START = "start"
    PAUSE = "pause"
    STOP = "stop"
    KILL = "kill"


class ExitClass(Enum):
    """What the end of a process means for its study."""

    FINISHED = "it is done"
    PAUSED = "it was paused"
    OUT_OF_TIME = "its time was over"
    FAILED = "it cannot go on as it is"
    DIED = "it can go on"
    AWAY = "it can go on when its storage is back"


GIVEN_UP_AFTER: Mapping[ExitClass, int] = {ExitClass.DIED: 5, ExitClass.AWAY: 30}
"""After this many such ends in a row without a finished trial, another process would end so as well.

A database server that is brought to a newer version is back within half an hour.
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
    """How a process ended: with an exit code, by a signal, or it could not be started, for an `error`."""

    code: int | None = None
    signal: int | None = None
    error: str = ""

    @property
    def fate(self) -> ExitClass:
        """What the end means. A process that was interrupted, but not from here, died: the host was shut down, say."""
        return ExitClass.FAILED if self.error else _FATES.get(self.code, ExitClass.DIED)

    @property
    def lets_go_on(self) -> bool:
        """Whether another process can resume the study, now or later."""
        return self.fate in GIVEN_UP_AFTER


@dataclass(frozen=True)
class ObservedState:
    """What the processes of a study do.

    A process is `alive`, and may be `waiting` for its turn; `asked` is the wish that it was sent last, and it may be
    `overdue` to stop. The newest process is `current` if it was started for the newest wish to run; `ended` is how it
    ended, None if that was not written down. `deaths` counts the processes, up to the newest, that died in a row
    without a finished trial. The next start may be `too_soon`. `left` is what the tuning was told before a comparison
    began that the newest process makes; None: it was finished.
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
    """How a study stands, and what is to be done."""

    state: StateName
    action: Action = Action.NOTHING


_LEFT: Mapping[DesiredState | None, StateName] = {
    DesiredState.PAUSE: StateName.PAUSED,
    DesiredState.STOP: StateName.STOPPED,
}


def decide(wish: DesiredState, reality: ObservedState) -> Decision:
    """Return what follows."""
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
