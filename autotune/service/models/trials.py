"""Trials as the service answers them, as JSON. Times are in seconds; values are in their metric's unit."""

from pydantic import BaseModel, Field

from autotune.service.models.values import Values


class TrialRow(BaseModel):
    """A trial: `value` of a complete one, `bound` of one that was stopped since it had lost.

    A `speed_up` that is not `confirmed` by a verdict only looks so. `breaks` are the limits that it breaks, each with
    its value: it cannot win.
    """

    trial: int
    state: str
    runs: int
    value: float | None
    bound: float | None
    speed_up: float | None
    confirmed: bool
    core_s: float
    configuration: Values
    breaks: str
    message: str


class Trials(BaseModel):
    """Some trials; `next` is what `after` must be to get more, None at the end."""

    trials: list[TrialRow]
    next: int | None


class TrialPage(BaseModel):
    """A part of the chosen trials: how many there are in `total`, and the `states` of all trials of the study."""

    trials: list[TrialRow]
    total: int
    states: dict[str, int]
    parameters: list[str]


class TrialRun(BaseModel):
    """A run of a trial: its `purpose` (tuning, verdict, ...), how it ended, and the ends of what it printed."""

    purpose: str
    state: str
    value: float | None
    bound: float | None
    metrics: Values
    started: str
    host: str
    elapsed_s: float
    core_s: float
    memory_bytes: int
    disturbance: str
    message: str
    commands: list[str] = Field(description="One; of a mix one for each input.")
    stdout: str
    stderr: str


class TrialDetail(BaseModel):
    """A trial with the runs that were made of it."""

    trial: TrialRow
    made: list[TrialRun]
