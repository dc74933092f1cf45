"""What goes in and out of the service, as JSON. Times are in seconds; values are in their metric's unit."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.studyfile import NAME

StudyState = Literal[
    "running", "waiting", "pausing", "paused", "stopping", "stopped", "finished", "failed", "open", "idle"
]
Failure = Literal["invalid result", "out of memory", "timed out", "application error", "infrastructure error"]
Values = dict[str, Any]
Word = Annotated[str, Field(max_length=200)]
Facts = Annotated[dict[Word, bool | int | Annotated[float, Field(allow_inf_nan=False)] | Word], Field(max_length=100)]

_BRIEF: dict[str, Any] = {
    "name": "qe",
    "state": "running",
    "message": "",
    "objective": "qe",
    "ask_tell": False,
    "metric": {"name": "wall_s", "unit": "s", "direction": "minimize", "quality": False},
    "trials": 24,
    "budget": 50,
    "failures": {"capped": 7},
    "baseline": 3.34,
    "best": 2.01,
    "speed_up": 1.66,
    "interval": None,
    "verdict": None,
    "machine": "node17",
    "replay": False,
    "trouble": "",
}


class Given(BaseModel):
    """What clients send: no other fields, and no other kinds of values."""

    model_config = ConfigDict(extra="forbid", strict=True)


class MetricModel(BaseModel):
    """What is optimised. A `quality` says how good a result is, not how fast it came."""

    name: str
    unit: str
    direction: Literal["minimize", "maximize"]
    quality: bool


class CatalogueEntry(BaseModel):
    """A study that may be started. The runs of an `ask_tell` one are made by other programs."""

    name: str
    objective: str
    description: str
    trials: int | Literal["auto"]
    ask_tell: bool
    parameters: list[str] = Field(description="Those of the study file; an objective may bring more.")


class NewStudy(Given):
    """A study to be started: one of the catalogue, and how much it may spend."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"study": "qe", "name": "qe-monday", "trials": 50}]},
    )

    study: str = Field(description="The name of a study of the catalogue.", max_length=200)
    name: Annotated[str, Field(pattern=NAME, max_length=100)] | None = Field(
        None, description="What it is called in storage; the catalogue's name unless given."
    )
    trials: Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"] | None = Field(
        None, description="The total number of trials."
    )
    timeout: Annotated[str, Field(max_length=20)] | None = Field(
        None, description="No new trial after that: 90s, 15m, 1h30m.", examples=["1h30m"]
    )
    workers: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, description="Trials side by side.")
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(None, description="Seed of the search.")


class StudyBrief(BaseModel):
    """How a study stands, in short.

    `speed_up` is that of the best trial: the verdict's, with its `interval`. Without an interval it only looks so.
    `trouble` says that every trial failed, and why the first did.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [_BRIEF]})

    name: str
    state: StudyState
    message: str
    objective: str
    ask_tell: bool
    metric: MetricModel | None
    trials: int
    budget: int | None
    failures: dict[str, int]
    baseline: float | None
    best: float | None
    speed_up: float | None
    interval: tuple[float, float] | None
    verdict: str | None
    machine: str
    replay: bool
    trouble: str


class Trial(BaseModel):
    """A configuration with its value: the statistic of its runs."""

    trial: int
    configuration: Values
    value: float
    runs: list[float]


class RunningRun(BaseModel):
    """A run in flight; `label` says what it is for, if not for tuning: then it may be of no trial.

    `waits` says why its job has not started yet, empty where it has.
    """

    trial: int | None
    label: str = ""
    configuration: Values
    elapsed_s: float
    step: int | None = None
    waits: str = ""
    metrics: Values = Field(default_factory=dict)


class FirstError(BaseModel):
    """Why the first trial failed that did."""

    trial: int
    message: str


class StudyDetail(StudyBrief):
    """How a study stands. `version` changes whenever something is stored.

    `noise` says how much runs of one configuration differ, and whether the machine drifted.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _BRIEF
                | {
                    "version": 81273,
                    "phase": "tuning",
                    "left_s": 240.0,
                    "running": [{"trial": 25, "configuration": {"np": 2}, "elapsed_s": 1.2, "step": 4, "metrics": {}}],
                    "incumbent": {"trial": 19, "configuration": {"np": 2}, "value": 2.01, "runs": [2.0, 2.02]},
                    "default": {"trial": 0, "configuration": {"np": 2}, "value": 3.34, "runs": [3.34]},
                    "simplified": None,
                    "verdict_detail": None,
                    "ledger": {"spent": 310.0},
                    "workload": {"n_atoms": 6},
                    "noise": "runs of the same configuration differ by 2.1%",
                    "first_error": None,
                }
            ]
        }
    )

    version: int
    phase: str
    left_s: float | None
    running: list[RunningRun]
    incumbent: Trial | None
    default: Trial | None
    simplified: Values | None
    verdict_detail: Values | None
    ledger: Values
    workload: Values
    noise: str
    first_error: FirstError | None


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


