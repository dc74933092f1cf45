"""What agents send with each tool: nothing else, and no other kinds of values."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.studyfile import NAME

Study = Annotated[str, Field(pattern=NAME, max_length=100, description="The name of a study.")]
Lease = Annotated[str, Field(max_length=200, description="What `ask` gave.")]
Configuration = Annotated[
    dict[str, Any], Field(max_length=500, description="A value for each parameter, as `describe_space` says.")
]


class Arguments(BaseModel):
    """The arguments of a tool that takes none."""

    model_config = ConfigDict(extra="forbid", strict=True)


class StudyArguments(Arguments):
    """A study."""

    study: Study


class TrialsArguments(StudyArguments):
    """Some trials of a study."""

    after: int = Field(-1, ge=-1, lt=2**31, description="Only trials with greater numbers.")
    limit: int = Field(50, ge=1, le=100)


class TrialArguments(StudyArguments):
    """A trial, or the winner."""

    trial: int | None = Field(None, ge=0, lt=2**31, description="The number of a trial; left out: the best.")


class Suggest(StudyArguments):
    """A configuration that the study may try."""

    configuration: Configuration
    why: str = Field("", max_length=500, description="Your reason, for the people who read the study.")


class Ask(StudyArguments):
    """A run that you make."""

    lease_s: float = Field(600.0, gt=0, le=86400, description="In how many seconds you will have told its result.")
    wait_s: float = Field(0.0, ge=0, le=10, description="How long to wait for something to do.")


class Tell(StudyArguments):
    """What came of a run: exactly one of `value`, `metrics`, `failure` and `bound`."""

    lease: Lease
    value: float | None = None
    metrics: dict[str, float] | None = Field(None, max_length=100)
    failure: (
        Literal["invalid result", "out of memory", "timed out", "application error", "infrastructure error"] | None
    ) = None
    bound: float | None = Field(None, description="Of a run that was stopped: its value would not have been better.")
    message: str = Field("", max_length=2000)


class Renew(StudyArguments):
    """A lease that is to last longer."""

    lease: Lease
    lease_s: float = Field(600.0, gt=0, le=86400)


class Predict(StudyArguments):
    """What is predicted for a study of the catalogue."""

    machine: str | None = Field(None, max_length=100, description="A described machine; left out: the service's.")
    k: int = Field(5, ge=1, le=20, description="How many configurations.")


class CheckFile(Arguments):
    """A study file."""

    text: str = Field(max_length=64_000, description="The study file, in TOML.")


class Start(StudyArguments):
    """A study of the catalogue that is to be started."""

    study: Study = Field(description="The name of a study of the catalogue.")
    name: Study | None = Field(None, description="What the new study is called.")
    trials: int | None = Field(None, ge=1, le=100_000)
    timeout: str | None = Field(None, max_length=20, description="No new trial after that: 90s, 15m, 1h30m.")
    seed: int | None = Field(None, ge=0, lt=2**32)
