"""What goes in and out of an ask-and-tell study, as JSON. Times are in seconds; values are in their metric's unit."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.service.models.values import Given, Values

Failure = Literal["invalid result", "out of memory", "timed out", "application error", "infrastructure error"]


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
