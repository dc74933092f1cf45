"""Studies as the service answers them, as JSON. Times are in seconds; values are in their metric's unit."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.service.models.orders import NewStudy
from autotune.service.models.values import MetricModel, Values

StudyState = Literal["running", "waiting", "pausing", "paused", "stopping", "stopped", "finished", "failed", "open"]
_BRIEF: dict[str, Any] = {
    "name": "qe",
    "study": "qe",
    "state": "running",
    "message": "",
    "objective": "qe",
    "managed": True,
    "ask_tell": False,
    "metric": {"name": "wall_s", "unit": "s", "direction": "minimize", "quality": False},
    "trials": 24,
    "budget": 50,
    "failures": {"capped": 7},
    "front": None,
    "baseline": 3.34,
    "best": 2.01,
    "fresh": None,
    "texts": {"best": "2.01 s", "default": "3.34 s", "gain": "looks 1.66x", "of": "in tuning"},
    "speed_up": 1.66,
    "interval": None,
    "verdict": None,
    "machine": "node17",
    "replay": False,
    "trouble": "",
    "started": "2026-11-22T09:00:00",
    "newest": "2026-11-22T09:12:30",
    "by": "ada",
    "tags": ["paper"],
    "note": "with the new BLAS",
    "archived": False,
}


class FreshMedians(BaseModel):
    """The medians of the best and the default in the fresh pairs of runs behind a verdict."""

    best: float
    default: float
    pairs: int


class StudyTexts(BaseModel):
    """The best, the default and the gain as texts with units; empty if unknown. `of` says of which runs they are.

    They are medians of the fresh runs behind a verdict, or of tuning without one, so that the three agree.
    """

    best: str
    default: str
    gain: str
    of: str


class StudyBrief(BaseModel):
    """The state and the main results of a study.

    A study that is not `managed` was started on the command line; `message` names the process that works on it. `front`
    is the number of points on the front of a trade-off, None for other studies; without weights it has no `best`.
    `study` is the name of its study file. `baseline` and `best` are medians of tuning, `fresh` has those of the fresh
    runs behind a verdict. `speed_up` is that of the best trial, by the verdict if it has an `interval`;
    otherwise it only looks so. `trouble` says that every trial failed, and why the first did. `started` and `newest`
    are when the first and the newest run began, in UTC; `by` is the user who started the study. `tags`, `note` and
    `archived` are its labels.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [_BRIEF]})

    name: str
    study: str
    state: StudyState
    message: str
    objective: str
    managed: bool
    ask_tell: bool
    metric: MetricModel | None
    trials: int
    budget: int | None
    failures: dict[str, int]
    front: int | None
    baseline: float | None
    best: float | None
    fresh: FreshMedians | None
    texts: StudyTexts | None
    speed_up: float | None
    interval: tuple[float, float] | None
    verdict: str | None
    machine: str
    replay: bool
    trouble: str
    started: str
    newest: str
    by: str
    tags: list[str]
    note: str
    archived: bool


class Trial(BaseModel):
    """A complete trial: its configuration, its value, and the values of its runs."""

    trial: int
    configuration: Values
    value: float
    runs: list[float]


class FrontPoint(BaseModel):
    """A trial on the front of a trade-off, with its value of each metric, also as text with its unit."""

    trial: int
    configuration: Values
    values: dict[str, float]
    texts: dict[str, str]


class MetricRow(BaseModel):
    """A metric of the best and the default, as texts with units; empty if unknown. `limit` is what a winner keeps."""

    name: str
    best: str
    default: str
    limit: str


class Decisions(BaseModel):
    """The decision table of a study: what to use where. Neighbouring cells with the same decision share a row.

    `sentences` say what the table gains, and which cells were not compared in fresh runs.
    """

    columns: list[str]
    rows: list[list[str]]
    sentences: list[str]


class RunningRun(BaseModel):
    """A run in flight. `label` is its purpose, empty for tuning; a run for another purpose may have no trial.

    `waits` says why its job has not started yet; empty if it has.
    """

    trial: int | None
    label: str = ""
    configuration: Values
    elapsed_s: float
    step: int | None = None
    waits: str = ""
    metrics: Values = Field(default_factory=dict)


class FirstError(BaseModel):
    """The first failed trial, and why it failed."""

    trial: int
    message: str


class StudyDetail(StudyBrief):
    """The state and all results of a study. `version` changes whenever something is stored.

    `noise` says how much runs of one configuration differ, and whether the machine drifted, `disturbance` how many runs
    were set aside because others disturbed them; empty if none was. `next` says what to do next. `metrics` has every
    metric, if there are several: medians of the fresh runs behind a verdict, else of tuning. `checks` are those of
    `autotune watch`, `alarms` say what they found. `pictures` are the names of its pictures, the main one first.
    `again` is the body of a `POST /studies` that starts another study like this one; None if it is not in the
    catalogue, or too large for that.
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
                    "front_points": [],
                    "simplified": None,
                    "verdict_detail": None,
                    "doubts": [],
                    "ledger": {"spent": 310.0},
                    "workload": {"n_atoms": 6},
                    "noise": "runs of the same configuration differ by 2.1%",
                    "disturbance": "",
                    "first_error": None,
                    "metrics": [],
                    "checks": [],
                    "alarms": [],
                    "next": "When the budget is used, the best is compared with the default in fresh runs.",
                    "pictures": ["progress", "importance", "slices", "timeline"],
                    "again": {"study": "qe", "name": "qe-2", "trials": 50},
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
    front_points: list[FrontPoint]
    simplified: Values | None
    verdict_detail: Values | None
    doubts: list[str]
    ledger: Values
    workload: Values
    noise: str
    disturbance: str
    first_error: FirstError | None
    metrics: list[MetricRow]
    checks: list[str]
    alarms: list[str]
    next: str
    pictures: list[str]
    again: NewStudy | None


class Known(BaseModel):
    """The best configuration of a program on a machine with one workload, of all `studies` of them.

    The studies have one `identity`, a digest of the program's version and its input, and one metric. The configuration
    is `confirmed` if a verdict says that it beats the default; then `speed_up` and `interval` are the verdict's.
    Otherwise `why` says why not. The speed-up is over the `default` of its own study, with `default_value`. The newest
    of its `runs` was made at `when`, by the user `who` on `host`, if these are known.
    """

    program: str
    machine: str
    workload: str
    identity: str
    facts: Values
    configuration: Values
    metric: MetricModel
    value: float
    default: Values | None
    default_value: float | None
    speed_up: float | None
    interval: tuple[float, float] | None
    confirmed: bool
    why: str
    doubt: str
    study: str
    studies: list[str]
    trials: int
    runs: int
    when: str
    who: str
    host: str
    text: str = Field(description="The value with its unit.")
    default_text: str = Field(description="The default's value with its unit; empty if that failed.")
    gain: str = Field(description="The gain in a few words, with how sure it is.")
