"""Orders: the desired state of a study, as its users last set it."""

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from autotune.machines.boot import Moment
from autotune.studyfile import NAME

CORES = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"
"""A list of cores: 0-3,8."""


class DesiredState(StrEnum):
    """What a study is to do."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class Task(StrEnum):
    """What is done with a study: it is tuned, its winner is compared with the default, or taken apart."""

    TUNE = "study"
    CONFIRM = "confirm"
    ABLATE = "ablate"


class Order(BaseModel):
    """A study of the catalogue, how much of it is wanted, and the newest wish.

    `study` is its name in the catalogue, `file` its study file (an absolute path), `name` its name in storage.
    Fields that are None are as in the study file; `timeout_s` is for each session. `cores` is a list as of `--cores`,
    `launcher` what starts runs. `by` is the author of the wish,
    `since` its time, and `wished` the same by a clock that nobody can set. Each wish to run that follows another wish
    has a new `serial`: it is the supervisor's. `left` says how the tuning stood when a comparison was ordered, paused
    or stopped: so it stands after that, too. None: it was finished.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    study: Annotated[str, Field(pattern=NAME, max_length=100)]
    file: Path
    name: Annotated[str, Field(pattern=NAME, max_length=100)]
    trials: Annotated[int, Field(ge=1)] | Literal["auto"] | None = None
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    workers: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    cores: Annotated[str, Field(pattern=CORES, max_length=200)] | None = None
    launcher: Annotated[str, Field(pattern=NAME, max_length=50)] | None = None
    task: Task = Task.TUNE
    left: Literal[DesiredState.PAUSE, DesiredState.STOP] | None = None
    wish: DesiredState = DesiredState.RUN
    since: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    wished: Moment = Field(default_factory=Moment.now)
    by: str = ""
    serial: Annotated[int, Field(ge=1)] = 1

    @field_validator("file")
    @classmethod
    def _is_absolute(cls, file: Path) -> Path:
        if not file.is_absolute():
            msg = f"{file} is not absolute: the study may run in any folder"
            raise ValueError(msg)
        return file

    def tuning(self, by: str, trials: int | None = None) -> "Order":
        """Return the order to tune now, with another total of trials if one is given."""
        more = {} if trials is None else {"trials": trials}
        return self.model_copy(update={"task": Task.TUNE, "left": None, **more}).wishing(DesiredState.RUN, by)

    def comparing(self, task: Task, by: str, left: DesiredState | None) -> "Order":
        """Return the order to confirm or ablate now, where the tuning was `left` paused, stopped or finished (None)."""
        return self.model_copy(update={"task": task, "left": left}).wishing(DesiredState.RUN, by)

    def wishing(self, wish: DesiredState, by: str) -> "Order":
        """Return the order with another wish, dated now."""
        return self.model_copy(update={"wish": wish, "by": by, "since": datetime.now(UTC), "wished": Moment.now()})

    def asks_the_same(self, other: "Order") -> bool:
        """Whether another order asks for the same, regardless of its author and its time."""
        own = {"since", "wished", "by", "serial"}
        return self.model_dump(exclude=own) == other.model_dump(exclude=own)
