"""Orders as JSON: what clients send to start or change a study, and what they can choose from."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.records.labels import MOST_TAGS, NOTE_LETTERS, TAG, TAG_LETTERS
from autotune.service.models.budgets import LONGEST_NAME, Budget
from autotune.service.models.values import Given
from autotune.studyfile import NAME
from autotune.supervision import CORES

MOST_PAIRS = 1000
"""The most pairs of runs of a verdict that can be asked for."""
LONGEST_WEIGHTS = 1000
"""The most letters of the weights of metrics."""


class CatalogueEntry(BaseModel):
    """A study that may be started. Other programs make the runs if it is `ask_tell`."""

    name: str
    objective: str
    description: str
    trials: int | Literal["auto"]
    ask_tell: bool
    parameters: list[str] = Field(description="Those of the study file; an objective may add some.")


class NewStudy(Given):
    """The order to start a study of the catalogue, with its budget."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"study": "qe", "name": "qe-monday", "trials": 50}]},
    )

    study: str = Field(description="The name of a study of the catalogue.", max_length=200)
    name: Annotated[str, Field(pattern=NAME, max_length=LONGEST_NAME)] | None = Field(
        None, description="Its name in the storage; the catalogue's name unless given."
    )
    trials: Annotated[int, Field(ge=1, le=100_000)] | Literal["auto"] | None = Field(
        None, description="The total number of trials."
    )
    timeout: Annotated[str, Field(max_length=20)] | None = Field(
        None, description="No new trial after that: 90s, 15m, 1h30m.", examples=["1h30m"]
    )
    workers: Annotated[int, Field(ge=1, le=10_000)] | None = Field(None, description="Trials at a time.")
    seed: Annotated[int, Field(ge=0, lt=2**32)] | None = Field(None, description="Seed of the search.")
    cores: Annotated[str, Field(pattern=CORES, max_length=200)] | None = Field(
        None, description="Use only these cores of the service's host.", examples=["0-3,8"]
    )
    launcher: Annotated[str, Field(max_length=50)] | None = Field(
        None, description="The launcher of runs, one of `/launchers`; the study file's unless given."
    )
    budget: Budget | None = Field(
        None, description="Limits that the client sets itself; those of its token, if it has any, count instead."
    )


class MoreTrials(Given):
    """How many more trials to make."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"trials": 20}]})

    trials: int = Field(ge=1, le=100_000)


class Comparison(Given):
    """How many fresh pairs of runs a verdict is to have in all; null: as many as the study file asks for.

    For a trade-off, `weights` of its metrics choose the point of the front that is compared with the default. The study
    keeps them.
    """

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"pairs": 40}]})

    pairs: Annotated[int, Field(ge=3, le=MOST_PAIRS)] | None = None
    weights: Annotated[str, Field(max_length=LONGEST_WEIGHTS, examples=["time_s=2,energy_j=1"])] | None = None


class NewLabels(Given):
    """The labels of a study, which replace the earlier ones."""

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
    """A launcher of the service's host: `local`, or a batch system."""

    name: str


class RangeModel(BaseModel):
    """An expected sum, and the range that contains it in nine cases of ten."""

    about: float
    low: float
    high: float


class CostEstimate(BaseModel):
    """The remaining cost of a study, its verdict included: `core_s` core-seconds, and `elapsed_s` of wall time.

    It is that of `trials` trials, estimated from the `measured` ones of `study`, which was tuned on `machine`.
    """

    trials: int
    study: str
    machine: str
    measured: int
    core_s: RangeModel
    elapsed_s: RangeModel
