"""The arguments of each tool. Unknown arguments and values of other types are refused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.studyfile import NAME

Study = Annotated[str, Field(pattern=NAME, max_length=100, description="The name of a study.")]
Lease = Annotated[str, Field(max_length=200, description="The lease that `ask` returned.")]
Configuration = Annotated[
    dict[str, Any], Field(max_length=500, description="A value for each parameter, as `describe_space` says.")
]


class Arguments(BaseModel):
    """The base of all arguments, and those of a tool without arguments."""

    model_config = ConfigDict(extra="forbid", strict=True)


class StudyArguments(Arguments):
    """A study."""

    study: Study


class StudiesArguments(Arguments):
    """How many studies to list."""

    limit: int = Field(20, ge=1, le=100)


class StatusArguments(StudyArguments):
    """A study, and whether to wait for news of it."""

    wait_s: float = Field(0.0, ge=0, le=50, description="The most seconds to wait for `until`.")
    until: Literal["changed", "ended"] = "ended"


class TrialsArguments(StudyArguments):
    """A page of the trials of a study."""

    sort: Literal["best", "newest"] = Field("best", description="The order of the trials.")
    offset: int = Field(0, ge=0, lt=2**31, description="Leave out so many.")
    limit: int = Field(10, ge=1, le=100)


class TrialArguments(StudyArguments):
    """A trial, or the winner."""

    trial: int | None = Field(None, ge=0, lt=2**31, description="The number of a trial; by default the best.")


class Suggest(StudyArguments):
    """A hint: a configuration that the study may try."""

    configuration: Configuration
    why: str = Field("", max_length=500, description="Your reason, for the people who read the study.")


class Ask(StudyArguments):
    """A request for a run that the agent makes."""

    lease_s: float = Field(600.0, gt=0, le=86400, description="The time in which you will report the result.")
    wait_s: float = Field(0.0, ge=0, le=10, description="The time to wait for a run to become available.")


class Tell(StudyArguments):
    """The result of a run: exactly one of `value`, `metrics`, `failure` and `bound`."""

    lease: Lease
    value: float | None = None
    metrics: dict[str, float] | None = Field(None, max_length=100)
    failure: (
        Literal["invalid result", "out of memory", "timed out", "application error", "infrastructure error"] | None
    ) = None
    bound: float | None = Field(None, description="For a stopped run: its value would not be better than this.")
    message: str = Field("", max_length=2000)


class Renew(StudyArguments):
    """A request to extend a lease."""

    lease: Lease
    lease_s: float = Field(600.0, gt=0, le=86400)


class Predict(StudyArguments):
    """A request for predictions for a study of the catalogue."""

    machine: str | None = Field(
        None, max_length=100, description="A described machine; by default that of the service."
    )
    k: int = Field(5, ge=1, le=20, description="The number of configurations.")


class CheckFile(Arguments):
    """A study file to check."""

    text: str = Field(max_length=64_000, description="The study file, in TOML.")


class Start(StudyArguments):
    """A request to start a study of the catalogue."""

    study: Study = Field(description="The name of a study of the catalogue.")
    name: Study | None = Field(None, description="The name of the new study.")
    trials: int | None = Field(None, ge=1, le=100_000)
    timeout: str | None = Field(None, max_length=20, description="Start no new trial after this time: 90s, 15m, 1h30m.")
    seed: int | None = Field(None, ge=0, lt=2**32)
