"""Orders: the desired state of a study, as its users last set it."""

import json
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from autotune.machines.boot import Moment
from autotune.studyfile import NAME

CORES = r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"
"""Pattern of a list of cores, such as 0-3,8."""


class DesiredState(StrEnum):
    """Whether a study is to run, pause or stop."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class Task(StrEnum):
    """The work on a study: tune it, compare its winner with the default, or ablate the winner."""

    TUNE = "study"
    CONFIRM = "confirm"
    ABLATE = "ablate"


class Order(BaseModel):
    """A study of the catalogue, its options, and its desired state.

    An option that is None keeps the value of the study file.

    Attributes:
        study: Its name in the catalogue.
        file: Its study file, an absolute path.
        name: Its name in storage.
        trials: Total number of trials.
        timeout_s: Seconds that each session may take.
        workers: Number of runs side by side.
        seed: Seed of the sampler.
        cores: Cores to use, as for `--cores`.
        launcher: The launcher of its runs.
        task: The work on the study.
        pairs: Number of pairs of runs of the verdict; None: as many as the study file asks for.
        weights: For a trade-off, the weights of its metrics; None: those of the study file.
        left: State of the tuning when a comparison was ordered, which it has again afterwards; None: finished.
        wish: The desired state.
        since: Time of the wish.
        wished: Time of the wish by a clock that cannot be set.
        by: Author of the wish.
        serial: Number of the wish to run, given by the supervisor; each wish to run that follows another wish has a new
            one.
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
    pairs: Annotated[int, Field(ge=3)] | None = None
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
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
            msg = f"{file} is not an absolute path; give one, because the study may run in any folder"
            raise ValueError(msg)
        return file

    def tuning(self, by: str, trials: int | None = None, pairs: int | None = None) -> "Order":
        """Return the order to tune now, with another total of trials if one is given, and to compare in `pairs`."""
        more = {} if trials is None else {"trials": trials}
        return self.model_copy(update={"task": Task.TUNE, "left": None, "pairs": pairs, **more}).wishing(
            DesiredState.RUN, by
        )

    def comparing(
        self,
        task: Task,
        by: str,
        left: DesiredState | None,
        pairs: int | None = None,
        weights: dict[str, float] | None = None,
    ) -> "Order":
        """Return the order to confirm or ablate now; `left` is the state of the tuning (None: finished)."""
        chosen = {"task": task, "left": left, "pairs": pairs, "weights": weights or self.weights}
        return self.model_copy(update=chosen).wishing(DesiredState.RUN, by)

    @property
    def changes(self) -> list[str]:
        """The changes of the study file, `key=value`, that a study cannot get by another option."""
        pairs = [] if self.pairs is None else [f"verdict.{key}={self.pairs}" for key in ("pairs", "max_pairs")]
        weights = ", ".join(
            f"{json.dumps(name, ensure_ascii=False)} = {weight!r}" for name, weight in (self.weights or {}).items()
        )
        return [*pairs, *([f"tradeoff.weights={{ {weights} }}"] if weights else [])]

    def wishing(self, wish: DesiredState, by: str) -> "Order":
        """Return the order with another wish, dated now."""
        return self.model_copy(update={"wish": wish, "by": by, "since": datetime.now(UTC), "wished": Moment.now()})

    def asks_the_same(self, other: "Order") -> bool:
        """Whether another order has the same content, regardless of its author and time."""
        own = {"since", "wished", "by", "serial"}
        return self.model_dump(exclude=own) == other.model_dump(exclude=own)
