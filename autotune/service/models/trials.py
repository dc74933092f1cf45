"""Trials as the service answers them, as JSON. Times are in seconds; values are in their metric's unit."""

from pydantic import BaseModel, Field

from autotune.service.models.values import Values


class TrialRow(BaseModel):
    """A trial: complete, with its `value`, or stopped when it had lost, with a `bound`.

    A `speed_up` that is not `confirmed` by a verdict only looks so. A trial that `breaks` limits, each named with its
    value, cannot win. `text` is the value or the bound with its unit, `gain` the speed-up in words.
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
    text: str
    gain: str


class Trials(BaseModel):
    """Some trials; `next` is the `after` of the next request, None at the end."""

    trials: list[TrialRow]
    next: int | None


class TrialPage(BaseModel):
    """A page of the chosen trials: `total` counts the chosen ones, `states` all trials of the study by state."""

    trials: list[TrialRow]
    total: int
    states: dict[str, int]
    parameters: list[str]


class TrialRun(BaseModel):
    """A run of a trial: its `purpose` (tuning, verdict, ...), how it ended, and the ends of its output.

    `text` is the value or the bound with its unit, `texts` has the further metrics and the memory.
    """

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
    text: str
    texts: dict[str, str]
    disturbance: str
    message: str
    commands: list[str] = Field(description="One command; for a mix of inputs one for each input.")
    stdout: str
    stderr: str


class TrialDetail(BaseModel):
    """A trial with its runs."""

    trial: TrialRow
    made: list[TrialRun]
