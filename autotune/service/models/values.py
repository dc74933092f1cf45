"""Values that several requests and answers have, as JSON."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Values = dict[str, Any]
Word = Annotated[str, Field(max_length=200)]
Facts = Annotated[dict[Word, bool | int | Annotated[float, Field(allow_inf_nan=False)] | Word], Field(max_length=100)]


class Given(BaseModel):
    """A request of a client, without other fields or other kinds of values."""

    model_config = ConfigDict(extra="forbid", strict=True)


class MetricModel(BaseModel):
    """The metric that is optimised. A `quality` says how good a result is, not how fast it came."""

    name: str
    unit: str
    direction: Literal["minimize", "maximize"]
    quality: bool


class Health(BaseModel):
    """The service runs."""

    status: Literal["ok"]
    version: str
    read_only: bool = Field(description="Whether studies can only be looked at.")