class Known(BaseModel):
    """The best configuration of a program on a machine with one workload, of all the `studies` of it.

    It is `confirmed` if a verdict says that it beats the default; then `speed_up` is the verdict's, with its
    `interval`. The newest of its `runs` was made at `when`, by the user `who` on `host`, where these are known.
    """

    program: str
    machine: str
    workload: str
    facts: Values
    configuration: Values
    metric: MetricModel
    value: float
    speed_up: float | None
    interval: tuple[float, float] | None
    confirmed: bool
    doubt: str
    study: str
    studies: list[str]
    trials: int
    runs: int
    when: str
    who: str
    host: str


class PictureBrief(BaseModel):
    """A picture that a study has."""

    name: str
    title: str
    description: str


class ScriptForm(BaseModel):
    """A form that the winner's job script can have."""

    name: str
    title: str


class Picture(PictureBrief):
    """A picture: its panels with their axes and marks, and the same as a table."""

    table: Values
    figure: Values


class MachineBrief(BaseModel):
    """A described machine."""

    name: str
    description: str


class Ask(Given):
    """How long a lease is wanted, and how long to wait for one."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"lease_s": 3600}]})

    lease_s: float = Field(600.0, gt=0, le=30 * 86400, description="After that the configuration is somebody else's.")
    wait_s: float = Field(0.0, ge=0, le=10, description="How long to wait for something to do.")
    key: str = Field(
        "",
        max_length=200,
        description="A word of your own for this request. Asking again with it, after an answer that was lost, gives "
        "the same run while its lease lasts.",
    )


class Asked(BaseModel):
    """A configuration to measure, and the lease under which its result is told.

    A run whose metric is sure to be worse than `cap` may be stopped; tell its bound then.
    """

    lease: str
    trial: int
    run: int
    series: str = Field(description="What the run is for: empty is tuning, others compare the winner and the default.")
    configuration: Values
    cap: float | None
    expires_s: float = Field(description="In how many seconds the lease ends.")


class Tell(Given):
    """What came of a run: exactly one of `value`, `metrics`, `failure` and `bound`."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [
                {"lease": "k3Jx0W...", "value": 2.01, "elapsed_s": 2.4},
                {"lease": "k3Jx0W...", "failure": "out of memory", "message": "killed"},
                {"lease": "k3Jx0W...", "bound": 3.5},
            ]
        },
    )

    lease: str = Field(max_length=200)
    value: float | None = None
    metrics: dict[Annotated[str, Field(max_length=100)], float] | None = Field(None, max_length=100)
    failure: Failure | None = None
    bound: float | None = None
    message: str = Field("", max_length=2000)
    elapsed_s: float | None = Field(None, ge=0)
    cores: int = Field(1, ge=1, le=10**8)


class Told(BaseModel):
    """How the trial stands after a result was told."""

    trial: int
    state: str
    best: bool


class Renew(Given):
    """A lease that is to last longer."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"lease": "k3Jx0W...", "lease_s": 600}]}
    )

    lease: str = Field(max_length=200)
    lease_s: float = Field(600.0, gt=0, le=30 * 86400)


class Renewed(BaseModel):
    """In how many seconds the lease ends."""

    expires_s: float


class Health(BaseModel):
    """That the service is there."""

    status: Literal["ok"]
    version: str
    read_only: bool = Field(description="Whether studies can only be looked at.")
