"""What goes in and out of the service for predictions, as JSON."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from autotune.service.models.values import Facts, Given, MetricModel, Values


class Question(Given):
    """What is to be predicted: the best `k` configurations of a study on a machine.

    `machine` is the name of a described one, null for the one that the service runs on, or the facts of one, with the
    names that `autotune machine --json` gives them (`cores` is needed). `workload` is the name of one of the workloads
    in the study's file, or facts of the problem that differ from the study's; null for the study's own.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"study": "qe", "machine": "gadi", "nodes": 1, "k": 5}]},
    )

    study: str = Field(max_length=200)
    machine: Annotated[str, Field(max_length=100)] | Facts | None = None
    nodes: int = Field(1, ge=1, le=10_000)
    workload: Annotated[str, Field(max_length=100)] | Facts | None = None
    k: int = Field(5, ge=1, le=100)
    where: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=20)


class Proposal(BaseModel):
    """A configuration with its value and speed-up, and the ends of their intervals; null where they are not known.

    They are predicted, or measured there in `measured_runs`. Where the default was, too, the speed-up is what a verdict
    says (`by_verdict`); or it only looks so.
    """

    configuration: Values
    value: tuple[float, float, float] | None
    speed_up: tuple[float, float, float] | None
    measured_runs: int
    by_verdict: bool = False


class MeasuredValue(BaseModel):
    """A configuration with what was measured of it: the median of its runs."""

    configuration: Values
    value: float
    runs: int


class Predicted(BaseModel):
    """The best configurations as the model sees them; `doubts` say in which respect it does not know.

    It is `promising` if the first beats the default by more than the uncertainty; by a verdict, where both were
    measured.
    """

    study: str
    machine: str
    metric: MetricModel
    default: Proposal
    proposals: list[Proposal]
    promising: bool
    grounds: list[str]
    doubts: list[str]
    reasons: list[tuple[str, float]]
    measured: list[MeasuredValue] = Field(
        description="What was measured there, the best first; empty where nothing was."
    )


class MachineBrief(BaseModel):
    """A described machine."""

    name: str
    description: str
