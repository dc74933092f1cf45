"""What clients send to start a study, and what they may choose from, as JSON."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.records.labels import MOST_TAGS, NOTE_LETTERS, TAG, TAG_LETTERS
from autotune.service.models.values import Given
from autotune.studyfile import NAME
from autotune.supervision import CORES


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
    cores: Annotated[str, Field(pattern=CORES, max_length=200)] | None = Field(
        None, description="Use only these cores of the service's host.", examples=["0-3,8"]
    )
    launcher: Annotated[str, Field(max_length=50)] | None = Field(
        None, description="What starts runs, one of `/launchers`; the study file's unless given."
    )


class MoreTrials(Given):
    """How many trials are to be made beyond those that there are."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"trials": 20}]})

    trials: int = Field(ge=1, le=100_000)


class NewLabels(Given):
    """What is noted of a study from now on, instead of what was."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"tags": ["paper"], "note": "with the new BLAS", "archived": False}]},
    )

    tags: list[Annotated[str, Field(pattern=TAG, max_length=TAG_LETTERS)]] = Field(
        default_factory=list, max_length=MOST_TAGS
    )
    note: str = Field("", max_length=NOTE_LETTERS)
    archived: bool = Field(False, description="Whether lists leave it out.")


class LauncherBrief(BaseModel):
    """What can start runs from the service's host: `local`, or a batch system."""

    name: str


class RangeModel(BaseModel):
    """A sum that is expected, and the range in which it lies in nine cases of ten."""

    about: float
    low: float
    high: float


class CostEstimate(BaseModel):
    """What a study would still cost, its verdict included: `core_s` core-seconds, and `elapsed_s` of wall time.

    It is worked out for `trials` trials from the `measured` ones of `study`, which was tuned on `machine`.
    """

    trials: int
    study: str
    machine: str
    measured: int
    core_s: RangeModel
    elapsed_s: RangeModel
